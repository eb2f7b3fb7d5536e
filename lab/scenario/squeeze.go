package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The squeeze scenario: one cgroup without a limit holds memory nobody uses beside memory that is
// used all the time. Telling one from the other inside a single cgroup is the point.
const (
	squeezeColdAnon = 256 * mib              // bytes, touched once
	squeezeColdFile = 200 * mib              // bytes, read once
	squeezeHot      = 64 * mib               // bytes, re-read all the time
	squeezeEvery    = 200 * time.Millisecond // from one pass over the hot set to the next
	squeezeCgroup   = "/app"
	squeezeLaw      = "tmo"
	squeezeTarget   = 0.001 // the pressure target, stalled time per time
	squeezeSaved    = 0.60  // the part of the cold memory that must be gone in the end
	squeezeHotCost  = 1.10  // the hot set's pass time, on per off
	// squeezeYardstick is the work that hot passes are counted in, in bytes: a tenth of a pass.
	squeezeYardstick = 8 * mib

	squeezeSettle = 5 * time.Second // between the set-up and the measured part
	// squeezeTime is the same in both forms: in 150 s, at 1 % a second at most, 70 to 93 % of the cold
	// memory went, as busy as the machine was.
	squeezeTime = 180 * time.Second
)

var squeeze = Scenario{
	Name:     "squeeze",
	About:    "no limit, much cold memory: what stays is what is used, and nobody waits",
	Law:      squeezeLaw,
	Topology: "quad",
	Suite:    true,
	Files:    []disk.File{{Name: "cold", Size: squeezeColdFile}},
	Within: func(bool) time.Duration {
		return squeezeTime + squeezeSettle + 2*setUpWithin
	},
	Run:    runSqueeze,
	Checks: checkSqueeze,
}

// squeezeConfig is the agent's configuration. The step is twice the agent's default so that the
// cold part can be gone in time.
func squeezeConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
policies:
  - name: squeeze
    match:
      - path: %s
    law: %s
    squeeze:
      max_step: 1%%
      pressure_target: 0.1%%
      floor: 32MiB
`, squeezeCgroup, law)
}

func runSqueeze(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	app, hot, err := squeezeSetUp(g)
	if err != nil {
		return run, err
	}
	var agent *guest.Agent
	if g.Spec.Agent == "on" {
		if agent, err = guest.StartAgent(squeezeConfig(law(g, squeezeLaw)), guest.Enforce); err != nil {
			return run, err
		}
		defer agent.Kill()
	}
	firstPass := hot.Count()
	w, err := watch(ctx, app, squeezeTime, func() error {
		if agent != nil {
			if err := agent.Alive(); err != nil {
				return err
			}
		}
		return hot.Alive()
	})
	if err != nil {
		return run, err
	}
	run.PassMS, run.YardstickMS = hot.Passes(firstPass), hot.Yardsticks(firstPass)
	if agent != nil {
		st, err := agent.Stop()
		if err != nil {
			return run, err
		}
		run.AgentStats = &st
		run.Artifacts = map[string]string{"agent.jsonl": agent.Transcript()}
	}
	w.fill(&run)
	run.Facts["cold_bytes"] = squeezeColdAnon + squeezeColdFile
	return run, nil
}

// squeezeSetUp brings the cgroup to where there is everything to save.
func squeezeSetUp(g *guest.Guest) (guest.Cgroup, *guest.Proc, error) {
	app, err := guest.NewCgroup(squeezeCgroup)
	if err != nil {
		return app, nil, err
	}
	if _, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(squeezeColdAnon)); err != nil {
		return app, nil, err
	}
	if err := guest.DropCaches(); err != nil {
		return app, nil, err
	}
	if _, err := app.Finish(setUpWithin, "file", "--path", guest.DataDir+"/cold"); err != nil {
		return app, nil, err
	}
	hot, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(squeezeHot), "--every", squeezeEvery.String(),
		"--yardstick", fmt.Sprint(squeezeYardstick))
	if err != nil {
		return app, nil, err
	}
	time.Sleep(squeezeSettle)
	s, err := app.Take()
	if err != nil {
		return app, nil, err
	}
	g.Logf("set up: anon %d MiB, file %d MiB", s.Stat["anon"]/mib, s.Stat["file"]/mib)
	const want = (squeezeColdAnon + squeezeColdFile + squeezeHot) * 9 / 10
	if s.Resident() < want {
		return app, nil, fmt.Errorf("the set-up holds %d MiB, expected at least %d MiB", s.Resident()/mib, want/mib)
	}
	return app, hot, nil
}

func checkSqueeze(runs []result.Run) []result.Check {
	on, off := result.Of(runs, "on"), result.Of(runs, "off")
	checks := make([]result.Check, 0, 4)
	if len(on) == 0 {
		const why = "needs a run with --agent on"
		return append(checks, result.Skip("resident saved", why), result.Skip("refault cost", why), result.Skip("hot pass time", why))
	}
	saved := result.Median(result.Each(on, func(r result.Run) float64 {
		return (r.Facts["resident_before_bytes"] - r.Facts["resident_after_bytes"]) / r.Facts["cold_bytes"]
	}))
	checks = append(checks,
		result.AtLeast("resident saved", saved, squeezeSaved, " of the cold memory"),
		result.AtMost("refault cost", result.Median(result.Each(on, result.Fact("late_psi_some_share"))), squeezeTarget,
			" of the time stalled, over the last half"),
	)
	if len(off) == 0 {
		return append(checks, result.Skip("hot pass time", "needs runs with --agent off,on"))
	}
	// Memory that the agent took from the hot set slows every pass after it.
	times, unit := result.PassTimes(runs)
	pass := func(r result.Run) float64 { return result.Median(times(r)) }
	return append(checks, result.AtMost("hot pass time", result.Median(result.Each(on, pass))/result.Median(result.Each(off, pass)),
		squeezeHotCost, " of off, by medians in "+unit))
}
