package workingset

import (
	"math"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

// The distance does not depend on how often samples are taken.
func TestDistanceIsTheSameAtEveryInterval(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		evict := rapid.Float64Range(200, 20_000).Draw(rt, "evictions a second")
		back := rapid.Float64Range(0.2, 1).Draw(rt, "part that returns") * evict
		activate := rapid.Float64Range(0, 5000).Draw(rt, "activations a second")
		lag := rapid.Float64Range(0.5, 5).Draw(rt, "seconds before the first return")
		interval := float64(rapid.IntRange(4, 200).Draw(rt, "interval in slices")) * slice
		end := math.Ceil(120/interval) * interval
		distance := func(interval float64) float64 {
			f := restingFeed()
			// Lists so large that the cap on what is out does not bind.
			f.gauges[memcg.StatInactiveFile] = constant(64 << 30)
			f.counters[memcg.StatSteal] = constant(evict)
			f.counters[memcg.StatActivateFile] = constant(activate)
			f.counters[memcg.StatRefaultFile] = constant(back).from(lag)
			b := newBench(t, f)
			b.interval = interval
			return b.run(end).d.Signals.File.Distance.or(-1)
		}
		fine, coarse := distance(slice), distance(interval)
		if d := math.Abs(fine - coarse); fine <= 0 || d > 0.1*fine {
			rt.Fatalf("D is %.0f at %.2f s and %.0f at %.2f s", fine, slice, coarse, interval)
		}
	})
}

// Whatever the kernel prints and the operator wants, the bounds hold.
func TestNoInputBreaksTheBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		var st State
		h := defaultHost()
		for i := range rapid.IntRange(2, 12).Draw(rt, "samples") {
			tk := tick{at: float64(i), sample: drawSample(rt)}
			h.SwapFree = drawField(rt, "SwapFree", 4<<30)
			in := Input{
				Sample: &tk.sample, Host: &h, ClassicLRU: rapid.Bool().Draw(rt, "classic"),
				Elapsed:   time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(rt, "elapsed")),
				Own:       Own{AnonPages: rapid.Uint64().Draw(rt, "own"), Known: rapid.Bool().Draw(rt, "own known")},
				GuardHeld: rapid.Bool().Draw(rt, "guard"),
			}
			if rapid.Bool().Draw(rt, "gens") {
				in.Gens = &Generations{List: []Generation{{Age: time.Hour, AnonPages: 1 << 20, FilePages: 1 << 20, Evictable: true}}}
			}
			twin := st
			tk.d = Decide(&st, in, p)
			again := Decide(&twin, in, p)
			checkSane(rt, &tk, &p)
			if tk.d.Intent != again.Intent || tk.d.Verdict != again.Verdict || tk.d.Signals != again.Signals {
				rt.Fatalf("same input, other output:\n%+v\n%+v", tk.d, again)
			}
			if !st.sound() {
				rt.Fatalf("a state with a number that is none: %+v", st)
			}
			if n, set := tk.d.Intent.Swappiness.Get(); tk.d.Intent.Bytes > 0 && p.Swappiness.neverSwaps() && (!set || n != 0) {
				rt.Fatalf("a policy of never swapping passes %v", tk.d.Intent.Swappiness)
			}
		}
	})
}

func drawPolicy(rt *rapid.T) Policy {
	wild := rapid.SampledFrom([]float64{0, 0.001, 0.005, 1, -1, math.NaN(), math.Inf(1)})
	swappiness := rapid.IntRange(-1, 202)
	return Policy{
		Law: Law(rapid.IntRange(0, 2).Draw(rt, "law")),
		Swappiness: Swappiness{
			Kind:  SwappinessKind(rapid.IntRange(0, 2).Draw(rt, "kind")),
			Value: swappiness.Draw(rt, "value"), Base: swappiness.Draw(rt, "base"),
			Min: swappiness.Draw(rt, "min"), Max: swappiness.Draw(rt, "max"),
		},
		Squeeze: Squeeze{
			On: true, MaxStep: wild.Draw(rt, "step"), PressureTarget: wild.Draw(rt, "pressure target"),
			CostTarget: wild.Draw(rt, "cost target"), Floor: rapid.Uint64Range(0, 1<<31).Draw(rt, "floor"),
			IdleAge: time.Minute,
		},
		Headroom:     Headroom{On: rapid.Bool().Draw(rt, "headroom"), Fraction: wild.Draw(rt, "fraction"), Bytes: 1 << 20},
		SwapGuard:    true,
		SwapKeepFree: wild.Draw(rt, "keep free"),
	}
}

