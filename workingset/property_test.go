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
		end := math.Ceil(60/interval) * interval
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
		fine, coarse := distance(4*slice), distance(interval)
		if d := math.Abs(fine - coarse); fine <= 0 || d > 0.1*fine {
			rt.Fatalf("D is %.0f at %.2f s and %.0f at %.2f s", fine, 4*slice, coarse, interval)
		}
	})
}

// Whatever the kernel prints and the operator wants, the bounds hold.
func TestNoInputBreaksTheBounds(t *testing.T) {
	asked := 0
	defer func() {
		if asked == 0 {
			t.Error("no intent asked for anything: the inputs no longer reach the law")
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		var st State
		var sum totals
		h := defaultHost()
		for i := range rapid.IntRange(4, 30).Draw(rt, "samples") {
			tk := tick{at: float64(i), sample: sum.drawSample(rt)}
			h.SwapFree = drawField(rt, "SwapFree", 4<<30)
			in := Input{
				Sample: &tk.sample, Host: &h, ClassicLRU: rapid.Bool().Draw(rt, "classic"),
				Elapsed:   time.Duration(rapid.SampledFrom([]int{1000, 5000, 5000, 100, 60_000, 0, -1}).Draw(rt, "elapsed")) * time.Millisecond,
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
			if tk.d.Intent.Bytes > 0 {
				asked++
			}
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
	if rapid.IntRange(0, 3).Draw(rt, "policy") > 0 {
		p := defaultPolicy()
		p.Law = Law(rapid.IntRange(0, 2).Draw(rt, "law"))
		p.Swappiness.Kind = SwappinessKind(rapid.IntRange(0, 2).Draw(rt, "kind"))
		p.Swappiness.Value = rapid.IntRange(0, 201).Draw(rt, "value")
		p.Swappiness.Min = rapid.IntRange(0, 200).Draw(rt, "min")
		return p
	}
	wild := rapid.SampledFrom([]float64{0.001, 0.005, 0.001, 0.005, 0.01, 0.1, 0, 1, -1, math.NaN(), math.Inf(1)})
	swappiness := rapid.SampledFrom([]int{0, 0, 60, 100, 200, 201, -1, 202})
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
	switch rapid.IntRange(0, 200).Draw(rt, name+" state") {
	case 38:
		return memcg.Absent(memcg.Unsupported)
	case 39:
		return memcg.Absent(memcg.Missing)
	case 40:
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

// totals are counters that mostly grow and sometimes go back to 0.
type totals struct {
	stat  [len(growingStats)]uint64
	other [4]uint64
}

var growingStats = [...]memcg.Stat{
	memcg.StatRefaultAnon, memcg.StatRefaultFile, memcg.StatActivateAnon, memcg.StatActivateFile, memcg.StatScan,
	memcg.StatSteal, memcg.StatPswpout, memcg.StatPgactivate, memcg.StatScanProactive, memcg.StatStealProactive,
}

func (g *totals) next(rt *rapid.T, v *uint64, name string, most uint64) memcg.Field {
	f := drawField(rt, name, most)
	if n, ok := f.Get(); ok && n <= most {
		if rapid.IntRange(0, 200).Draw(rt, name+" reset") == 0 {
			*v = 0
		}
		*v += n
		return memcg.Value(*v)
	}
	return f
}

func (g *totals) drawSample(rt *rapid.T) (s memcg.Sample) {
	s.Stat.SetAll(memcg.Unsupported)
	for _, k := range []memcg.Stat{
		memcg.StatAnon, memcg.StatFile, memcg.StatKernel, memcg.StatInactiveAnon, memcg.StatActiveAnon, memcg.StatInactiveFile,
		memcg.StatActiveFile, memcg.StatUnevictable, memcg.StatSlabReclaimable, memcg.StatFileDirty,
	} {
		s.Stat.Set(k, drawField(rt, k.String(), 1<<28))
	}
	calm := rapid.SampledFrom([]uint64{0, 10, 1 << 20}).Draw(rt, "activity")
	for i, k := range growingStats {
		s.Stat.Set(k, g.next(rt, &g.stat[i], k.String(), calm))
	}
	if rapid.IntRange(0, 20).Draw(rt, "negative") == 0 {
		s.Stat.Set(memcg.StatAnon, memcg.Absent(memcg.Invalid))
	}
	s.Current, s.SwapCurrent = drawField(rt, "current", 2<<30), drawField(rt, "swap", 1<<30)
	s.Pressure.Some.Total = g.next(rt, &g.other[0], "some", calm)
	s.Pressure.Full.Total = g.next(rt, &g.other[1], "full", calm)
	s.EventsLocal.High = g.next(rt, &g.other[2], "high events", calm)
	s.EventsLocal.Max = g.next(rt, &g.other[3], "max events", calm)
	if rapid.IntRange(0, 10).Draw(rt, "consistent") > 0 {
		sum := func(fs ...memcg.Field) memcg.Field { return memcg.SumKnown(fs...) }
		anon := sum(s.Stat.Get(memcg.StatInactiveAnon), s.Stat.Get(memcg.StatActiveAnon))
		file := sum(s.Stat.Get(memcg.StatInactiveFile), s.Stat.Get(memcg.StatActiveFile))
		s.Stat.Set(memcg.StatAnon, anon)
		s.Stat.Set(memcg.StatFile, file)
		s.Stat.Set(memcg.StatUnevictable, memcg.Value(0))
		s.Current = sum(anon, file, memcg.Value(8*mib))
	}
	s.Min = memcg.LimitOf(0)
	if rapid.IntRange(0, 20).Draw(rt, "has min") == 0 {
		s.Min = drawLimit(rt, "min")
	}
	s.High, s.Max = drawLimit(rt, "high"), drawLimit(rt, "max")
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
