package controller

import (
	"testing"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// growingAnon is a cgroup whose anon grows by 10 MiB/s, a second below its memory.high
// of 40 MiB, and misses nothing.
func growingAnon() lendSight {
	v := atItsHigh()
	v.current, v.missed, v.refaults, v.cost, v.comesBack = 31*mib, 0, 0, 0, false
	v.growth, v.interval = 10*mib, time.Second
	return v
}

func TestWhatIsLentForAnonThatGrows(t *testing.T) {
	const step = 31*mib + 2*10*mib // two intervals ahead
	for _, tt := range []struct {
		name string
		set  func(*lendSight)
		high uint64
		held string
	}{
		{"what it grows by in two intervals", func(*lendSight) {}, step, ""},
		{"nothing more than an interval before its limit", func(v *lendSight) { v.current = 29 * mib }, 0, ""},
		{"with headroom, before that begins, and as much more", func(v *lendSight) { v.current, v.keptBelow = 28*mib, 38*mib }, 28*mib + 20*mib + 2*mib, ""},
		{"nothing where the policy does not say so", func(v *lendSight) { v.growth, v.interval = 0, 0 }, 0, ""},
		{"nothing for a page now and then", func(v *lendSight) { v.current, v.growth = 40*mib, 64<<10 }, 0, ""},
		{"a sixteenth where its limit holds it up", func(v *lendSight) { v.current, v.growth = 40*mib, mib }, 40*mib + 40*mib/16, ""},
		{"half of its limit at most", func(v *lendSight) { v.growth = 1000 * mib }, 60 * mib, ""},
		{"no higher than the ceiling", func(v *lendSight) { v.ceiling = 45 * mib }, 45 * mib, ""},
		{"no higher than memory.max", func(v *lendSight) { v.max = 44 * mib }, 44 * mib, ""},
		{"no more than the host can spare", func(v *lendSight) { v.pool = 2 * mib }, 42 * mib, ""},
		{"nothing of the reserve", func(v *lendSight) { v.current, v.pool = 40*mib, 0 }, 0, "the host has no more than its reserve"},
		{"nothing above the ceiling", func(v *lendSight) { v.current, v.ceiling = 40*mib, 40*mib }, 0, "the ceiling is reached"},
		{"nothing is said before that matters", func(v *lendSight) { v.pool = 0 }, 0, ""},
		{"nothing where memory.max binds", func(v *lendSight) { v.max = 40 * mib }, 0, heldByMax},
		{"nothing while a write is in flight", func(v *lendSight) { v.pending = true }, 0, ""},
		{"a higher limit before tasks are stopped at one that is not ours", func(v *lendSight) { v.verdict = workingset.Throttled }, step, ""},
		{"what is missed, where that is known", func(v *lendSight) {
			v.current, v.missed, v.cost = 40*mib, 100*mib, 0.1
		}, down(40*mib+112*mib+512*1024, page), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := growingAnon()
			tt.set(&v)
			var l loan
			m := l.decide(&v)
			if m.high != tt.high || m.held != tt.held || m.restore || m.reclaim > 0 {
				t.Errorf("%+v, want memory.high %d, held %q", m, tt.high, tt.held)
			}
		})
	}
}

func TestAGrowthThatEndsInHeadroomIsLentThatToo(t *testing.T) {
	l, v := borrowing()
	v.current, v.keptBelow, v.growth, v.interval = 138*mib, 133*mib, 64<<10, time.Second
	if m := l.decide(&v); m.rule != "" {
		t.Errorf("lent for need, so that headroom takes file: %+v", m)
	}
	l.grown = true
	if m := l.decide(&v); m.rule != "lend-growth" || m.high < v.current+7*mib {
		t.Errorf("%+v", m)
	}
	v.growth = 0
	if m := l.decide(&v); m.rule != "" {
		t.Errorf("lent where nothing grew: %+v", m)
	}
}

func TestWhatWasLentForAnonIsNotJudgedByRefaults(t *testing.T) {
	l, v := borrowing()
	l.grown, l.before = true, 0
	v.current, v.missed, v.refaults, v.cost, v.ceiling = 140*mib, 100*mib, 1000, 0.1, 140*mib
	for range 60 {
		if m := l.decide(&v); m.rule != "" {
			t.Fatalf("taken back, which would swap out what it holds: %+v", m)
		}
		v.now = v.now.Add(time.Second)
	}
}

func TestWhatWasLentForAnonIsTakenBackWhenTheHostIsShort(t *testing.T) {
	l, v := borrowing()
	l.grown = true
	l.recall(backShort)
	v.growth, v.interval = 10*mib, time.Second
	if m := l.decide(&v); m.reclaim < 99*mib || m.high > v.high {
		t.Errorf("%+v", m)
	}
}

