package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The tiered scenario: a node without CPUs is a slow tier, and the kernel may demote to it. What is
// demoted has been moved, not freed, though kernels count it as reclaimed; an agent must tell the two
// apart, and must not have more moved for what it has only moved before.
const (
	tieredAnon   = 192 * mib // on the fast node, used by nobody
	tieredAsk    = 64 * mib
	tieredCgroup = "/app"
	tieredSpare  = imbalanceSpare
	tieredAfter  = 5 * time.Second

	demotionFile = "/sys/kernel/mm/numa/demotion_enabled"

	tieredMoved = 1000 // pages that kernels demote, or there is no tier
	// tieredApart is by how much what the agent calls freed may be more than what was asked for, of
	// that: counters of the kernel are exact to a batch for each CPU.
	tieredApart = 0.02
	// tieredOnce is how much may be demoted, of what was asked for: that much once, and the overshoot of
	// a request in parts. Asking again for what was only moved makes it more than twice as much.
	tieredOnce = 1.3
)

var tiered = Scenario{
	Name:     "tiered",
	About:    "a slow tier takes what is reclaimed from the fast one: demoted is not freed",
	Law:      "memagent",
	Topology: "tiered",
	Within:   func(bool) time.Duration { return imbalanceWithin + tieredAfter + 2*setUpWithin },
	Run:      runTiered,
	Checks:   checkTiered,
}

func tieredConfig(law, headroom string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
host:
  swap:
    write_budget: 1GiB/s
policies:
  - name: tiered
    match:
      - path: %s
    law: %s
    squeeze: off
    headroom: %s
    numa:
      reclaim: lottery
`, tieredCgroup, law, headroom)
}

func runTiered(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	if err := guest.Write(demotionFile, "1"); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("this kernel cannot demote: %w", err)
		}
		return run, err
	}
	app, err := guest.NewCgroup(tieredCgroup)
	if err != nil {
		return run, err
	}
	if _, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(tieredAnon), "--node", "0"); err != nil {
		return run, err
	}
	headroom, err := headroomFor(app, tieredAsk, tieredSpare)
	if err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, tieredConfig(law(g, "memagent"), headroom), app)
	if err != nil {
		return run, err
	}
	defer agent.end()
	already := agent.reclaimed(app)
	w, refused, err := demand(ctx, g, app, agent, tieredAsk, tieredSpare, tieredAfter)
	if err != nil {
		return run, err
	}
	w.fill(&run)
	var demoted uint64 // of the host, which has one cgroup of that size
	for _, by := range []string{"kswapd", "direct", "khugepaged", "proactive"} {
		key := "pgdemote_" + by
		demoted += w.after.Host[key] - w.before.Host[key]
	}
	less := float64(w.before.Current) - float64(w.after.Current)
	maps.Copy(run.Facts, map[string]float64{
		"demoted_pages":      float64(demoted),
		"slow_anon_pages":    -fell(w, "anon", "1") / page,
		"less_bytes":         less,
		"refused_bytes":      float64(refused),
		"called_freed_bytes": float64(agent.reclaimed(app) - already),
		"asked_bytes":        wanted(agent.decisions(app)),
		"stolen_pages":       float64(run.Counters.PgSteal),
		"demoted_of_asked":   float64(demoted*page) / tieredAsk,
		"called_too_freed":   (float64(agent.reclaimed(app)-already) - less) / tieredAsk,
	})
	g.Logf("%d MiB asked for: %d MiB moved to the slow node, %d MiB swapped, %.1f MiB less in all; refused %d MiB",
		tieredAsk/mib, demoted*page/mib, run.Counters.SwapOut*page/mib, less/mib, refused/mib)
	return run, agent.finish(&run, w.start, app)
}

// wanted is all that the agent asked the kernel for, in bytes.
func wanted(decisions []guest.Decision) float64 {
	var sum float64
	for _, d := range decisions {
		if d.Acted {
			sum += float64(d.Want)
		}
	}
	return sum
}

func checkTiered(runs []result.Run) []result.Check {
	return []result.Check{
		alone("demoted, by the kernel", runs, fact("demoted_pages"), tieredMoved, "pages"),
		most("called freed though it was moved", runs, fact("called_too_freed"), tieredApart, "of what was asked for"),
		most("demoted, with the agent", runs, fact("demoted_of_asked"), tieredOnce, "of what was asked for"),
	}
}
