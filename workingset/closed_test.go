package workingset

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// settled is a world of cold anon, cold file and a hot set that is touched
// rate times a second, without a limit that binds.
func settled(cold, hot, rate int) (*world, func(int)) {
	w := newWorld(1 << 20)
	c, f := w.grow(anon, cold), w.grow(file, cold)
	for i := range cold {
		w.touch(c + i)
		w.touch(f + i)
	}
	h := w.grow(anon, hot)
	at := 0
	return w, func(int) {
		for range rate {
			w.touch(h + at)
			at = (at + 1) % hot
		}
	}
}

func TestTheSqueezeTakesWhatIsColdAndStopsAtWhatIsHot(t *testing.T) {
	for _, law := range []Law{Memagent, TMO} {
		const cold, hot = 20_000, 10_000
		w, work := settled(cold, hot, 5000)
		p := defaultPolicy()
		p.Law = law
		p.Swappiness = Swappiness{Kind: Fixed, Value: 100}
		var stall float64
		w.live(1200, p, true, func(s int) {
			if s == 900 {
				stall = w.stall
			}
			work(s)
		})
		left := w.lists[anon].n + w.lists[file].n
		share := (w.stall - stall) / 1e6 / 300
		t.Logf("%v: %d pages left of %d, %.4f %% of time stalled at the end", law, left, 2*cold+hot, 100*share)
		if left > hot*5/4 {
			t.Errorf("%v: %d pages left, the hot set is %d", law, left, hot)
		}
		if share > 0.002 {
			t.Errorf("%v: %.3f %% of time stalled in the last five minutes, target 0.1 %%", law, 100*share)
		}
	}
}

func TestWithAgesOnlyColdGenerationsGo(t *testing.T) {
	f := restingFeed()
	f.gens = &Generations{List: []Generation{
		{Age: 10 * time.Minute, AnonPages: 1000, FilePages: 500, Evictable: true},
		{Age: 5 * time.Second, AnonPages: 9000, FilePages: 9000, Evictable: true},
		{Age: time.Hour, AnonPages: 9000, FilePages: 9000},
	}}
	b := newBench(t, f)
	b.interval = 5
	b.policy.Squeeze.IdleAge = time.Minute
	d := b.run(10).d
	if want := uint64(1500 * pageSize); d.Rule != "squeeze-cold" || d.Intent.Bytes != want || d.Intent.OlderThan != time.Minute {
		t.Errorf("%d bytes older than %v by %s, want %d", d.Intent.Bytes, d.Intent.OlderThan, d.Rule, want)
	}
	b.policy.Swappiness = Swappiness{Kind: Fixed}
	if d = b.run(10).d; d.Intent.Bytes != 500*pageSize {
		t.Errorf("a policy of never swapping: %d bytes, want the file among them", d.Intent.Bytes)
	}
}

func TestAnEpisodeWithoutEffectCoolsDownLongerEachTime(t *testing.T) {
	// A plant that keeps refaulting whatever is moved.
	b := newBench(t, underLimit(30*mib))
	b.interval = 5
	b.run(3600)
	var moved uint64
	var ends []float64
	cooling := false
	for _, tk := range b.trace {
		if tk.d.Intent.Kind == KindMoveAnon {
			moved += tk.d.Intent.Bytes
		}
		if now := tk.d.Rule == "cooling-down" || tk.d.Verdict == Streaming; now && !cooling {
			ends = append(ends, tk.at)
			cooling = true
		} else if tk.d.Verdict == FileThrash && tk.d.Rule != "cooling-down" {
			cooling = false
		}
	}
	if len(ends) < 4 {
		t.Fatalf("%d cool-downs in an hour: %v", len(ends), ends)
	}
	for i := 2; i < len(ends); i++ {
		if a, b := ends[i-1]-ends[i-2], ends[i]-ends[i-1]; b < 1.3*a && b < 1800 {
			t.Errorf("cool-downs begin at %v: the pauses do not grow", ends)
			break
		}
	}
	if most := uint64(len(ends)+1) * budgetBytes; moved > most {
		t.Errorf("%d MiB moved in an hour for nothing, want at most %d", moved/mib, most/mib)
	}
}