func drawField(rt *rapid.T, name string, most uint64) memcg.Field {
	switch rapid.IntRange(0, 40).Draw(rt, name+" state") {
	case 0:
		return memcg.Absent(memcg.Unsupported)
	case 1:
		return memcg.Absent(memcg.Missing)
	case 2:
		return memcg.Value(math.MaxUint64)
	}
	return memcg.Value(rapid.Uint64Range(0, most).Draw(rt, name))
}

func drawLimit(rt *rapid.T, name string) memcg.Limit {
	if rapid.Bool().Draw(rt, name+" max") {
		return memcg.Unlimited()
	}
	if v, ok := drawField(rt, name, 2<<30).Get(); ok {
		return memcg.LimitOf(v)
	}
	return memcg.NoLimitFile(memcg.Missing)
}

func drawSample(rt *rapid.T) (s memcg.Sample) {
	s.Stat.SetAll(memcg.Unsupported)
	for _, k := range []memcg.Stat{
		memcg.StatAnon, memcg.StatFile, memcg.StatKernel, memcg.StatInactiveAnon, memcg.StatActiveAnon, memcg.StatInactiveFile,
		memcg.StatActiveFile, memcg.StatUnevictable, memcg.StatSlabReclaimable, memcg.StatFileDirty,
	} {
		s.Stat.Set(k, drawField(rt, k.String(), 1<<28))
	}
	for _, k := range benchCounters {
		s.Stat.Set(k, drawField(rt, k.String(), 1<<20))
	}
	if rapid.IntRange(0, 20).Draw(rt, "negative") == 0 {
		s.Stat.Set(memcg.StatAnon, memcg.Absent(memcg.Invalid))
	}
	s.Current, s.SwapCurrent = drawField(rt, "current", 2<<30), drawField(rt, "swap", 1<<30)
	s.Pressure.Some.Total, s.Pressure.Full.Total = drawField(rt, "some", 1<<30), drawField(rt, "full", 1<<30)
	s.EventsLocal.High, s.EventsLocal.Max = drawField(rt, "high events", 1000), drawField(rt, "max events", 1000)
	s.Min, s.High, s.Max = drawLimit(rt, "min"), drawLimit(rt, "high"), drawLimit(rt, "max")
	s.SwapRoom = drawLimit(rt, "swap room")
	return s
}

// A delta across a reset does not exist: it is not 0 and it is not 2^64 less
// something.
func TestCountersThatGoBackAreABeginning(t *testing.T) {
	b := newBench(t, underLimit(30*mib))
	b.run(10)
	for k := range b.totals {
		b.totals[k] = 0
	}
	tk := b.step()
	if tk.d.Verdict != Unknown || tk.d.Rule != "counter-reset" || tk.d.Signals.Cost.Known() {
		t.Errorf("%v by %s, cost %v", tk.d.Verdict, tk.d.Rule, tk.d.Signals.Cost)
	}
	if out := b.st.sides[file].out; out != 0 {
		t.Errorf("%.0f pages are still out after the reset", out)
	}
}

// Deltas do not span a sample that could not be used.
func TestAnInvalidSampleIsNotSubtractedAcross(t *testing.T) {
	f := restingFeed()
	f.counters[memcg.StatRefaultFile] = constant(100)
	b := newBench(t, f)
	b.run(5)
	s := b.trace[5].sample
	s.Stat.Set(memcg.StatAnon, memcg.Absent(memcg.Invalid))
	if d := Decide(&b.st, Input{Sample: &s, Host: &b.host, Elapsed: time.Second}, b.policy); d.Rule != "invalid-counters" || d.Verdict != Unknown {
		t.Errorf("%v by %s", d.Verdict, d.Rule)
	}
	if tk := b.step(); tk.d.Rule != "first-sample" {
		t.Errorf("the sample after it was decided by %s", tk.d.Rule)
	}
	if r := b.step().d.Signals.File.Refaults.or(0); math.Abs(r-100) > 2 {
		t.Errorf("%.1f refaults a second, want 100 still", r)
	}
}

func TestANumberThatIsNoneThrowsTheStateAway(t *testing.T) {
	b := newBench(t, underLimit(30*mib))
	b.run(3)
	b.st.flows.clock = math.NaN()
	b.st.sides[file].out = math.Inf(1)
	if tk := b.step(); tk.d.Rule != "lost-count" || tk.d.Intent.Bytes != 0 {
		t.Errorf("%s, %d bytes", tk.d.Rule, tk.d.Intent.Bytes)
	}
	b.step()
	if tk := b.step(); tk.d.Verdict == Unknown || !b.st.sound() {
		t.Errorf("it did not recover: %v by %s", tk.d.Verdict, tk.d.Rule)
	}
}
