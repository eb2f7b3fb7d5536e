package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The hot-cold-lend scenario is hot-cold on a host with free memory and an agent that may lend it, for
// anon that grows too: the limit is a memory.high. What goes to swap before the loops begin has to come
// in once, so that next to nothing may.
const (
	hotColdLent      = 0.05 // of off's swap-ins
	hotColdLentShort = 7    // loops
)

var hotColdLend = Scenario{
	Name:     "hot-cold-lend",
	About:    "hot-cold under a memory.high beside a free host: memory is lent as it grows, and hardly anything is swapped",
	Law:      "memagent",
	Topology: oneNode,
	Within: func(short bool) time.Duration {
		return time.Duration(hotColdLendPasses(short))*hotColdLoop + hotColdSettle + setUpWithin
	},
	Run: func(ctx context.Context, g *guest.Guest) (result.Run, error) {
		run, agent, start, err := loopHotCold(ctx, g, "memory.high", hotColdLendConfig(law(g, "memagent")), hotColdLendPasses(g.Spec.Short))
		defer agent.end()
		if err != nil {
			return run, err
		}
		return run, agent.finish(&run, start, guest.Cgroup{Path: hotColdCgroup})
	},
	Checks: checkHotColdLend,
}

func hotColdLendPasses(short bool) int { return form(short, hotColdLentShort, hotColdLoops) }

func hotColdLendConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
state_dir: %s
host:
  reserve: 256MiB
  swap:
    write_budget: 1GiB/s
policies:
  - name: borrower
    match:
      - path: %s
    law: %s
    swappiness: 200
    squeeze: off
    high:
      lend: true
      anon_growth: true
`, guest.StateDir, hotColdCgroup, law)
}

func checkHotColdLend(runs []result.Run) []result.Check {
	whole := func(r result.Run) float64 { return float64(r.ElapsedMS) / 1e3 }
	ins := func(r result.Run) float64 { return float64(r.Counters.SwapIn) }
	return []result.Check{
		share("swap-ins once lent", runs, fact("late_swap_ins"), hotColdLent, "pages, from the second round of the window on"),
		share("swap-ins in all", runs, ins, hotColdLent, "pages"),
		share("run time", runs, whole, hotColdTime, "s"),
	}
}