func TestAnonIsNotMovedWhere(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		shape      func(*bench)
	}{
		{"the policy forbids swapping", "policy-forbids-move", func(b *bench) { b.policy.Swappiness = Swappiness{Kind: Fixed} }},
		{"the policy passes nothing", "policy-forbids-move", func(b *bench) { b.policy.Swappiness = Swappiness{Kind: Kernel} }},
		{"there is no swap", "file", func(b *bench) { b.host.SwapFree, b.host.SwapTotal = memcg.Value(0), memcg.Value(0) }},
		{"anon is not cheap", "anon-not-cheap", func(b *bench) {
			b.host.Swap = memcg.SwapSSD
			b.feed.counters[memcg.StatRefaultAnon] = constant(6000).from(1)
			b.feed.counters[memcg.StatPswpout] = constant(6000)
			b.feed.counters[memcg.StatSteal] = constant(23_000)
			b.feed.swap = constant(100 * mib)
			b.feed.some = constant(0)
			b.feed.max = memcg.Unlimited()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, underLimit(30*mib))
			b.policy.Headroom.On = false
			c.shape(b)
			b.run(20)
			for _, tk := range b.trace {
				if tk.d.Intent.Kind == KindMoveAnon {
					t.Fatalf("at %.0f s: %d bytes", tk.at, tk.d.Intent.Bytes)
				}
			}
			last := b.trace[len(b.trace)-1].d
			if c.rule != "file" && last.Rule != c.rule {
				t.Errorf("%v by %s, want %s", last.Verdict, last.Rule, c.rule)
			}
		})
	}
}

func TestAutoSwappinessFollowsTheCheaperSide(t *testing.T) {
	s := Swappiness{Kind: Auto, Base: 100, Min: 20, Max: 180}
	for _, c := range []struct {
		name       string
		anon, file float64
		low, top   float64
	}{
		{"no cost: the base", 0, 0, 100, 100},
		{"equal cost: the base", 5000, 5000, 100, 100},
		{"file dear: up, but file keeps a third", 0, 1e6, 132, 134},
		{"anon dear: down, but anon keeps a third", 1e6, 0, 66, 68},
	} {
		if got := s.auto(c.anon, c.file); got < c.low || got > c.top {
			t.Errorf("%s: %.1f, want %.0f to %.0f", c.name, got, c.low, c.top)
		}
	}
	if n, ok := s.pass(FigureOf(190)).Get(); n != 180 || !ok {
		t.Errorf("190 passes %d, want the policy's 180", n)
	}
	if n, ok := (Swappiness{Kind: Kernel}).pass(FigureOf(100)).Get(); ok {
		t.Errorf("a policy that passes nothing passes %d", n)
	}
}

func TestPricesFollowTheStallThatIsSeen(t *testing.T) {
	f := restingFeed()
	f.counters[memcg.StatSteal] = constant(1000)
	f.counters[memcg.StatRefaultFile] = constant(1000)
	f.some = constant(60_000) // 60 us a refault
	b := newBench(t, f)
	if p := b.run(120).d.Signals.File.Price.or(0); p < 58 || p > 62 {
		t.Errorf("%.0f us a refault, want 60", p)
	}
	f.some, f.highs = constant(900_000), constant(10)
	f.high = memcg.LimitOf(300 * mib)
	b = newBench(t, f)
	if p := b.run(120).d.Signals.File.Price.or(0); p != priceUnknown {
		t.Errorf("a throttle was taken for the price of a refault: %.0f us", p)
	}
}

func TestTheSwapGuardLetsGo(t *testing.T) {
	passing := func() feed {
		f := underLimit(330 * mib)
		f.counters[memcg.StatPswpout] = constant(1000)
		f.gauges[memcg.StatAnon] = ramp(150*mib, -1000*pageSize)
		f.swap = ramp(mib, 1000*pageSize)
		return f
	}
	for _, c := range []struct {
		name  string
		shape func(f *feed)
		want  bool
	}{
		{"while the stream costs anon, it holds", func(*feed) {}, true},
		{"file runs low", func(f *feed) {
			f.gauges[memcg.StatInactiveFile], f.gauges[memcg.StatActiveFile] = constant(6*mib), constant(6*mib)
		}, false},
		{"file is low since headroom is kept, it holds", func(f *feed) {
			f.gauges[memcg.StatInactiveFile], f.gauges[memcg.StatActiveFile] = constant(3*mib), constant(3*mib)
			f.current = constant(165 * mib)
		}, true},
		{"anon grows", func(f *feed) { f.gauges[memcg.StatAnon] = ramp(100*mib, mib) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := passing()
			c.shape(&f)
			b := newBench(t, f)
			b.policy.SwapGuard, b.policy.Headroom = true, Headroom{On: true, Bytes: 15 * mib}
			if d := b.run(15).d; d.Intent.SwapGuard != c.want {
				t.Errorf("%v by %s: guard %v", d.Verdict, d.Rule, d.Intent.SwapGuard)
			}
		})
	}
}

