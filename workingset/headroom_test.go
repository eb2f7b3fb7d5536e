package workingset

import (
	"testing"

	"github.com/memagent/memagent/memcg"
)

func TestHeadroomKeepsBelowTheLimitAndFollowsTheAllocationRate(t *testing.T) {
	f := restingFeed()
	f.high = memcg.LimitOf(185 * mib)
	b := newBench(t, f)
	d := b.run(5).d
	want := 184*mib - (185*mib - 185*mib/50)
	if got := int(d.Intent.Bytes); d.Intent.Kind != KindHeadroom || got > want+pageSize || got < want-pageSize {
		t.Errorf("at rest %v of %d bytes, want %d", d.Intent.Kind, got, want)
	}
	f.current, f.high = ramp(100*mib, 8*mib), memcg.LimitOf(180*mib+mib/2)
	b = newBench(t, f)
	b.policy.Headroom.Fraction = 0.001
	b.run(9)
	d = b.step().d // 180 MiB, 0.8 more until the agent has reacted
	if d.Verdict != Growing || d.Intent.Kind != KindHeadroom || d.Intent.Bytes < 200<<10 || d.Intent.Bytes > 600<<10 {
		t.Errorf("growing 8 MiB a second: %v, %v of %d bytes", d.Verdict, d.Intent.Kind, d.Intent.Bytes)
	}
	if got, want := d.Hold.Above, uint64(180*mib)-d.Intent.Bytes; got > want || got < want-pageSize {
		t.Errorf("held below %d bytes until the next look, want %d", got, want)
	}
}

func TestWhileAnonComesBackHeadroomIsAPartOfWhatIsOut(t *testing.T) {
	for _, c := range []struct {
		name     string
		headroom uint64
		out      int // bytes in swap
		want     int // bytes kept free; -1: the limit is left to the kernel
	}{
		{"half of the policy's", 8 * mib, 80 * mib, 4 * mib},
		{"all of the policy's where enough is out", 3 * mib, 80 * mib, 3 * mib},
		{"nothing where less than fills meanwhile", pageSize, 80 * mib, -1},
		{"nothing where next to nothing is out", 8 * mib, 4 * mib, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := restingFeed()
			f.counters[memcg.StatSteal] = constant(5000)
			f.counters[memcg.StatPswpout] = constant(5000)
			f.counters[memcg.StatRefaultAnon] = constant(5000).from(1)
			f.swap, f.high, f.some = constant(float64(c.out)), memcg.LimitOf(185*mib), constant(300_000)
			b := newBench(t, f)
			b.policy.Headroom = Headroom{On: true, Bytes: c.headroom}
			b.step()
			b.st.sides[anon].out = float64(c.out / pageSize)
			d := b.run(20).d
			free := int(185*mib - d.Hold.Above)
			if d.Hold.Above == 0 {
				free = -1
			}
			if d.Verdict != AnonThrash || free < c.want*9/10 && c.want > 0 || free > c.want*11/10 && c.want > 0 || (free < 0) != (c.want < 0) {
				t.Errorf("%v with %.0f bytes out, filled by %.0f a second: %d bytes are kept free, want %d",
					d.Verdict, d.Signals.Short.or(0), d.Signals.FillRate.or(0), free, c.want)
			}
		})
	}
}

func TestAfterAGrowthWhatComesBackSinceCounts(t *testing.T) {
	f := restingFeed()
	evicted := constant(20_000).until(10).plus(constant(500).from(10)) // pages a second
	f.counters[memcg.StatSteal], f.counters[memcg.StatPswpout] = evicted, evicted
	f.counters[memcg.StatRefaultAnon] = constant(500).from(10)
	f.gauges[memcg.StatActiveFile], f.gauges[memcg.StatInactiveFile] = constant(0), constant(0)
	f.swap, f.high = constant(780*mib), memcg.LimitOf(185*mib)
	b := newBench(t, f)
	b.policy.Headroom = Headroom{On: true, Bytes: 8 * mib}
	whole := uint64(177 * mib)
	if d := b.run(10).d; d.Hold.Above == 0 || d.Hold.Above > whole {
		t.Errorf("while it grows: %+v, want all of the headroom", d.Hold)
	}
	if d := b.run(2).d; d.Hold.Above > 0 && d.Hold.Above <= whole {
		t.Errorf("since all that is taken comes back: %+v, want less or none", d.Hold)
	}
}

func TestHeadroomLeavesAStreamWhatItReadsAhead(t *testing.T) {
	const room = 28*mib + mib/2 // file, and what is free below 180 MiB
	for _, c := range []struct {
		name     string
		headroom uint64
		free     int // bytes kept free
	}{
		{"half of its room where the policy wants more", 20 * mib, room / 2},
		{"all of it where the policy wants less and nothing fills", 4 * mib, 4 * mib},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := underLimit(330 * mib)
			if c.headroom < room/2 {
				f.counters[memcg.StatSteal] = constant(2500) // 1 MiB in 0.1 s
				f.counters[memcg.StatRefaultFile] = constant(0)
			}
			b := newBench(t, f)
			b.policy.Headroom = Headroom{On: true, Bytes: c.headroom}
			d := b.run(30).d
			free, lowest := int(180*mib-d.Hold.Above), 180*mib-int(d.Hold.Floor)
			if d.Verdict != Streaming || d.Hold.Above == 0 || free < c.free-pageSize || free > c.free+pageSize {
				t.Errorf("%v: %d bytes kept free, want %d", d.Verdict, free, c.free)
			}
			if most := room*3/4 + pageSize; lowest > most {
				t.Errorf("requests may take %d bytes of the room, want at most %d", lowest, most)
			}
		})
	}
}
