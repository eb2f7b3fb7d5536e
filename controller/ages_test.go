package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

const policyAges = `
policies:
  - name: app
    match: [{path: /**}]
    squeeze: {idle_age: 60s}
`

// generations are those of one list that was last aged so long ago, and every
// 30 s before that; the cold pages are in the oldest.
func generations(youngest time.Duration, coldPages uint64) []memcg.Generation {
	var list []memcg.Generation
	for i := range 4 {
		g := memcg.Generation{Seq: uint64(10 + i), Age: youngest + time.Duration(3-i)*30*time.Second, Evictable: i < 2}
		if i == 0 {
			g.AnonPages, g.FilePages = coldPages/2, coldPages/2
		}
		list = append(list, g)
	}
	return list
}

func TestColdMemoryIsAskedForByAge(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAges)
	b.track(id("/a"))
	for range 10 {
		ob := seen("/a", 512*mib)
		ob.Ages = generations(time.Second, 8*mib/page)
		requests, records := b.stepAll(nil, 4, ob)
		if len(requests) == 0 {
			continue
		}
		if got := requests[0].Reclaim.OlderThan; got != time.Minute || records[0].OlderThan != got {
			t.Errorf("asked for memory older than %s, the record says %s", got, records[0].OlderThan)
		}
		if got := requests[0].Reclaim.Bytes; got != 8*mib {
			t.Errorf("asked for %d bytes, 8 MiB are cold", got)
		}
		return
	}
	t.Error("nothing was asked for in ten ticks")
}

func TestAListIsAgedTwiceWithinTheAgeThatCountsAsCold(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAges)
	b.track(id("/a"))
	last, agings := time.Duration(0), 0
	for range 180 {
		last += time.Second
		ob := seen("/a", 512*mib)
		ob.Ages = generations(last, 0)
		requests, _ := b.stepAll(nil, 4, ob)
		var done []Result
		for _, r := range requests {
			if !r.Age {
				t.Fatalf("asked for %+v of what is not cold", r.Reclaim)
			}
			agings++
			last = 0
			done = append(done, Result{Request: r, Took: 10 * time.Millisecond})
		}
		if len(done) > 0 {
			b.stepAll(done, 4)
		}
	}
	if agings < 5 || agings > 6 {
		t.Errorf("aged %d times in 180 s, want every 30 s", agings)
	}
}

func TestAgingTakesOneInAHundredOfACPUOverAllCgroups(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAges)
	var ids []memcg.ID
	for i := range 20 {
		ids = append(ids, id(fmt.Sprintf("/c%0*d", i+1, i)))
	}
	b.track(ids...)
	var done []Result
	spent := time.Duration(0)
	const seconds = 1800 // long against agingBurst
	for range seconds {
		var obs []Observation
		for _, c := range ids {
			ob := seen(c.Path, 512*mib)
			ob.ID, ob.Ages = c, generations(time.Hour, 0) // all want it, always
			obs = append(obs, ob)
		}
		requests, _ := b.stepAll(done, 4, obs...)
		done = done[:0]
		for _, r := range requests {
			if r.Age {
				spent += 40 * time.Millisecond
				done = append(done, Result{Request: r, Took: 40 * time.Millisecond})
			}
		}
	}
	if share := spent.Seconds() / seconds; share > agingShare*1.05 || share < agingShare/3 {
		t.Errorf("aging took %v of a CPU, want at most %v", share, agingShare)
	}
}

func TestObservingDoesNotAge(t *testing.T) {
	b := newBench(t, telemetry.Observe, "", policyAges)
	b.track(id("/a"))
	for range 100 {
		ob := seen("/a", 512*mib)
		ob.Ages = generations(time.Hour, 0)
		if requests, _ := b.stepAll(nil, 4, ob); len(requests) != 0 {
			t.Fatalf("asked for %+v", requests)
		}
	}
}

