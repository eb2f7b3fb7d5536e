package workingset

import (
	"testing"

	"github.com/memagent/memagent/memcg"
)

// underLimit is the experiment of seed 003 at the size it was repeated at: a
// limit of 180 MiB, 150 MiB of idle anon, and a file that is read in a loop at
// 17,000 pages a second, of which away bytes are out at any time.
func underLimit(away float64) feed {
	const rate = 17000
	f := restingFeed()
	f.max = memcg.LimitOf(180 * mib)
	f.current = constant(179.5 * mib)
	f.gauges = map[memcg.Stat]stream{
		memcg.StatAnon: constant(150 * mib), memcg.StatFile: constant(28 * mib), memcg.StatKernel: constant(1.5 * mib),
		memcg.StatInactiveAnon: constant(100 * mib), memcg.StatActiveAnon: constant(50 * mib),
		memcg.StatInactiveFile: constant(20 * mib), memcg.StatActiveFile: constant(8 * mib),
	}
	f.counters[memcg.StatSteal] = constant(rate)
	f.counters[memcg.StatScan] = constant(rate * 1.5)
	f.counters[memcg.StatRefaultFile] = constant(rate).from(away / pageSize / rate)
	f.some = constant(600_000)
	return f
}

func TestEachVerdictHasItsSituation(t *testing.T) {
	for _, c := range []struct {
		want  Verdict
		name  string
		shape func(*feed)
	}{
		{Idle, "nothing is touched", func(*feed) {}},
		{Fits, "a few refaults within the target", func(f *feed) {
			f.counters[memcg.StatRefaultFile] = constant(2)
			f.some = constant(500)
		}},
		{Fits, "the kernel turns the cache over without anybody missing it", func(f *feed) {
			f.counters[memcg.StatSteal] = constant(50)
			f.counters[memcg.StatRefaultFile] = constant(2)
		}},
		{Growing, "1 % charged a second", func(f *feed) { f.current = ramp(184*mib, 2*mib) }},
		{Growing, "what grows is swapped at once", func(f *feed) {
			f.counters[memcg.StatSteal] = constant(1000)
			f.counters[memcg.StatPswpout] = constant(1000)
		}},
		{FileThrash, "a loop that would fit beside less idle anon", func(f *feed) { *f = underLimit(30 * mib) }},
		{FileThrash, "the same while every fourth second loses its refaults", func(f *feed) {
			*f = underLimit(30 * mib)
			f.counters[memcg.StatRefaultFile] = f.counters[memcg.StatRefaultFile].gap(4)
			f.counters[memcg.StatSteal] = f.counters[memcg.StatSteal].gap(4)
		}},
		{Streaming, "a loop that cannot fit whatever is swapped", func(f *feed) { *f = underLimit(330 * mib) }},
		{Growing, "anon grows into the limit and cold file makes room", func(f *feed) {
			*f = underLimit(0)
			f.counters[memcg.StatSteal] = constant(1000)
			f.counters[memcg.StatRefaultFile] = constant(0)
			f.gauges[memcg.StatAnon] = ramp(150*mib, 1000*pageSize)
			f.some = constant(0)
		}},
		{Streaming, "a file read once, at the limit", func(f *feed) {
			*f = underLimit(0)
			f.counters[memcg.StatRefaultFile] = constant(0)
		}},
		{AnonThrash, "anon out and in again, file at rest", func(f *feed) {
			f.counters[memcg.StatSteal] = constant(5000)
			f.counters[memcg.StatPswpout] = constant(5000)
			f.counters[memcg.StatRefaultAnon] = constant(5000).from(1)
			f.swap = constant(40 * mib)
		}},
		{LimitBound, "both sides thrash and cost alike", func(f *feed) {
			*f = underLimit(10 * mib)
			f.counters[memcg.StatSteal] = constant(20_000)
			f.counters[memcg.StatPswpout] = constant(18_000)
			f.counters[memcg.StatRefaultAnon] = constant(18_000).from(1)
			f.counters[memcg.StatRefaultFile] = constant(2000).from(1)
			f.swap = constant(80 * mib)
			f.some = constant(0)
		}},
		{LimitBound, "what must stay fills the limit", func(f *feed) {
			*f = underLimit(30 * mib)
			f.gauges[memcg.StatInactiveAnon] = constant(120 * mib)
			f.gauges[memcg.StatInactiveFile] = constant(2 * mib)
			f.gauges[memcg.StatFile] = constant(10 * mib)
			f.swapRoom = memcg.LimitOf(0)
		}},
		{Throttled, "stopped at memory.high with nothing to take", func(f *feed) {
			f.high = memcg.LimitOf(183 * mib)
			f.highs = constant(100)
			f.full = constant(800_000)
			f.swapRoom = memcg.LimitOf(0)
			f.gauges[memcg.StatInactiveAnon] = constant(134 * mib)
			f.gauges[memcg.StatFile], f.gauges[memcg.StatInactiveFile] = constant(6*mib), constant(3*mib)
			f.gauges[memcg.StatActiveFile] = constant(3 * mib)
		}},
		{Throttled, "stopped at memory.high while the kernel scans in vain", func(f *feed) {
			f.high = memcg.LimitOf(183 * mib)
			f.highs = constant(100)
			f.full = constant(800_000)
			f.counters[memcg.StatScan], f.counters[memcg.StatSteal] = constant(100_000), constant(3000)
		}},
	} {
		t.Run(c.want.String()+": "+c.name, func(t *testing.T) {
			f := restingFeed()
			c.shape(&f)
			b := newBench(t, f)
			b.policy.Squeeze.On = false
			b.policy.Swappiness = Swappiness{Kind: Kernel} // no move changes the situation
			b.run(12)
			for _, tk := range b.trace[8:] {
				if tk.d.Verdict != c.want {
					t.Fatalf("at %.0f s: %v, want %v\nfile %+v\nanon %+v\n%+v", tk.at, tk.d.Verdict, c.want, tk.d.Signals.File, tk.d.Signals.Anon, tk.because)
				}
			}
			if v := b.trace[0].d.Verdict; v != Unknown {
				t.Errorf("the first sample says %v, though there was none before it", v)
			}
		})
	}
}

