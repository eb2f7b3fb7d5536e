package sim

import (
	"context"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// The distance of a page is what it says: evictions and activations between
// the moment it went and the moment it came back, counted here one by one.
func TestDistanceIsEvictionsAndActivationsInBetween(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(8 * mib)})
	var events, refaults, sum uint64
	gone := map[*page]uint64{}
	h.trace = func(e traced) {
		switch e.what {
		case tracedEvict:
			gone[e.page] = events
			events++
		case tracedActivate:
			events++
		case tracedRefault:
			if want := events - gone[e.page]; e.distance != want {
				t.Fatalf("distance %d, but %d evictions and activations happened since", e.distance, want)
			}
			refaults++
			sum += e.distance
		}
	}
	// The arena must not move while pages are told apart by address.
	h.arena.pages = append(make([]page, 0, 32*mib/PageSize), h.arena.pages...)
	h.Start("/app", Zipf{Bytes: 12 * mib, Exponent: 0.6})
	h.Start("/app", FileLoop{Bytes: 6 * mib, Kind: Mapped})
	h.Run(3 * time.Second)
	truth := h.Truth("/app")
	if got := truth.Anon.Sum + truth.File.Sum; refaults < 1000 || got != sum {
		t.Errorf("%d refaults, sum of distances %d; Truth says %d", refaults, sum, got)
	}
	if got := truth.Anon.Refaults + truth.File.Refaults; got != refaults {
		t.Errorf("%d refaults, Truth says %d", refaults, got)
	}
}

// A file loop beside idle anon that would fit without it: once the anon is
// moved out, nothing refaults any more.
func TestFileLoopNeverRefaultsOnceAnonIsMoved(t *testing.T) {
	h := oneNode(t, Kernel612, 256*mib)
	id := h.Cgroup("/app", Limits{Max: memcg.LimitOf(45 * mib)})
	settle(t, h, h.Start("/app", Idle{Anon: 38 * mib}))
	loop := h.Start("/app", FileLoop{Bytes: 20 * mib})
	h.Run(2 * time.Second)
	if stat(t, h, "/app", memcg.StatRefaultFile) == 0 {
		t.Fatal("the loop fits from the start: the test shows nothing")
	}
	o := h.Reclaim(context.Background(), memcg.Reclaim{Cgroup: id, Bytes: 20 * mib, Swappiness: memcg.SwappinessOf(200)})
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	h.Run(2 * time.Second) // what the request took of the file comes back once
	before, passes := loop.Stats().Refaults, loop.Stats().Passes
	h.Run(10 * time.Second)
	if after := loop.Stats(); after.Refaults != before || after.Passes < passes+50 {
		t.Errorf("%d refaults in %d passes after the anon was moved", after.Refaults-before, after.Passes-passes)
	}
	mustHold(t, h)
}

// A file that can never fit stays out of reach: its pages come back after a
// distance longer than all that could have made room, and none is promoted.
func TestStreamKeepsItsDistanceOutOfReach(t *testing.T) {
	for _, kernel := range []Kernel{Kernel61, Kernel612, Kernel73} {
		t.Run(kernel.Name, func(t *testing.T) {
			h := oneNode(t, kernel, 256*mib)
			h.Cgroup("/app", Limits{Max: memcg.LimitOf(45 * mib)})
			settle(t, h, h.Start("/app", Idle{Anon: 38 * mib}))
			h.Start("/app", FileLoop{Bytes: 88 * mib})
			h.Run(20 * time.Second)
			d := h.Truth("/app").File
			mean, ok := d.Mean()
			if !ok || d.Recent != 0 {
				t.Errorf("distances %+v: want refaults, none of them in reach", d)
			}
			if file := 88.0 * mib / PageSize; mean < 0.7*file || mean > file {
				t.Errorf("mean distance %.0f pages, the file has %.0f", mean, file)
			}
		})
	}
}

// A stream that reads every page once has no refaults and needs no memory of
// its pages.
func TestStreamOfNewPagesNeverRefaults(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(8 * mib)})
	h.Start("/app", Stream{})
	h.Run(5 * time.Second)
	if n := stat(t, h, "/app", memcg.StatRefaultFile); n != 0 {
		t.Errorf("%d refaults", n)
	}
	if n := len(h.arena.pages); n > 2*8*mib/PageSize {
		t.Errorf("%d pages are remembered for a limit of %d", n, 8*mib/PageSize)
	}
	mustHold(t, h)
}

// The working set is what was touched, split by where it is now.
func TestWorkingSetIsWhatWasTouchedInTheWindow(t *testing.T) {
	h := oneNode(t, Kernel612, 256*mib)
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(45 * mib)})
	settle(t, h, h.Start("/app", Idle{Anon: 38 * mib}))
	h.Run(time.Second)
	h.Start("/app", FileLoop{Bytes: 88 * mib})
	h.Run(20 * time.Second)
	w := h.WorkingSet("/app", 10*time.Second)
	if total := w.FileResident + w.FileOut; total != 88*mib {
		t.Errorf("file working set %d bytes, want the whole file of %d", total, 88*mib)
	}
	if w.AnonResident+w.AnonOut != 0 {
		t.Errorf("idle anon counts as working set: %+v", w)
	}
	if out := h.WorkingSet("/app", time.Hour); out.AnonResident+out.AnonOut != 38*mib {
		t.Errorf("in an hour all anon was touched: %+v", out)
	}
}

// A cgroup that evicted pages and is gone leaves shadows that nothing can be
// compared with.
func TestShadowOfAGoneCgroupIsNotInReach(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(4 * mib)})
	j := h.Start("/app", FileLoop{Bytes: 6 * mib})
	h.Run(time.Second)
	p := h.arena.pages[j.regions[0].pages[0]]
	p.flags, p.by = file|out, uint32(len(h.groups))
	h.groups = append(h.groups, nil)
	h.refault(&p, h.byPath["/app"], 0)
	if p.flags&(active|out) != 0 {
		t.Errorf("flags %b: want neither active nor out", p.flags)
	}
}