func TestAHostThatRefusesAgesIsSqueezedInSteps(t *testing.T) {
	for name, refuse := range map[string]func(*bench) []memcg.Reclaim{
		"ages cannot be read": func(b *bench) []memcg.Reclaim {
			ob := seen("/a", 512*mib)
			ob.AgesErr = fmt.Errorf("open lru_gen: %w", memcg.ErrDenied)
			for range 10 {
				if requests, _ := b.step(nil, 4, ob); len(requests) > 0 {
					return requests
				}
			}
			return nil
		},
		"requests by age are refused": func(b *bench) []memcg.Reclaim {
			ob := seen("/a", 512*mib)
			ob.Ages = generations(time.Second, 8*mib/page)
			var byAge []Request
			for len(byAge) == 0 {
				byAge, _ = b.stepAll(nil, 4, ob)
			}
			o := memcg.Outcome{Request: byAge[0].Reclaim, Err: fmt.Errorf("open lru_gen: %w", memcg.ErrUnsupported)}
			b.stepAll([]Result{{Request: byAge[0], Outcome: o}}, 0, seen("/a", 512*mib))
			if b.core.WantsAges(id("/a")) {
				b.t.Error("ages are still wanted")
			}
			requests, _ := b.settle(4, seen("/a", 512*mib))
			return requests
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, telemetry.Enforce, "", policyAges)
			b.track(id("/a"))
			requests := refuse(b)
			if len(requests) != 1 || requests[0].OlderThan != 0 {
				t.Errorf("got %+v", requests)
			}
			if !slices.Equal(b.notes.said, []string{"ages"}) && !slices.Equal(slices.Compact(b.notes.said), []string{"ages"}) {
				t.Errorf("said %v", b.notes.said)
			}
			if strings.Contains(b.core.cgroups[id("/a")].held, "reclaim") {
				t.Error("the cgroup is not acted on any more")
			}
		})
	}
}

func TestAKernelThatSwapsAtSwappinessZeroIsNotTrustedWithIt(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", withSwappiness("0"))
	b.track(id("/app"))
	var done []memcg.Outcome
	asked := 0
	for range 60 {
		requests, _ := b.step(done, 4, seen("/app", 512*mib))
		done = done[:0]
		for _, r := range requests {
			asked++
			done = append(done, outcome(r, nil, r.Bytes))
		}
	}
	if asked > disobeyedMost+1 || !slices.Contains(b.notes.said, "swappiness-disobeyed") {
		t.Errorf("asked %d times, said %v", asked, b.notes.said)
	}
}