func TestACgroupWithoutAProcessIsIdleNotDyingAndLeftAlone(t *testing.T) {
	b := newBench(t, restingFeed())
	b.run(5)
	s := b.trace[5].sample
	s.Populated = memcg.Value(0)
	decide := func(s *memcg.Sample) Decision {
		return Decide(&b.st, Input{Sample: s, Host: &b.host, Elapsed: 1e9}, b.policy)
	}
	d := decide(&s)
	if d.Verdict != Idle || d.Rule != "no-process" || d.Intent.Bytes != 0 || d.Hold != (Hold{}) || d.Intent.SwapGuard {
		t.Errorf("%v by %s: %+v, %+v", d.Verdict, d.Rule, d.Intent, d.Hold)
	}
	if d.Intent.Floor == 0 {
		t.Error("its floor is not known any more")
	}
	// What the kernel took from it meanwhile is no news when a process comes.
	n, _ := s.Stat.Get(memcg.StatSteal).Get()
	s.Stat.Set(memcg.StatSteal, memcg.Value(n+1<<20))
	decide(&s)
	s.Populated = memcg.Value(1)
	if d := decide(&s); d.Rule == "no-process" || d.Signals.KernelEvicts.or(1) != 0 {
		t.Errorf("%v by %s, evictions of then: %+v", d.Verdict, d.Rule, d.Signals.KernelEvicts)
	}
	var bare memcg.Sample
	bare.Populated = memcg.Value(0)
	if d := decide(&bare); d.Verdict != Idle || d.Rule != "no-process" || len(d.Because) > 0 {
		t.Errorf("without counters: %v by %s %v", d.Verdict, d.Rule, d.Because)
	}
}

func TestEveryVerdictHasANameAndASentence(t *testing.T) {
	seen := map[string]bool{}
	for v := range Verdict(len(verdicts)) {
		if v.String() == "" || v.Sentence() == "" || seen[v.String()] {
			t.Errorf("verdict %d: %q, %q", v, v.String(), v.Sentence())
		}
		seen[v.String()] = true
	}
	if len(seen) != 9 {
		t.Errorf("%d verdicts, want nine", len(seen))
	}
}

// What left half a minute ago and is read once is a burst.
func TestOneCostlySampleIsNoThrash(t *testing.T) {
	f := underLimit(30 * mib)
	f.counters[memcg.StatRefaultFile] = constant(17000).from(35).until(36)
	f.counters[memcg.StatSteal] = constant(17000).from(4.5).until(5.5).plus(constant(17000).from(35).until(36))
	b := newBench(t, f)
	b.run(50)
	for _, tk := range b.trace {
		if tk.d.Verdict == FileThrash || tk.d.Intent.Kind == KindMoveAnon {
			t.Errorf("at %.0f s: %v, %v", tk.at, tk.d.Verdict, tk.d.Intent.Kind)
		}
	}
}

// What left three seconds ago and comes back whole is a loop, though a pause
// follows every pass: the next pass may be four samples away.
func TestASetThatComesRoundIsThrashAtOnce(t *testing.T) {
	f := underLimit(30 * mib)
	f.counters[memcg.StatRefaultFile] = constant(7680).from(8).until(9)
	f.counters[memcg.StatSteal] = constant(7680).from(5).until(6).plus(constant(7680).from(8).until(9))
	b := newBench(t, f)
	b.run(9)
	last := b.trace[len(b.trace)-1].d
	if last.Verdict != FileThrash || last.Intent.Kind != KindMoveAnon || last.Intent.Bytes == 0 {
		t.Errorf("got %v, %v for %d bytes (%s)", last.Verdict, last.Intent.Kind, last.Intent.Bytes, last.Rule)
	}
}

// Noise of a third on every counter, and an event of background reads, change
// no verdict.
func TestVerdictsStandNoise(t *testing.T) {
	for want, away := range map[Verdict]float64{FileThrash: 30 * mib, Streaming: 330 * mib} {
		f := underLimit(away)
		for i, k := range []memcg.Stat{memcg.StatSteal, memcg.StatRefaultFile} {
			f.counters[k] = f.counters[k].plus(constant(200)).noise(uint64(i), 0.33)
		}
		b := newBench(t, f)
		b.policy.Swappiness = Swappiness{Kind: Kernel}
		b.run(60)
		for _, tk := range b.trace[5:] {
			if tk.d.Verdict != want && (want != Streaming || tk.at > 8) {
				t.Errorf("at %.0f s: %v, want %v: %+v", tk.at, tk.d.Verdict, want, tk.d.Signals.File)
				break
			}
		}
	}
}
