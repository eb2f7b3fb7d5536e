package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
)

// lendGrowth is a policy that swaps gladly, with some keys of high.
func lendGrowth(interval, headroom, high string) string {
	return fmt.Sprintf(`
interval: %s
host: {reserve: 20%%, swap: {write_budget: 1GiB/s}}
policies:
  - name: app
    match: [{path: /app}]
    swappiness: 200
    squeeze: off
    headroom: %s
    high: {%s}
`, interval, headroom, high)
}

func TestAnonThatGrowsIsLentToBeforeItIsSwappedOut(t *testing.T) {
	for _, tt := range []struct {
		name, interval, headroom, high string
		rate, least, most              uint64 // of what is swapped, MiB
	}{
		{"without the key it is not", "1s", "0", "lend: true", 20, 100, 200},
		{"at a tick each second", "1s", "0", "lend: true, anon_growth: true", 20, 0, 0},
		{"with headroom, which does not swap it out first", "1s", "5%", "lend: true, anon_growth: true", 20, 0, 0},
		{"where its limit is met within a tick, what was charged until then aside", "5s", "5%", "lend: true, anon_growth: true", 20, 0, 60},
		{"up to the ceiling", "1s", "0", "lend: true, anon_growth: true, ceiling: 100MiB", 20, 80, 120},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var swapped, high uint64
				l := lending(t, lendGrowth(tt.interval, tt.headroom, tt.high), sim.Limits{High: memcg.LimitOf(60 * mib)}, func(l *lender) {
					pass(l.host, 3*time.Second)
					l.host.Start("/app", sim.Grow{Bytes: 200 * mib, Rate: tt.rate * mib})
					pass(l.host, 40*time.Second)
					swapped, high = l.swapped()/mib, l.high()/mib
				})
				if swapped < tt.least || swapped > tt.most {
					t.Errorf("%d MiB swapped at a memory.high of %d MiB, want %d to %d", swapped, high, tt.least, tt.most)
				}
				if strings.Contains(tt.high, "ceiling") && high > 100 {
					t.Errorf("memory.high is %d MiB", high)
				}
				if l.high() != 60*mib {
					t.Errorf("put back to %d MiB", l.high()/mib)
				}
			})
		})
	}
}

// Anon that begins to grow right after a tick meets the limit before the next one. By
// ticks alone 154 MiB of it are swapped.
func TestAnonThatGrowsIsNoticedByItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := strings.Replace(lendGrowth("5s", "0", "lend: true, anon_growth: true"), "    headroom: 0\n", "", 1)
		from := time.Now()
		grown := from.Add(50 * time.Second)
		l := lending(t, policy, sim.Limits{High: memcg.LimitOf(60 * mib)}, func(l *lender) {
			pass(l.host, 10*time.Second+200*time.Millisecond)
			l.host.Start("/app", sim.Grow{Bytes: 300 * mib, Rate: 40 * mib})
			pass(l.host, time.Until(grown))
			if n := l.swapped() / mib; n > 60 {
				t.Errorf("%d MiB swapped", n)
			}
			met := l.met()
			l.host.Start("/app", sim.Stream{Rate: 20 * mib}) // up to its loan, and on
			pass(l.host, 200*time.Second)
			if n := l.met() - met; n < 1000 {
				t.Errorf("met %d times", n)
			}
		})
		if n := l.samples(from, grown); n > 10+16 {
			t.Errorf("%d samples in 10 ticks", n)
		}
		if n := l.samples(grown, grown.Add(200*time.Second)); n > 40+4 {
			t.Errorf("%d samples in 40 ticks of meeting its memory.high all the time", n)
		}
	})
}

func TestWhatAnonWasLentNeverComesOutOfTheReserveAndGoesBackToTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lending(t, lendGrowth("1s", "0", "lend: true, anon_growth: true"), sim.Limits{High: memcg.LimitOf(60 * mib)}, func(l *lender) {
			pass(l.host, 3*time.Second)
			l.host.Start("/app", sim.Grow{Bytes: 900 * mib, Rate: 40 * mib})
			var h memcg.HostSample
			for range 60 {
				pass(l.host, 500*time.Millisecond)
				if err := l.host.HostSample(&h); err != nil {
					t.Fatal(err)
				}
				if free, _ := h.MemAvailable.Get(); free < 204*mib {
					t.Fatalf("%d MiB are left of a reserve of 205 MiB", free/mib)
				}
			}
			if l.high() < 500*mib {
				t.Errorf("only %d MiB are lent of 1 GiB", l.high()/mib)
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		lending(t, lendGrowth("1s", "0", "lend: true, anon_growth: true"), sim.Limits{High: memcg.LimitOf(60 * mib)}, func(l *lender) {
			pass(l.host, 3*time.Second)
			l.host.Start("/app", sim.Grow{Bytes: 200 * mib, Rate: 40 * mib})
			l.until(20*time.Second, "lent", func() bool { return l.current() > 195*mib })
			l.host.Cgroup("/other", sim.Limits{})
			l.host.Start("/other", sim.Grow{Bytes: 680 * mib, Rate: 64 * mib})
			took := l.until(40*time.Second, "back", func() bool { return l.high() == 60*mib && l.current() <= 60*mib })
			t.Logf("back after %v", took)
		})
	})
}
