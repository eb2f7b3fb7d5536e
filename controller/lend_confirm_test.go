package controller

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// showing is a sample in which refaults cost enough to lend for, of a whole interval
// of a second where it is a tick's.
func showing(after time.Duration) lendSight {
	v := atItsHigh()
	v.now, v.seconds, v.interval = v.now.Add(after), 1, time.Second
	v.came, v.costNow = 1000, 0.1
	return v
}

// showingNone is one without a refault.
func showingNone(after time.Duration) lendSight {
	v := showing(after)
	v.came, v.costNow = 0, 0
	return v
}

const tick = time.Second

func TestWhenANeedThatBeginsIsToBeConfirmed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   func(*lendSight)
		could bool
		left  time.Duration // of the tick
		want  time.Duration // 0: at the tick
	}{
		{"a quarter of an interval later", func(*lendSight) {}, true, tick, 250 * time.Millisecond},
		{"later where so few refaults come that a short sample would tell nothing", func(v *lendSight) { v.came = 256 }, true, tick, 500 * time.Millisecond},
		{"at the tick where even fewer come", func(v *lendSight) { v.came = 128 }, true, tick, 0},
		{"at the tick where that is near", func(*lendSight) {}, true, 400 * time.Millisecond, 0},
		{"at the tick where there are too few to tell", func(v *lendSight) { v.came = confirmLeast - 1 }, true, tick, 0},
		{"at the tick where they cost next to nothing", func(v *lendSight) { v.costNow = lendCost / 2 }, true, tick, 0},
		{"at the tick where nothing could be lent", func(*lendSight) {}, false, tick, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := showing(0)
			tt.set(&v)
			var f confirming
			at, ok := f.see(&v, false, tt.could, v.now.Add(tt.left))
			if ok != (tt.want > 0) || ok && at.Sub(v.now) != tt.want {
				t.Errorf("in %v (%v), want %v", at.Sub(v.now), ok, tt.want)
			}
		})
	}
}

func TestAnEarlySampleIsFollowedByAnotherOnlyWhereTheLoanGrewAndIsUsedUp(t *testing.T) {
	for _, tt := range []struct {
		name          string
		raises, could bool
		want          bool
	}{
		{"it grew and is used up", true, true, true},
		{"it grew and is being filled", true, false, false},
		{"it did not grow", false, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f confirming
			first := showing(0)
			next := first.now.Add(tick)
			if _, ok := f.see(&first, false, true, next); !ok {
				t.Fatal("the need that begins is not looked at again")
			}
			early := showing(250 * time.Millisecond)
			early.seconds, early.came = 0.25, 250
			if _, ok := f.see(&early, tt.raises, tt.could, next); ok != tt.want {
				t.Errorf("another one: %v", ok)
			}
		})
	}
}

// early returns how many samples are taken between ticks over some of these, of which
// every other shows a need.
func early(f *confirming, ticks int, lent bool) (n int) {
	for i := range ticks {
		v := showingNone(time.Duration(i) * tick)
		if i%2 == 1 {
			v = showing(time.Duration(i) * tick)
		}
		at, ok := f.see(&v, false, true, v.now.Add(tick))
		if ok {
			n++
			e := showingNone(0)
			if lent {
				e = showing(0)
			}
			e.now = at
			f.see(&e, lent, false, v.now.Add(tick))
		}
	}
	return n
}

func TestEarlySamplesInVainBecomeRare(t *testing.T) {
	if n := early(&confirming{}, 1000, false); n > 5+1000/64 {
		t.Errorf("%d of them in 1000 ticks", n)
	}
	if n := early(&confirming{}, 1000, true); n != 500 {
		t.Errorf("%d of them where each led to a loan, want 500", n)
	}
	var f confirming
	early(&f, 100, false)
	v := showing(100 * tick)
	if f.see(&v, true, false, v.now.Add(tick)); f.vain != 0 || !f.rest.IsZero() {
		t.Error("a loan that a tick's sample made does not end the rest")
	}
}

