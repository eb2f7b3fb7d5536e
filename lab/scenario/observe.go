package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The observe scenario: an agent that may only look, first beside a cgroup at rest, then beside
// one that thrashes at a limit. Nothing may change that it could have changed.
const (
	observeAnon  = 128 * mib // bytes, cold, in the cgroup at rest
	observeFile  = 64 * mib  // bytes, read once there; as much is read over and over in the other
	observeBusy  = 32 * mib  // bytes, anon re-touched in the cgroup under pressure
	observeLimit = 48 * mib  // bytes, the memory.max of the cgroup under pressure

	observeLong  = 30 * time.Second // of each part
	observeShort = 12 * time.Second
)

var observe = Scenario{
	Name:     "observe",
	About:    "in observe mode nothing is written, at rest and under pressure",
	Law:      squeezeLaw,
	Topology: "quad",
	Suite:    true,
	Files:    []disk.File{{Name: "rest", Size: observeFile}, {Name: "busy", Size: observeFile}},
	Within: func(short bool) time.Duration {
		return 2*observeTime(short) + 2*setUpWithin
	},
	Run:    runObserve,
	Checks: checkObserve,
}

func observeTime(short bool) time.Duration {
	return form(short, observeShort, observeLong)
}

// observeConfig tells the agent to do as much as it can, were it allowed to.
func observeConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
policies:
  - name: everything
    match:
      - path: /rest
      - path: /busy
    swappiness: 100
    law: %s
    squeeze:
      max_step: 1%%
      pressure_target: 0.1%%
      floor: 16MiB