func TestWhichAnonCountsAsGrowingIntoALimit(t *testing.T) {
	lends := &config.High{Lend: true, AnonGrowth: true}
	for _, tt := range []struct {
		name         string
		policy       *config.High
		anon, swap   uint64 // MiB, of the second sample; 100 and 0 of the first
		cached, file uint64 // MiB
		goes         float64
		want         float64 // MiB a second
	}{
		{"new anon with hardly any file beside it", lends, 120, 0, 0, 10, 0, 10},
		{"new anon that pushes other anon out", lends, 100, 20, 0, 500, 100, 10},
		{"not new anon that file makes room for", lends, 120, 0, 0, 500, 0, 0},
		{"not anon that is swapped out", lends, 80, 20, 0, 0, 100, 0},
		{"not anon that is read into the swap cache", lends, 120, 0, 20, 0, 100, 0},
		{"not anon that shrinks", lends, 80, 0, 0, 0, 100, 0},
		{"none where the policy does not lend for it", &config.High{Lend: true}, 120, 0, 0, 0, 100, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sample := func(anon, swap, cached uint64) *memcg.Sample {
				s := &memcg.Sample{SwapCurrent: memcg.Value(swap * mib)}
				s.Stat.Set(memcg.StatAnon, memcg.Value(anon*mib))
				s.Stat.Set(memcg.StatSwapcached, memcg.Value(cached*mib))
				s.Stat.Set(memcg.StatFile, memcg.Value(tt.file*mib))
				return s
			}
			var size anonSize
			v := lendSight{interval: time.Second}
			g := workingset.Signals{}
			g.Anon.Evictions = workingset.FigureOf(tt.goes)
			first, second := sample(100, 0, 0), sample(tt.anon, tt.swap, tt.cached)
			at := time.Unix(1000, 0)
			size.see(at, first)
			v.growing(tt.policy, &size, first, &g)
			if v.growth != 0 {
				t.Fatalf("%v at the first sample", v.growth)
			}
			size.see(at.Add(2*time.Second), second)
			if v.growing(tt.policy, &size, second, &g); v.growth != tt.want*mib {
				t.Errorf("%v MiB/s, want %v", v.growth/mib, tt.want)
			}
		})
	}
}

func TestAnonThatIsNotKnownDoesNotGrow(t *testing.T) {
	var size anonSize
	s := &memcg.Sample{SwapCurrent: memcg.Value(mib)}
	size.see(time.Unix(1000, 0), s)
	s.Stat.Set(memcg.StatAnon, memcg.Value(100*mib))
	if size.see(time.Unix(1001, 0), s); size.rate != 0 {
		t.Errorf("%v bytes/s from what was not known", size.rate)
	}
}

func TestAPauseOfAMomentDoesNotEndAGrowth(t *testing.T) {
	var size anonSize
	at, bytes := time.Unix(1000, 0), uint64(100*mib)
	see := func(later time.Duration, more uint64) float64 {
		at, bytes = at.Add(later), bytes+more
		s := &memcg.Sample{}
		s.Stat.Set(memcg.StatAnon, memcg.Value(bytes))
		size.see(at, s)
		return size.rate / mib
	}
	see(0, 0)
	if got := see(time.Second, 10*mib); got != 10 {
		t.Fatalf("%v MiB/s", got)
	}
	if got := see(time.Millisecond, 0); got != 10 {
		t.Errorf("%v MiB/s a millisecond later, which tells nothing", got)
	}
	if got := see(fillHalfLife-time.Millisecond, 0); got < 4.9 || got > 5.1 {
		t.Errorf("%v MiB/s after half of its life", got)
	}
	for range 30 {
		see(time.Second, 0)
	}
	if size.rate != 0 {
		t.Errorf("%v bytes/s at last", size.rate)
	}
}

func TestAGrowthThatIsAheadOfTheTickIsLookedAtHalfWay(t *testing.T) {
	v := growingAnon()
	for _, tt := range []struct {
		name string
		high uint64
		want time.Duration // 0: the tick will do
	}{
		{"two intervals ahead", v.current + 20*mib, 0},
		{"one interval ahead", v.current + 10*mib, time.Second / 2},
		{"at its limit, a few times an interval", v.current, time.Second / earlySamples},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at, ok := v.nextGrowth(tt.high)
			if got := at.Sub(v.now); ok != (tt.want > 0) || ok && got != tt.want {
				t.Errorf("after %v, %t; want %v", got, ok, tt.want)
			}
		})
	}
}

const lendForGrowth = `
policies:
  - name: all
    match: [{path: /**}]
    squeeze: off
    high: {lend: true, anon_growth: true}
`

func TestWhenALimitThatIsMetTellsOfAnonThatGrows(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policies string
		mode     telemetry.Mode
		met      bool
		after    time.Duration // the last sample, a tick's, in an interval of 1 s
		want     time.Duration // after it; 0: at the tick
	}{
		{"at once", lendForGrowth, telemetry.Enforce, false, 400 * time.Millisecond, 400 * time.Millisecond},
		{"not more than four times an interval", lendForGrowth, telemetry.Enforce, false, 100 * time.Millisecond, 250 * time.Millisecond},
		{"not just before the tick", lendForGrowth, telemetry.Enforce, false, 800 * time.Millisecond, 0},
		{"not where it was being met before", lendForGrowth, telemetry.Enforce, true, 400 * time.Millisecond, 0},
		{"not where the policy does not lend for it", lendAll, telemetry.Enforce, false, 400 * time.Millisecond, 0},
		{"not where nothing is lent", lendForGrowth, telemetry.Observe, false, 400 * time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.mode, "", tt.policies)
			b.track(id("/a"))
			listens := tt.policies == lendForGrowth && tt.mode == telemetry.Enforce
			if list := b.core.Unheard(); len(list) > 0 != listens {
				t.Errorf("listens to %v", list)
			}
			cg := b.core.cgroups[id("/a")]
			cg.sampledAt, cg.loan.met, b.core.nodes.seenAt = b.now, tt.met, b.now
			b.core.Heard(cg.id, b.now.Add(tt.after))
			at, ok := b.core.NextWake()
			if ok != (tt.want > 0) || ok && (at.Sub(b.now) != tt.want || b.core.Woken(cg.id, at) != Sample) {
				t.Errorf("looked at at %v (%v), now is %v", at, ok, b.now)
			}
		})
	}
}
