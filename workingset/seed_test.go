package workingset

import (
	"math"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// Each test holds one sentence of the seeds, which it quotes, as far as
// userspace can.

// Seed 000, patch 03, the comment in mm/workingset.c: "a counter for inactive
// evictions and activations is maintained (node->inactive_age)".
func TestTheClockCountsEvictionsAndActivations(t *testing.T) {
	f := restingFeed()
	f.counters[memcg.StatSteal] = constant(100)
	f.counters[memcg.StatPswpout] = constant(40)
	f.counters[memcg.StatActivateAnon] = constant(7)
	f.counters[memcg.StatActivateFile] = constant(13)
	f.counters[memcg.StatPgactivate] = constant(1000)
	for _, c := range []struct {
		classic bool
		want    float64
	}{{false, 120}, {true, 1120}} {
		f.classic = c.classic
		b := newBench(t, f)
		if got := b.run(30).d.Signals.Clock.or(0); math.Abs(got-c.want) > 1 {
			t.Errorf("classic LRU %v: the clock runs at %.1f, want %.0f", c.classic, got, c.want)
		}
	}
}

// Seed 000, patch 03, workingset_refault: "We don't act on pages that couldn't
// stay resident even if all the memory was available to the page cache."
//
//	if (refault_distance > active) goto out;
func TestPagesThatCouldNotStayAreNotActedOn(t *testing.T) {
	l := lists{active: [types]float64{anon: 0, file: 100 * pageSize}}
	for _, c := range []struct {
		name    string
		out     float64
		inReach bool
		need    float64 // pages
	}{
		{"nearer than the working set", 99, true, 99},
		{"exactly as far: the seed asks for more", 100, true, 100},
		{"farther", 101, false, 0},
	} {
		var st State
		st.flows = flows{seconds: 1, evict: [types]float64{file: 50}, refault: [types]float64{file: 50}, clock: 50}
		st.sides[file].out = c.out
		var s Side
		st.fillSide(&s, file, &l, false, pageSize)
		if s.InReach != c.inReach || s.Need.or(-1) != c.need*pageSize {
			t.Errorf("%s: in reach %v, need %v; want %v, %.0f pages", c.name, s.InReach, s.Need, c.inReach, c.need)
		}
	}
}

// Seed 000 compares with the active list of the page's own type; kernels since
// 5.9 with all that could be traded (workingset_test_recent).
func TestTheWorkingSetIsWhatCouldBeTraded(t *testing.T) {
	l := lists{inactive: [types]float64{anon: 1, file: 10}, active: [types]float64{anon: 100, file: 1000}}
	for _, c := range []struct {
		t    int
		swap bool
		want float64
	}{{file, true, 1101}, {file, false, 1000}, {anon, true, 1110}, {anon, false, 1010}} {
		if got := l.workingset(c.t, c.swap); got != c.want {
			t.Errorf("type %d, swap %v: %.0f, want %.0f", c.t, c.swap, got, c.want)
		}
	}
}

// Seed 000, cover letter, scenario of workingset detection: hot-2's "re-access
// interval (96+128 MB) is more 190MB, so it cannot be promoted without
// workingset detection". In sums: the distance of what returns is within reach
// of the 280 MB there are.
func TestTheReaccessIntervalOfHotTwoIsInReach(t *testing.T) {
	const mb = mib / pageSize
	w := newWorld(280 * mb)
	w.victim = func(*world) int { return anon }
	w.grow(anon, 0)
	loop := w.looper(w.grow(anon, 300*mb), 300*mb, 20_000)
	d := w.live(60, Policy{}, false, loop)
	if !d.Signals.Anon.InReach || d.Signals.Anon.Need.or(0) < 15*mib {
		t.Errorf("20 MB too many for 280: %+v", d.Signals.Anon)
	}
}

// Seed 003's title: "scan anonymous pages on file refaults".
func TestFileRefaultsReachAnon(t *testing.T) {
	b := newBench(t, underLimit(30*mib))
	b.run(6)
	for _, tk := range b.trace {
		if i := tk.d.Intent; i.Kind == KindMoveAnon {
			if s, _ := i.Swappiness.Get(); s != 200 || i.Bytes < 20*mib || i.Bytes > 40*mib {
				t.Errorf("%d MiB at swappiness %v, want about 30 MiB at 200", i.Bytes/mib, i.Swappiness)
			}
			return
		}
	}
	t.Errorf("no anon was moved: %+v", b.trace[len(b.trace)-1].d)
}

// Seed 003, the objection: "How does the reclaim behave with workloads with
// file backed data set not fitting into the memory? Aren't we going to to swap
// a lot - something that the heuristic is protecting from?"
func TestNothingIsSwappedForASetThatCannotFit(t *testing.T) {
	b := newBench(t, underLimit(330*mib))
	b.run(120)
	for _, tk := range b.trace {
		if s, _ := tk.d.Intent.Swappiness.Get(); tk.d.Intent.Bytes > 0 && s != 0 && tk.at > 1 {
			t.Fatalf("at %.0f s: %v of %d bytes at swappiness %d", tk.at, tk.d.Intent.Kind, tk.d.Intent.Bytes, s)
		}
	}
}