// The multi-gen LRU may count no refault in an early sample. Two whole ones follow, as
// if there had been none.
func TestAfterAnEarlySampleInVainTwoWholeOnesFollow(t *testing.T) {
	var f confirming
	first := showing(0)
	f.see(&first, false, true, first.now.Add(tick))
	gap := showingNone(250 * time.Millisecond)
	gap.seconds = 0.25
	f.see(&gap, false, true, first.now.Add(tick))
	for i := range time.Duration(2) {
		v := showing((1 + i) * tick)
		if at, ok := f.see(&v, false, true, v.now.Add(tick)); ok {
			t.Errorf("another one %v after the first", at.Sub(first.now))
		}
	}
}

func TestOnlyWhereMemoryHighCouldGoUpIsACgroupLookedAtWithinTheTick(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*bench, *cgroup, *lendSight, *lendMove)
		want bool
	}{
		{"it could", func(*bench, *cgroup, *lendSight, *lendMove) {}, true},
		{"it goes up by part of what is missed", func(b *bench, cg *cgroup, _ *lendSight, m *lendMove) {
			m.high, b.core.setting[cg.id] = 44*mib, true
		}, true},
		{"it goes as high as it may", func(_ *bench, _ *cgroup, v *lendSight, m *lendMove) { m.high, v.ceiling = 60*mib, 60*mib }, false},
		{"the ceiling is reached", func(_ *bench, _ *cgroup, v *lendSight, _ *lendMove) { v.ceiling = v.high }, false},
		{"the host has nothing to lend", func(_ *bench, _ *cgroup, v *lendSight, _ *lendMove) { v.pool = 0 }, false},
		{"the last loan changed nothing", func(_ *bench, cg *cgroup, v *lendSight, _ *lendMove) { cg.loan.until = v.now.Add(1) }, false},
		{"no more is lent, whyever", func(_ *bench, _ *cgroup, _ *lendSight, m *lendMove) { m.held = "so" }, false},
		{"the loan is taken back", func(_ *bench, cg *cgroup, _ *lendSight, _ *lendMove) { cg.loan.back = backShort }, false},
		{"it is not what binds", func(_ *bench, _ *cgroup, v *lendSight, _ *lendMove) { v.current = 30 * mib }, false},
		{"tasks are stopped", func(_ *bench, _ *cgroup, v *lendSight, _ *lendMove) { v.verdict = workingset.Throttled }, false},
		{"it is kept below it", func(_ *bench, cg *cgroup, _ *lendSight, _ *lendMove) { cg.law.Headroom.On = true }, false},
		{"its policy only observes", func(_ *bench, cg *cgroup, _ *lendSight, _ *lendMove) { cg.policy.Observe = true }, false},
		{"no knob is written", func(b *bench, _ *cgroup, _ *lendSight, _ *lendMove) { b.core.noKnobs = noJournal }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := lendBench(t)
			cg := b.core.cgroups[id("/a")]
			policy := *cg.policy
			cg.policy = &policy
			v, m := showing(0), lendMove{}
			b.core.nodes.seenAt, cg.sampledAt = v.now, v.now
			tt.set(b, cg, &v, &m)
			b.core.confirmSoon(cg, &v, &m, m.high > v.high)
			at, ok := b.core.NextWake()
			if ok != tt.want || ok && at.Sub(v.now) != 250*time.Millisecond {
				t.Errorf("at %v (%v), now is %v", at, ok, v.now)
			}
			if ok && b.core.Woken(cg.id, at) != Sample {
				t.Error("not at everything")
			}
		})
	}
}

func TestAShortSampleWithEnoughRefaultsTellsTheirRate(t *testing.T) {
	b := lendBench(t)
	s := &memcg.Sample{Current: memcg.Value(40 * mib), High: memcg.LimitOf(40 * mib), Max: memcg.Unlimited()}
	for _, tt := range []struct {
		name       string
		rate, want float64
	}{
		{"enough of them", 1000, 1000},
		{"too few of them, so that the smoothed one counts", 200, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d workingset.Decision
			d.Signals.RefaultRate = workingset.FigureOf(tt.rate)
			d.Signals.File.Refaults, d.Signals.Anon.Refaults = workingset.FigureOf(90), workingset.FigureOf(10)
			r := telemetry.Record{Elapsed: 250 * time.Millisecond}
			v, ok := b.core.lendSight(b.now, &b.host, b.core.cgroups[id("/a")], s, &d, &r)
			if !ok || v.refaults != tt.want {
				t.Errorf("%v refaults a second (%v), want %v", v.refaults, ok, tt.want)
			}
		})
	}
}
