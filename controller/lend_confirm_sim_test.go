package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

// evicted is how many pages were taken from /app.
func (l *lender) evicted() uint64 {
	n, _ := l.sample().Stat.Get(memcg.StatSteal).Get()
	return n
}

// met is how often /app met its memory.high.
func (l *lender) met() uint64 {
	n, _ := l.sample().Events.High.Get()
	return n
}

// shown is when a sample first showed refaults, once the loop has ended.
func (l *lender) shown() time.Time {
	for _, r := range l.tr.of("/app") {
		if n, ok := r.RefaultFile.Get(); ok && n >= 64 {
			return r.Time
		}
	}
	l.t.Fatal("no sample showed a refault")
	return time.Time{}
}

// samples is how many there were in some time, once the loop has ended.
func (l *lender) samples(from, to time.Time) (n int) {
	for _, r := range l.tr.of("/app") {
		if !r.Time.Before(from) && r.Time.Before(to) {
			n++
		}
	}
	return n
}

// A loop of 60 MiB/s loses as much until a need that one sample has shown is lent for in
// full. Where the next ticks had to confirm it that was 44 and 85 MiB.
func TestANeedThatASampleShowsIsConfirmedWithinTheTick(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 2 * time.Second} {
		t.Run("at an interval of "+interval.String(), func(t *testing.T) {
			var lost uint64
			for fifth := range time.Duration(5) {
				synctest.Test(t, func(t *testing.T) {
					policy := strings.Replace(lendPolicy, "interval: 1s", "interval: "+interval.String(), 1)
					evicted, ended := map[int64]uint64{}, uint64(0) // by milliseconds
					l := lending(t, policy, high40, func(l *lender) {
						pass(l.host, 2*interval+fifth*interval/5)
						l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib, Rate: 60 * mib})
						for range 200 {
							evicted[time.Now().UnixMilli()] = l.evicted()
							pass(l.host, 100*time.Millisecond)
						}
						if l.high() < 100*mib {
							t.Errorf("memory.high is %d MiB", l.high()/mib)
						}
						ended = l.evicted()
					})
					lost += (ended - evicted[l.shown().UnixMilli()]) * sim.PageSize / mib
				})
			}
			if most := uint64(15 * interval / time.Second); lost > most {
				t.Errorf("%d MiB lost in five runs, want %d at most", lost, most)
			}
		})
	}
}

// At memory.high all the time, and with nothing to be had above it or no need of it, a
// cgroup is sampled once a tick; a need that begins costs a few samples more.
func TestACgroupAtItsMemoryHighIsSampledHardlyMoreThanOnceATick(t *testing.T) {
	const ticks = 300
	for _, tt := range []struct {
		name, high string
		mode       telemetry.Mode
		workload   sim.Workload
		early      int // samples between ticks at most
	}{
		{"a stream", "lend: true", telemetry.Enforce, sim.Stream{Rate: 20 * mib}, 0},
		{"a loop at its ceiling", "lend: true, ceiling: 40MiB", telemetry.Enforce, sim.FileLoop{Bytes: 80 * mib, Rate: 20 * mib}, 0},
		{"a loop that its ceiling has no room for", "lend: true, ceiling: 60MiB", telemetry.Enforce, sim.FileLoop{Bytes: 160 * mib, Rate: 20 * mib}, 8},
		{"a loop that is only observed", "lend: true", telemetry.Observe, sim.FileLoop{Bytes: 80 * mib, Rate: 20 * mib}, 0},
		{"a loop that is lent to", "lend: true", telemetry.Enforce, sim.FileLoop{Bytes: 160 * mib, Rate: 20 * mib}, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := strings.Replace(lendPolicy, "lend: true", tt.high, 1)
				if tt.mode == telemetry.Observe {
					policy += "    observe: true\n"
				}
				from := time.Now()
				l := lending(t, policy, high40, func(l *lender) {
					l.host.Start("/app", tt.workload)
					pass(l.host, ticks*time.Second)
					if l.met() == 0 {
						t.Error("memory.high was never met")
					}
				})
				if n := l.samples(from, from.Add(ticks*time.Second)); n > ticks+tt.early {
					t.Errorf("%d samples in %d ticks, want %d between them at most", n, ticks, tt.early)
				}
			})
		})
	}
}