// What nobody uses is in the youngest generation until it was aged; until then a
// request for anon would be served with file. Where aging must wait to be paid
// for, file gives meanwhile.
func TestAnonIsAskedForOnceWhatIsNotUsedShows(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", `
policies:
  - name: app
    match: [{path: /a}]
    swappiness: 200
    squeeze: off
    headroom: 10%
`)
	b.track(id("/a"))
	agings := 0
	var done []Result
	for range 30 {
		ob := seen("/a", 512*mib)
		ob.Sample.Max = memcg.LimitOf(512 * mib)
		ob.Ages = []memcg.Generation{
			{Age: 20 * time.Second, AnonPages: 256 * mib / page, Evictable: agings >= agingsFirst},
			{Age: time.Second},
		}
		requests, records := b.stepAll(done, 4, ob)
		done = done[:0]
		for _, r := range requests {
			if r.Age {
				agings++
				done = append(done, Result{Request: r, Took: time.Millisecond})
				if !strings.Contains(records[0].Held, "aging") || records[0].Acted {
					t.Errorf("acted %v, held for %q", records[0].Acted, records[0].Held)
				}
				continue
			}
			if v, _ := r.Reclaim.Swappiness.Get(); v == 0 {
				done = append(done, Result{Request: r, Outcome: outcome(r.Reclaim, nil, 0)})
				continue
			}
			if agings != agingsFirst {
				t.Errorf("asked for %d bytes after %d agings", r.Reclaim.Bytes, agings)
			}
			return
		}
	}
	t.Errorf("nothing was asked for in 30 s, after %d agings", agings)
}

func TestAgesThatAreNoLongerToldHoldUpNoRequest(t *testing.T) {
	var cg cgroup
	cg.see([]memcg.Generation{{Age: time.Minute, AnonPages: 7, Evictable: true}, {Age: time.Second, AnonPages: 9}})
	if !cg.ages || cg.evictableAnon != 7 || cg.youngest != time.Second {
		t.Errorf("got ages %v, %d pages, youngest %s", cg.ages, cg.evictableAnon, cg.youngest)
	}
	if cg.see(nil); cg.ages || cg.evictableAnon != 0 {
		t.Errorf("ages %v and %d pages are remembered though nothing is told any more", cg.ages, cg.evictableAnon)
	}
}

// Kernels before 6.16 give anon alone from the oldest generation at most, where
// file that was read once is as well.
func TestAnonBehindFileCountsUntilItWasNotToBeHad(t *testing.T) {
	gens := []memcg.Generation{
		{Seq: 4, FilePages: 9, Evictable: true}, {Seq: 5, AnonPages: 7, Evictable: true}, {Seq: 6, AnonPages: 1}, {Seq: 7},
		{Seq: 2, Evictable: true}, {Seq: 3, AnonPages: 5, FilePages: 1, Evictable: true}, {Seq: 4, AnonPages: 3, Evictable: true}, // a cgroup below it
		{Node: 1, Seq: 8, AnonPages: 2, Evictable: true},
	}
	var cg cgroup
	if cg.see(gens); cg.evictableAnon != 7+5+3+2 {
		t.Errorf("%d pages can be evicted, want all 17", cg.evictableAnon)
	}
	asked := memcg.Reclaim{Bytes: mib, Swappiness: memcg.SwappinessOf(memcg.SwappinessMax)}
	cg.finished(memcg.Outcome{Request: asked, Reclaimed: memcg.Value(mib), SwapOut: memcg.Value(mib)}, page)
	if cg.see(gens); cg.evictableAnon != 17 {
		t.Errorf("%d pages after anon was had, want 17", cg.evictableAnon)
	}
	cg.finished(memcg.Outcome{Request: asked, Reclaimed: memcg.Value(0), SwapOut: memcg.Value(0)}, page)
	if cg.evictableAnon != 0 || cg.sides.rest != 0 {
		t.Errorf("%d pages right after none was had, and %d requests for file", cg.evictableAnon, cg.sides.rest)
	}
	again := cg
	if again.finished(memcg.Outcome{Request: asked, Reclaimed: memcg.Value(0), SwapOut: memcg.Value(0)}, page); again.sides.rest != sidesRest {
		t.Errorf("%d requests for file after that is known, want %d", again.sides.rest, sidesRest)
	}
	if cg.see(gens); cg.evictableAnon != 5+2 {
		t.Errorf("%d pages at the next look, want the 7 of oldest generations", cg.evictableAnon)
	}
}

func TestACgroupThatIsToGiveAnonAtItsLimitIsAgedBeforeItGetsThere(t *testing.T) {
	for _, c := range []struct {
		name, swappiness string
		agings           int
	}{
		{"mostly anon", "180", agingsFirst},
		{"a balance", "60", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, telemetry.Enforce, "", `
policies:
  - name: app
    match: [{path: /a}]
    swappiness: `+c.swappiness+`
    squeeze: off
    headroom: 10%
`)
			b.track(id("/a"))
			agings := 0
			var done []Result
			first, last := 0, 0 // ticks
			for tick := range 30 {
				ob := seen("/a", 256*mib)
				ob.Sample.Max = memcg.LimitOf(512 * mib)
				ob.Ages = []memcg.Generation{{Age: time.Second, AnonPages: 128 * mib / page}}
				requests, _ := b.stepAll(done, 4, ob)
				done = done[:0]
				for _, r := range requests {
					if !r.Age {
						t.Fatalf("half way to its limit: %+v", r.Reclaim)
					}
					if agings++; agings == 1 {
						first = tick
					}
					last = tick
					done = append(done, Result{Request: r, Took: 30 * time.Millisecond})
				}
			}
			// What they cost was saved up: they do not wait for seconds.
			if took := last - first; took > 2*agingsFirst {
				t.Errorf("%d agings of 30 ms took %d s", agings, took)
			}
			// Anon that is used all the time never ages: a few tries tell.
			if agings != c.agings {
				t.Errorf("aged %d times, want %d", agings, c.agings)
			}
		})
	}
}
