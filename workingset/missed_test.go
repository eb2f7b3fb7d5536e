package workingset

import (
	"testing"

	"github.com/memagent/memagent/memcg"
)

// loopFeed reads a file of 200 MiB in turn under a memory.high of 40 MiB: each
// page that comes in pushes one out, and from 40 s on all of them have been there
// before.
func loopFeed() feed {
	const rate = 1280 // pages a second: 5 MiB, so that one pass takes 40 s
	f := restingFeed()
	f.current, f.high = constant(40*mib), memcg.LimitOf(40*mib)
	f.gauges = map[memcg.Stat]stream{
		memcg.StatAnon: constant(0), memcg.StatFile: constant(38 * mib), memcg.StatKernel: constant(2 * mib),
		memcg.StatInactiveAnon: constant(0), memcg.StatActiveAnon: constant(0),
		memcg.StatInactiveFile: constant(38 * mib), memcg.StatActiveFile: constant(0),
	}
	f.counters[memcg.StatSteal] = constant(rate)
	f.counters[memcg.StatRefaultFile] = constant(rate).from(40)
	return f
}

func TestWhatALoopMissesIsKnownInTheSecondSampleOfItsSecondPass(t *testing.T) {
	b := newBench(t, loopFeed())
	if d := b.run(40).d; d.Signals.Missed.or(-1) != 0 {
		t.Errorf("%v bytes missed before anything came back", d.Signals.Missed)
	}
	if burst := b.run(1).d.Signals.Missed.or(0); burst > 50*mib {
		t.Errorf("%.0f MiB missed after one sample, which may be a burst", burst/mib)
	}
	s := b.run(1).d.Signals
	const out = 200 * mib // what 40 s have pushed out
	if got := s.Missed.or(0); got < 0.9*out || got > 1.1*out {
		t.Errorf("%.0f MiB missed, want about %d", got/mib, int64(out)/mib)
	}
	if short := s.Short.or(0); short > out/4 {
		t.Errorf("the smoothed figure alone says %.0f MiB: there is no need of the sample's own", short/mib)
	}
	if rate := s.RefaultRate.or(0); rate < 1279 || rate > 1281 {
		t.Errorf("%.0f refaults a second", rate)
	}
}

func TestAFewRefaultsSayNothingOfWhatIsMissed(t *testing.T) {
	f := loopFeed()
	f.counters[memcg.StatRefaultFile] = constant(priceSamples / 2).from(40)
	if got := newBench(t, f).run(41).d.Signals.Missed.or(0); got > 2*mib {
		t.Errorf("%.0f MiB", got/mib)
	}
}
