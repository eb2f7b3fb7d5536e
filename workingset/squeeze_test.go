package workingset

import (
	"math"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestTMOSqueezesByTheFormula(t *testing.T) {
	for _, c := range []struct {
		name            string
		pressure, price float64 // share of time, file refaults a second
		want            float64 // of current * max_step
		rule            string
	}{
		{"nothing hurts: the whole step", 0, 0, 1, "squeeze-tmo"},
		{"half the pressure target: half the step", 0.0005, 0, 0.5, "squeeze-tmo"},
		{"half the cost target: half the step", 0, 0.0005 * 1e6 / priceUnknown, 0.5, "squeeze-tmo"},
		{"the worse of both counts, not their sum", 0.0005, 0.00025 * 1e6 / priceUnknown, 0.5, "squeeze-tmo"},
		{"pressure at the target: nothing, and no stop", 0.001, 0, 0, "squeeze-tmo"},
		{"pressure above the target: stop", 0.002, 0, 0, "squeeze-backs-off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := restingFeed()
			f.some = constant(c.pressure * 1e6)
			f.counters[memcg.StatRefaultFile] = constant(c.price)
			b := newBench(t, f)
			b.policy.Law = TMO
			b.interval = 10
			b.step()
			d := b.step().d
			want := 184 * mib * 0.005 * c.want
			if math.Abs(float64(d.Intent.Bytes)-want) > pageSize+want/20 || d.Rule != c.rule {
				t.Errorf("asked for %d bytes by %s, want %.0f by %s", d.Intent.Bytes, d.Rule, want, c.rule)
			}
		})
	}
}

func TestTMOHalvesTheStepAndHoldsAfterAStop(t *testing.T) {
	f := restingFeed()
	f.some = constant(5000).until(10) // 0.5 % for ten seconds
	b := newBench(t, f)
	b.policy.Law = TMO
	b.interval = 5
	full := uint64(184 * mib / 200)
	b.run(10)
	if got := b.st.squeeze.halvings; got != 2 {
		t.Fatalf("two stops made %d halvings", got)
	}
	held := 0
	for b.at < 200 {
		d := b.step().d
		switch {
		case d.Rule == "squeeze-holds":
			held++
		case d.Intent.Bytes > full/4+pageSize && b.at < 90:
			t.Fatalf("at %.0f s: %d bytes, want at most a quarter step %d", b.at, d.Intent.Bytes, full/4)
		}
	}
	if want := int(holdAfterStop.Seconds()/5) - 1; held < want || held > want+1 {
		t.Errorf("held for %d samples, want %d", held, want)
	}
	if d := b.trace[len(b.trace)-1].d; d.Intent.Bytes < full-pageSize {
		t.Errorf("after three quiet minutes %d bytes, want the whole step %d again", d.Intent.Bytes, full)
	}
}

func TestTMOWaitsForASecondBetweenSteps(t *testing.T) {
	b := newBench(t, restingFeed())
	b.policy.Law = TMO
	b.interval = 0.25
	b.run(10)
	n := 0
	for _, tk := range b.trace {
		if tk.d.Intent.Bytes > 0 {
			n++
		}
	}
	if n < 9 || n > 11 {
		t.Errorf("%d steps in ten seconds of quarter-second samples, want ten", n)
	}
}

func TestSenpaiActsOnEverySixthSample(t *testing.T) {
	b := newBench(t, restingFeed())
	b.policy.Law = Senpai
	b.run(24)
	for i, tk := range b.trace {
		if want := i > 0 && i%6 == 0; (tk.d.Intent.Bytes > 0) != want {
			t.Errorf("sample %d: %d bytes by %s, want some: %v", i, tk.d.Intent.Bytes, tk.d.Rule, want)
		}
		if n := tk.d.Intent.Bytes; n > 0 {
			floor := tk.d.Intent.Floor
			if want := (184*mib - floor) / 100; n > want || n+pageSize < want {
				t.Errorf("sample %d: %d bytes, want 1 %% of %d above the floor", i, n, 184*mib-floor)
			}
		}
	}
}

func TestSenpaiBacksOffAtATenthOfAPercent(t *testing.T) {
	for _, avg := range []float64{0.1, 50, math.NaN()} {
		var q squeezer
		s := &memcg.Sample{}
		s.Pressure.Some = memcg.Stall{Total: memcg.Value(1), Avg10: avg}
		v := view{sample: s, current: 100 * mib, keep: 50 * mib}
		q.ticks = senpaiTicks - 1
		if n, rule := q.squeezeSenpai(&v); n != 0 || rule != "senpai-backs-off" {
			t.Errorf("avg10 %v %%: %v bytes by %s", avg, n, rule)
		}
	}
}

func TestNoPressureFileMeansNoSqueezeUnderAnyLaw(t *testing.T) {
	for _, law := range []Law{Memagent, TMO, Senpai} {
		p := defaultPolicy()
		p.Law = law
		b := newBench(t, restingFeed())
		b.step()
		s := b.trace[0].sample
		s.Pressure = memcg.Pressure{}
		h := defaultHost()
		for range 10 {
			d := Decide(&b.st, Input{Sample: &s, Host: &h, Elapsed: 5 * time.Second}, p)
			if d.Intent.Bytes != 0 {
				t.Fatalf("%v: %d bytes by %s without pressure", law, d.Intent.Bytes, d.Rule)
			}
		}
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	for _, law := range []Law{Memagent, TMO, Senpai} {
		b := newBench(t, restingFeed())
		b.step()
		b.step()
		s := b.trace[1].sample
		p := defaultPolicy()
		p.Law = law
		in := Input{Sample: &s, Host: &b.host, Elapsed: time.Second, Gens: &Generations{List: make([]Generation, 4)}}
		var d Decision
		if n := testing.AllocsPerRun(100, func() { d = Decide(&b.st, in, p) }); n != 0 {
			t.Errorf("%v: %v allocations", law, n)
		}
		if d.Rule == "" || len(d.Because) == 0 {
			t.Errorf("%v: no rule or no reasons: %+v", law, d)
		}
	}
}
