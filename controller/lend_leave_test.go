package controller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

// reload has the loop decide by other policies.
func (l *lender) reload(mode telemetry.Mode, policies string) {
	l.t.Helper()
	cfg, err := config.Parse("next.yaml", []byte(policies))
	if err != nil {
		l.t.Fatal(err)
	}
	l.configs <- controller.Config{Config: cfg, Mode: mode}
}

func TestALoanWhosePolicyGoesIsReclaimedBeforeItsLimitIsBack(t *testing.T) {
	const nobody = "interval: 1s\npolicies: [{name: other, match: [{path: /other}]}]\n"
	for _, c := range []struct {
		name string
		mode telemetry.Mode
		next string
	}{
		{"released", telemetry.Enforce, nobody},
		{"only observed from now on", telemetry.Observe, lendPolicy},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lending(t, lendPolicy, high40, func(l *lender) {
					l.lent().Stop()
					before, _ := l.sample().Events.High.Get()
					writes := l.host.Writes()
					l.reload(c.mode, c.next)
					l.until(6*time.Second, "put back", func() bool { return l.high() == 40*mib })
					if l.current() > 40*mib {
						t.Errorf("%d MiB were in use when memory.high was put back", l.current()/mib)
					}
					if l.host.Writes() < writes+2 { // a request, and memory.high
						t.Error("nothing was reclaimed before")
					}
					if after, _ := l.sample().Events.High.Get(); after != before {
						t.Errorf("memory.high was met %d times", after-before)
					}
				})
			})
		})
	}
}

func TestALoanThatCannotBeReclaimedIsPutBackInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lending(t, lendPolicy, high40, func(l *lender) {
			l.lent().Stop()
			for n := 1; n <= 100; n++ {
				l.host.Inject(sim.Fault{Op: sim.OpReclaim, Path: "/app", Nth: n, Err: memcg.ErrPartial})
			}
			l.reload(telemetry.Enforce, "interval: 1s\npolicies: [{name: other, match: [{path: /other}]}]\n")
			l.until(7*time.Second, "put back", func() bool { return l.high() == 40*mib })
		})
	})
}

func TestTheEndOfManyLoansTakesNoLongerThanThatOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := sim.New(sim.Config{
			Nodes: []sim.NodeConfig{{ID: 0, Bytes: 1024 * mib}}, Swap: sim.SwapConfig{Bytes: 256 * mib, Class: memcg.SwapZram}, Kernel: sim.Kernel612,
		})
		store, err := journal.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		keeper, err := journal.NewKeeper(store, host, journal.Options{Boot: "boot"})
		if err != nil {
			t.Fatal(err)
		}
		const many = 60
		free := make(chan struct{})
		for i := range many {
			id := host.Cgroup(fmt.Sprintf("/c%d", i), high40)
			if _, err := keeper.Set(context.Background(), id, memcg.KnobHigh, fmt.Sprint(80*mib), "test"); err != nil {
				t.Fatal(err)
			}
			host.Inject(sim.Fault{Op: sim.OpWriteKnob, Path: id.Path, Nth: 1, Block: free})
		}
		began := time.Now()
		keeper.RestoreAll(context.Background(), 5*time.Second)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		close(free)
		synctest.Wait()
	})
}