// A guard of the agent's own must not make the agent believe there is no swap.
func TestTheGuardDoesNotChangeTheWorkingSet(t *testing.T) {
	b := newBench(t, underLimit(330*mib))
	b.run(12)
	s := b.trace[len(b.trace)-1].sample
	s.SwapRoom = memcg.LimitOf(0)
	for _, held := range []bool{false, true} {
		st := b.st
		d := Decide(&st, Input{Sample: &s, Host: &b.host, Elapsed: time.Second, Own: Own{Known: true}, GuardHeld: held}, b.policy)
		want := 8.0 * mib
		if held {
			want += 150 * mib
		}
		if got := d.Signals.File.WorkingSet.or(-1); got != want {
			t.Errorf("guard held %v: working set %.0f MiB, want %.0f", held, got/mib, want/mib)
		}
	}
}

// What a guard of the agent's own keeps from going out is no sign of a limit that
// is too small: taken for one it would end the guard, and begin it again.
func TestTheGuardDoesNotMakeAStreamLimitBound(t *testing.T) {
	for held, want := range map[bool]Verdict{true: Streaming, false: LimitBound} {
		b := newBench(t, underLimit(330*mib))
		b.policy.SwapGuard = true
		b.run(12)
		s, st := b.trace[len(b.trace)-1].sample, b.st
		s.SwapRoom = memcg.LimitOf(0)
		s.Stat.Set(memcg.StatFile, memcg.Value(mib))
		s.Stat.Set(memcg.StatInactiveFile, memcg.Value(mib))
		s.Stat.Set(memcg.StatActiveFile, memcg.Value(0))
		s.Current = memcg.Value(152.5 * mib)
		s.EventsLocal.Max = memcg.Value(1)
		d := Decide(&st, Input{Sample: &s, Host: &b.host, Elapsed: time.Second, Own: Own{Known: true}, GuardHeld: held}, b.policy)
		if d.Verdict != want {
			t.Errorf("guard held %v: %v, want %v", held, d.Verdict, want)
		}
	}
}

func TestNothingMovesBackWithinAMinute(t *testing.T) {
	f := underLimit(30 * mib)
	f.max = memcg.Unlimited()
	f.counters[memcg.StatRefaultFile] = f.counters[memcg.StatRefaultFile].until(3.5)
	f.counters[memcg.StatPswpout] = constant(8000).from(16)
	f.counters[memcg.StatSteal] = constant(17000).until(3.5).plus(constant(8000).from(16))
	f.counters[memcg.StatRefaultAnon] = constant(8000).from(16.5)
	f.swap = constant(60 * mib)
	b := newBench(t, f)
	b.run(120)
	last, moved := 0.0, map[IntentKind]int{}
	for _, tk := range b.trace {
		k := tk.d.Intent.Kind
		if k == KindMoveFile && tk.at-last < turnRest.Seconds() {
			t.Fatalf("at %.0f s file moves, at %.0f s anon still did", tk.at, last)
		}
		if k == KindMoveAnon {
			last = tk.at
		}
		moved[k]++
	}
	if moved[KindMoveAnon] == 0 || moved[KindMoveFile] == 0 {
		t.Errorf("moves by kind: %v; want both", moved)
	}
}

// Refault distance says how much to move, once: what is out at that moment,
// which is within half of what the set really lacks.
func TestAMoveIsNoLargerThanTheNeed(t *testing.T) {
	const lacks = 20 * mib
	b := newBench(t, underLimit(lacks))
	b.policy.Headroom.On = false
	b.run(4)
	var moved uint64
	for _, tk := range b.trace {
		if tk.d.Intent.Bytes == 0 {
			continue
		}
		moved += tk.d.Intent.Bytes
		if out, _ := tk.d.Signals.File.Out.Get(); float64(moved) > out {
			t.Errorf("at %.0f s: %d bytes moved of %.0f that are out", tk.at, moved, out)
		}
	}
	if moved < lacks*3/4 || moved > lacks*3/2 {
		t.Errorf("%d MiB moved before the first settles, %d are needed", moved/mib, lacks/mib)
	}
}

func TestHeadroomTakesFileOnlyWhileFileGrows(t *testing.T) {
	for _, c := range []struct {
		name string
		anon stream
		want int
	}{{"file grows", constant(100 * mib), 0}, {"anon grows", ramp(100*mib, 4*mib), 60}} {
		f := restingFeed()
		f.high = memcg.LimitOf(200 * mib)
		f.current = ramp(170*mib, 4*mib)
		f.gauges[memcg.StatAnon] = c.anon
		b := newBench(t, f)
		d := b.run(7).d
		if s, _ := d.Intent.Swappiness.Get(); d.Verdict != Growing || d.Intent.Kind != KindHeadroom || s != c.want {
			t.Errorf("%s: %v, %v at swappiness %d, want headroom at %d", c.name, d.Verdict, d.Intent.Kind, s, c.want)
		}
	}
}
