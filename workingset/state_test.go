package workingset

import (
	"testing"
	"time"
	"unsafe"

	"github.com/memagent/memagent/memcg"
)

// 10,000 cgroups must fit beside everything else in 64 MiB.
func TestAStateIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(State{}); n > 1536 {
		t.Errorf("a State has %d bytes", n)
	}
}

func TestNoVerdictAllocates(t *testing.T) {
	for name, f := range map[string]feed{
		"file-thrash": underLimit(30 * mib), "streaming": underLimit(330 * mib), "resting": restingFeed(),
	} {
		f.gens = &Generations{List: []Generation{{Age: time.Hour, AnonPages: 1 << 16, FilePages: 1, Evictable: true}}}
		b := newBench(t, f)
		b.policy.SwapGuard, b.policy.Squeeze.IdleAge = true, time.Minute
		b.run(8)
		// The counters stand still from here, which is a sample like any other.
		s := b.trace[len(b.trace)-1].sample
		in := Input{Sample: &s, Host: &b.host, Elapsed: 100 * time.Millisecond, Own: Own{Known: true}, Gens: f.gens}
		st := b.st
		if n := testing.AllocsPerRun(50, func() { Decide(&st, in, b.policy) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestEarlyWakesWithinABurstAreNoThrash(t *testing.T) {
	f := underLimit(30 * mib)
	f.counters[memcg.StatRefaultFile] = constant(17000).from(10.2).until(10.6)
	f.counters[memcg.StatSteal] = constant(17000).from(9.8).until(10.6)
	b := newBench(t, f)
	b.run(9)
	b.interval = slice
	b.run(2)
	b.interval = 1
	b.run(10)
	for _, tk := range b.trace {
		if tk.d.Verdict == FileThrash {
			t.Fatalf("at %.2f s: %v after one burst within a span", tk.at, tk.d.Verdict)
		}
	}
}

func TestASqueezeIsNotStoppedByOneFaultInAShortSample(t *testing.T) {
	f := restingFeed()
	f.some = constant(400).until(1.05).from(1) // 20 us within one of the samples
	b := newBench(t, f)
	b.interval = slice
	b.run(10)
	for _, tk := range b.trace {
		if tk.d.Rule == "squeeze-backs-off" {
			t.Fatalf("at %.2f s: stopped by 20 us of stall", tk.at)
		}
	}
}

// An agent that starts beside an old cgroup does not know what its history
// left out. It finds out with little.
func TestWhatWasOutBeforeTheFirstSampleIsFoundOutByATrial(t *testing.T) {
	b := newBench(t, underLimit(0))
	b.totals[memcg.StatSteal] = 50e6
	b.totals[memcg.StatScan] = 90e6
	b.totals[memcg.StatRefaultFile] = 10e6
	b.run(1800)
	var moved uint64
	trial := false
	for _, tk := range b.trace {
		if tk.d.Intent.Kind == KindMoveAnon {
			moved += tk.d.Intent.Bytes
			trial = trial || tk.d.Rule == "move-anon-trial"
		}
		if tk.at > 0 && tk.at < 10 && tk.d.Signals.File.Distance.Known() {
			t.Fatalf("at %.0f s the distance is %v, though nobody can know", tk.at, tk.d.Signals.File.Distance)
		}
	}
	if most := uint64(budgetShare*150*mib) + pageSize; !trial || moved == 0 || moved > most {
		t.Errorf("%d KiB moved (trial %v), want at most %d", moved>>10, trial, most>>10)
	}
	if v := b.trace[len(b.trace)-1].d.Verdict; v != Streaming {
		t.Errorf("%v after a trial in vain, want streaming", v)
	}
}

// The start is exact where the cgroup is young: what has left and not come
// back is out.
func TestAYoungCgroupsHistoryIsBelieved(t *testing.T) {
	b := newBench(t, restingFeed())
	b.totals[memcg.StatSteal], b.totals[memcg.StatPswpout], b.totals[memcg.StatRefaultFile] = 9000, 2000, 3000
	b.feed.swap = constant(1500 * pageSize)
	b.step()
	if got := b.st.sides[file].out; got != 4000 {
		t.Errorf("%.0f file pages out, want 7000 - 3000", got)
	}
	if got := b.st.sides[anon].out; got != 1500 {
		t.Errorf("%.0f anon pages out, want the 1500 that swap holds", got)
	}
}

func TestEvictionsByTypeOnEveryGenerationOfKernels(t *testing.T) {
	key := func(st *memcg.Stats, k memcg.Stat, v uint64) { st.Set(k, memcg.Value(v)) }
	for _, c := range []struct {
		name       string
		shape      func(a, b *memcg.Sample)
		anon, file float64 // pages
		ok         bool
	}{
		{"6.13 and later: pages written to swap", func(a, b *memcg.Sample) {
			key(&a.Stat, memcg.StatPswpout, 0)
			key(&b.Stat, memcg.StatPswpout, 300)
		}, 300, 700, true},
		{"zswap and zero pages count, a page written back from zswap once", func(a, b *memcg.Sample) {
			for k, v := range map[memcg.Stat]uint64{memcg.StatPswpout: 100, memcg.StatZswpout: 300, memcg.StatZeroSwapout: 50, memcg.StatZswpwb: 80} {
				key(&a.Stat, k, 0)
				key(&b.Stat, k, v)
			}
		}, 370, 630, true},
		{"6.12: zswpout alone is not all of it, swap in use is", func(a, b *memcg.Sample) {
			key(&a.Stat, memcg.StatZswpout, 0)
			key(&b.Stat, memcg.StatZswpout, 5)
			b.SwapCurrent = memcg.Value(200 * pageSize)
			key(&b.Stat, memcg.StatRefaultAnon, 40)
		}, 240, 760, true},
		{"6.1: swap in use shrinks, nothing was evicted that did not come back", func(a, b *memcg.Sample) {
			a.SwapCurrent = memcg.Value(100 * pageSize)
			key(&b.Stat, memcg.StatRefaultAnon, 40)
		}, 0, 1000, true},
		{"no swap accounting", func(a, b *memcg.Sample) {
			a.SwapCurrent, b.SwapCurrent = memcg.Absent(memcg.Unsupported), memcg.Absent(memcg.Unsupported)
		}, 0, 1000, true},
		{"demoted pages have not left", func(a, b *memcg.Sample) {
			key(&a.Stat, memcg.StatPswpout, 0)
			key(&b.Stat, memcg.StatPswpout, 0)
			key(&a.Stat, memcg.StatDemoteKswapd, 0)
			key(&b.Stat, memcg.StatDemoteKswapd, 400)
		}, 0, 600, true},
		{"a counter that went back", func(a, b *memcg.Sample) {
			key(&a.Stat, memcg.StatPswpout, 10)
			key(&b.Stat, memcg.StatPswpout, 9)
		}, 0, 0, false},
		{"swap that could not be read this time", func(a, b *memcg.Sample) { b.SwapCurrent = memcg.Field{} }, 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := &memcg.Sample{Current: memcg.Value(0), SwapCurrent: memcg.Value(0)}, &memcg.Sample{Current: memcg.Value(0), SwapCurrent: memcg.Value(0)}
			for _, k := range []memcg.Stat{memcg.StatRefaultAnon, memcg.StatRefaultFile, memcg.StatSteal} {
				key(&a.Stat, k, 0)
				key(&b.Stat, k, 0)
			}
			key(&b.Stat, memcg.StatSteal, 1000)
			c.shape(a, b)
			old, now := countersOf(a), countersOf(b)
			d, ok := now.since(&old, Own{}, false, pageSize)
			if ok != c.ok || ok && (d.evict[anon] != c.anon || d.evict[file] != c.file) {
				t.Errorf("%.0f anon, %.0f file, %v; want %.0f, %.0f, %v", d.evict[anon], d.evict[file], ok, c.anon, c.file, c.ok)
			}
		})
	}
}

func TestALongAndShortSamplesWeighByTheirTime(t *testing.T) {
	var f flows
	add := func(seconds, rate float64) {
		d := deltas{seconds: seconds}
		d.refault[file] = rate * seconds
		f.add(&d, [types]float64{}, pageSize)
	}
	add(60, 0)
	for range 10 {
		add(1, 100)
	}
	// One time constant after the change, 1 - 1/e of it shows.
	if got := f.rate(f.refault[file]).or(-1); got < 62 || got > 65 {
		t.Errorf("%.1f a second, want 63.2", got)
	}
}

func TestWhatSwapNoLongerHoldsIsNotOut(t *testing.T) {
	f := restingFeed()
	f.counters[memcg.StatSteal] = constant(1000).until(10)
	f.counters[memcg.StatPswpout] = constant(1000).until(10)
	f.swap = ramp(0, 1000*pageSize).until(12) // a process that owned it all exits
	b := newBench(t, f)
	if out := b.run(10).d.Signals.Anon.Out.or(0); out < 9000*pageSize {
		t.Fatalf("%.0f bytes out", out)
	}
	if out := b.run(5).d.Signals.Anon.Out.or(-1); out != 0 {
		t.Errorf("%.0f bytes out, swap holds none", out)
	}
}
