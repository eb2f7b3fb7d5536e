package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
)

func TestWhereReclaimTakesNoSwappinessALoanComesBackAndNothingIsSwapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lendingOn(t, sim.Kernel61, lendPolicy, high40, func(l *lender) {
			l.host.Start("/app", sim.Idle{Anon: 8 * mib})
			l.lent()
			l.host.Cgroup("/other", sim.Limits{})
			l.host.Start("/other", sim.Grow{Bytes: 860 * mib, Rate: 128 * mib})
			l.until(20*time.Second, "back", func() bool { return l.high() == 40*mib && l.current() <= 40*mib })
			l.until(10*time.Second, "unguarded", func() bool {
				v, err := l.host.ReadKnob(l.app, memcg.KnobSwapMax)
				return err == nil && v == "max"
			})
		})
		if n, _ := l.sample().SwapCurrent.Get(); n > 0 {
			t.Errorf("%d bytes of it are in swap", n)
		}
		guarded := false
		for _, r := range l.tr.of("/app") {
			guarded = guarded || r.Guarded
		}
		if !guarded {
			t.Error("nothing kept it from being swapped")
		}
	})
}