`, law)
}

func runObserve(ctx context.Context, g *guest.Guest) (result.Run, error) {
	run := result.Run{Facts: map[string]float64{}}
	rest, err := guest.NewCgroup("/rest")
	if err != nil {
		return run, err
	}
	busy, err := guest.NewCgroup("/busy")
	if err != nil {
		return run, err
	}
	if err := busy.Set("memory.max", fmt.Sprint(observeLimit)); err != nil {
		return run, err
	}
	// Made before the first look, so that its coming is not a difference.
	if _, err := guest.NewCgroup(guest.AgentCgroup); err != nil {
		return run, err
	}
	if _, err := rest.Settle(setUpWithin, "anon", "--size", fmt.Sprint(observeAnon)); err != nil {
		return run, err
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	if _, err := rest.Finish(setUpWithin, "file", "--path", guest.DataDir+"/rest"); err != nil {
		return run, err
	}

	// At rest, not a page may be reclaimed anywhere on the host.
	w, err := observed(ctx, g, &run, rest, func() error { return nil })
	if err != nil {
		return run, err
	}
	host := func(key string) float64 { return float64(w.after.Host[key] - w.before.Host[key]) }
	cgroup := w.after.Since(w.before)
	run.Facts["rest_reclaim_pages"] = float64(cgroup.PgScan+cgroup.PgSteal) + hostReclaim(w.after.Host) - hostReclaim(w.before.Host)
	run.Facts["rest_swap_pages"] = host("pswpin") + host("pswpout")

	if _, err := busy.Settle(setUpWithin, "anon", "--size", fmt.Sprint(observeBusy), "--every", "500ms"); err != nil {
		return run, err
	}
	reader, err := busy.Settle(setUpWithin, "file", "--path", guest.DataDir+"/busy", "--loops", "0")
	if err != nil {
		return run, err
	}
	first := reader.Count()
	w, err = observed(ctx, g, &run, busy, reader.Alive)
	if err != nil {
		return run, err
	}
	run.PassMS = reader.Passes(first)
	facts := run.Facts
	w.fill(&run)
	for k, v := range facts {
		run.Facts[k] = v
	}
	run.Facts["busy_scanned_pages"] = float64(run.Counters.PgScan)
	run.Facts["knobs_changed"] = float64(len(run.Differences))
	return run, nil
}

// hostReclaim is all reclaim the host counts, in pages scanned and stolen.
func hostReclaim(vm counters.Flat) float64 {
	var sum uint64
	for _, key := range []string{"kswapd", "direct", "khugepaged", "proactive"} {
		sum += vm["pgscan_"+key] + vm["pgsteal_"+key]
	}
	return float64(sum)
}

// observed watches a cgroup over the life of an agent in observe mode, or over as much time
// without one. What changed is added to the run's differences.
func observed(ctx context.Context, g *guest.Guest, run *result.Run, c guest.Cgroup, alive func() error) (watched, error) {
	knobs, err := guest.ReadKnobs()
	if err != nil {
		return watched{}, err
	}
	run.Facts["knobs"] = float64(len(knobs))
	start := time.Now()
	var agent *guest.Agent
	if g.Spec.Agent == "on" {
		if agent, err = guest.StartAgent(observeConfig(law(g, squeezeLaw)), guest.Observe); err != nil {
			return watched{}, err
		}
		defer agent.Kill()
	}
	w, err := watch(ctx, c, observeTime(g.Spec.Short), func() error {
		if agent != nil {
			if err := agent.Alive(); err != nil {
				return err
			}
		}
		return alive()
	})
	if err != nil {
		return w, err
	}
	if agent != nil {
		st, err := agent.Stop()
		if err != nil {
			return w, err
		}
		if run.AgentStats == nil {
			run.AgentStats, run.Artifacts = &result.AgentStats{}, map[string]string{}
		}
		add(run.AgentStats, st)
		run.Artifacts["agent-"+c.Path[1:]+".jsonl"] = agent.Transcript()
	}
	now, err := guest.ReadKnobs()
	if err != nil {
		return w, err
	}
	run.Differences = append(run.Differences, now.Since(knobs)...)
	g.Logf("%s: watched for %s, %d knobs, %d changed", c.Path, time.Since(start).Round(time.Second), len(now), len(run.Differences))
	return w, nil
}

// add sums what two lives of the agent said of themselves.
func add(sum *result.AgentStats, st result.AgentStats) {
	sum.CPUMS += st.CPUMS
	sum.RSSKiB = max(sum.RSSKiB, st.RSSKiB)
	sum.Decisions += st.Decisions
	sum.Actions += st.Actions
	sum.ReclaimedBytes += st.ReclaimedBytes
	sum.Writes += st.Writes
	sum.MeasuredCPUMS += st.MeasuredCPUMS
	sum.MeasuredRSSKiB = max(sum.MeasuredRSSKiB, st.MeasuredRSSKiB)
	sum.ExitCode = max(sum.ExitCode, st.ExitCode)
	sum.StopMS = max(sum.StopMS, st.StopMS)
}

func checkObserve(runs []result.Run) []result.Check {
	most := func(runs []result.Run, f func(result.Run) float64) float64 {
		_, high := result.Spread(result.Each(runs, f))
		return high
	}
	// What holds with the agent must hold without, or the check measures something else.
	checks := []result.Check{
		result.AtMost("knobs changed", most(runs, result.Fact("knobs_changed")), 0, ""),
		result.AtMost("pages reclaimed at rest", most(runs, result.Fact("rest_reclaim_pages")), 0, ""),
		result.AtMost("pages swapped at rest", most(runs, result.Fact("rest_swap_pages")), 0, ""),
	}
	low, _ := result.Spread(result.Each(runs, result.Fact("busy_scanned_pages")))
	checks = append(checks, result.AtLeast("pages scanned under pressure", low, 1, ", or there was none"))
	on := result.Of(runs, "on")
	if len(on) == 0 {
		return append(checks, result.Skip("writes", "needs a run with --agent on"))
	}
	low, _ = result.Spread(result.Each(on, func(r result.Run) float64 { return float64(r.AgentStats.Decisions) }))
	return append(checks,
		result.AtMost("writes", most(on, func(r result.Run) float64 { return float64(r.AgentStats.Writes) }), 0, " by the agent's own count"),
		result.AtMost("bytes reclaimed", most(on, func(r result.Run) float64 { return float64(r.AgentStats.ReclaimedBytes) }), 0, " by the agent's own count"),
		result.AtLeast("decisions", low, 1, ", or it did not even look"),
	)
}
