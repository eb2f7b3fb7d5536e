package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

func (l *lender) swapped() uint64 { n, _ := l.sample().SwapCurrent.Get(); return n }

const lendBesideAnon = `
interval: 1s
host: {reserve: 20%, swap: {write_budget: 1GiB/s}}
policies:
  - name: app
    match: [{path: /app}]
    swappiness: auto
    squeeze: off
    high: {lend: true}
`

// Seed 003 beside free memory: what the cache lacks is lent before idle anon has
// to make room for it.
func TestMemoryIsLentBeforeAnonHasToMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked bool
		l := lending(t, lendBesideAnon, sim.Limits{High: memcg.LimitOf(180 * mib)}, func(l *lender) {
			l.host.Start("/app", sim.Idle{Anon: 150 * mib, Rate: 512 * mib})
			pass(l.host, 3*time.Second)
			l.host.Start("/app", sim.FileLoop{Bytes: 80 * mib})
			l.until(30*time.Second, "lent", func() bool { return l.high() > 220*mib })
			before := l.swapped()
			pass(l.host, 20*time.Second)
			if n := l.swapped() - min(before, l.swapped()); n > 0 {
				t.Errorf("%d KiB of anon went out all the same", n>>10)
			}
			refaults := l.refaults()
			pass(l.host, 20*time.Second)
			if n := l.refaults() - refaults; n > 0 {
				t.Errorf("%d refaults once lent", n)
			}
		})
		for _, r := range l.tr.of("/app") {
			if r.Rule == "move-anon" && r.Acted {
				t.Errorf("anon was moved: %s", r.Describe())
			}
			asked = asked || strings.Contains(r.Held, "lent instead")
		}
		t.Logf("moving anon was held back: %t", asked)
	})
}

func TestALoopThatDoesNotFitIsNotLentTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := strings.Replace(lendPolicy, "{lend: true}", "{lend: true, ceiling: 100MiB}", 1)
		l := lending(t, policy, high40, func(l *lender) {
			l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			pass(l.host, 2*time.Minute)
		})
		for _, r := range l.tr.of("/app") {
			if r.Lending.Lent > 60*mib {
				t.Fatalf("above the ceiling: %s", r.Describe())
			}
		}
	})
}

func TestAMaxThatBindsIsSaidAndLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lending(t, lendPolicy, sim.Limits{High: memcg.LimitOf(100 * mib), Max: memcg.LimitOf(60 * mib)}, func(l *lender) {
			l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			pass(l.host, time.Minute)
		})
		if l.high() != 100*mib {
			t.Errorf("memory.high is %d MiB", l.high()/mib)
		}
		if said := l.said.said; !slices.Contains(said, "lend /app") {
			t.Errorf("said %v", said)
		}
	})
}

func TestWithoutARightToTheFileNothingIsLentAndTheRestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lending(t, lendPolicy, high40, func(l *lender) {
			l.host.Inject(sim.Fault{Op: sim.OpWriteKnob, Path: "/app", Err: memcg.ErrDenied})
			l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			pass(l.host, time.Minute)
		})
		l.saidOnly(string(memcg.KnobHigh) + " /app")
		r := last(l.tr.of("/app"))
		if l.high() != 40*mib || r.Lending.Lent != 0 {
			t.Errorf("memory.high %d MiB; %s", l.high()/mib, r.Describe())
		}
	})
}

func TestObservingSaysWhatWouldBeLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{ReadOnly: true})
		h.Cgroup("/app", high40)
		h.Start("/app", sim.FileLoop{Bytes: 100 * mib})
		tr, _ := run(t, h, telemetry.Observe, lendPolicy, func(context.CancelFunc) { pass(h, 30*time.Second) })
		would := false
		for _, r := range tr.of("/app") {
			would = would || r.Lending.Rule == "lend" && r.Lending.Held == "observe mode"
		}
		if !would || h.Writes() > 0 {
			t.Errorf("would lend: %t, %d writes", would, h.Writes())
		}
	})
}

func TestALoanThatFailsToBeWrittenOnceIsMadeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lending(t, lendPolicy, high40, func(l *lender) {
			l.host.Inject(sim.Fault{Op: sim.OpWriteKnob, Path: "/app", Nth: 1, Err: errors.New("once")})
			l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			l.until(time.Minute, "lent", func() bool { return l.high() > 200*mib })
		})
	})
}

// Below its headroom a cgroup never meets its memory.high; what it misses is lent
// all the same, and glances do not take it back.
func TestACgroupThatIsKeptBelowItsLimitIsLentToAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := strings.Replace(lendPolicy, "squeeze: off", "squeeze: off\n    headroom: 2%", 1)
		lending(t, policy, high40, func(l *lender) {
			reader := l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			l.until(60*time.Second, "lent", func() bool { return l.high() > 200*mib })
			// The pass under way reads again what was lost, and so may the next.
			lent := reader.Stats().Passes
			l.until(30*time.Second, "read again", func() bool { return reader.Stats().Passes >= lent+2 })
			before := l.refaults()
			pass(l.host, 20*time.Second)
			if n := l.refaults() - before; n > 0 {
				t.Errorf("%d refaults once lent", n)
			}
		})
	})
}
