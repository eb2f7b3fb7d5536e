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

const mib = 1 << 20

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

	squeezeSettle = 5 * time.Second // between the set-up and the measured part
	squeezeLong   = 180 * time.Second
	squeezeShort  = 110 * time.Second
)

// A run gives everybody this long to allocate under emulation.
const setUpWithin = 2 * time.Minute

var squeeze = Scenario{
	Name:     "squeeze",
	About:    "no limit, much cold memory: what stays is what is used, and nobody waits",
	Law:      squeezeLaw,
	Topology: "quad",
	Files:    []disk.File{{Name: "cold", Size: squeezeColdFile}},
	Within: func(short bool) time.Duration {
		return squeezeTime(short) + squeezeSettle + 2*setUpWithin
	},
	Run:    runSqueeze,
	Checks: checkSqueeze,
}

func squeezeTime(short bool) time.Duration {
	if short {
		return squeezeShort
	}
	return squeezeLong
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
	w, err := watch(ctx, app, squeezeTime(g.Spec.Short), func() error {
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
	run.PassMS = hot.Passes(firstPass)
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
	hot, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(squeezeHot), "--every", squeezeEvery.String())
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
	pass := func(r result.Run) float64 { return result.Median(r.PassMS) }
	ratio := result.Median(result.Each(on, pass)) / result.Median(result.Each(off, pass))
	return append(checks, result.AtMost("hot pass time", ratio, squeezeHotCost, " of off"))
}

// watched is a cgroup over the measured part of a run.
type watched struct {
	before, half, after counters.Snapshot
	elapsed, late       time.Duration // the whole, and the part after half
	series              []result.Point
}

// watch samples a cgroup every second. After each sample, alive may end it with an error.
func watch(ctx context.Context, c guest.Cgroup, howLong time.Duration, alive func() error) (watched, error) {
	var w watched
	var err error
	if w.before, err = c.Take(); err != nil {
		return w, err
	}
	start := time.Now()
	var halfAt time.Time
	w.series = append(w.series, point(w.before, w.before, 0))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Since(start) < howLong {
		select {
		case <-ctx.Done():
			return w, ctx.Err()
		case <-tick.C:
		}
		if w.after, err = c.Take(); err != nil {
			return w, err
		}
		at := time.Since(start)
		w.series = append(w.series, point(w.before, w.after, at))
		if halfAt.IsZero() && at >= howLong/2 {
			w.half, halfAt = w.after, time.Now()
		}
		if err := alive(); err != nil {
			return w, err
		}
	}
	w.elapsed, w.late = time.Since(start), time.Since(halfAt)
	return w, nil
}

func point(before, now counters.Snapshot, at time.Duration) result.Point {
	return result.Point{
		AtMS: at.Milliseconds(), Current: now.Current, Anon: now.Stat["anon"], File: now.Stat["file"], Swap: now.Swap,
		Refaults: now.Refaults() - before.Refaults(), PSISomeUS: now.PSISome - before.PSISome,
	}
}

// lastPoints is the number of samples the end of a series is judged by.
const lastPoints = 5

// fill puts what was watched into a run.
func (w watched) fill(run *result.Run) {
	run.Counters = w.after.Since(w.before)
	run.Nodes = counters.Nodes(w.before, w.after)
	run.Series = w.series
	run.ElapsedMS = w.elapsed.Milliseconds()
	var end []float64
	for _, p := range w.series[max(0, len(w.series)-lastPoints):] {
		end = append(end, float64(p.Resident()))
	}
	late := w.after.Since(w.half)
	run.Facts = map[string]float64{
		"resident_before_bytes":    float64(w.before.Resident()),
		"resident_after_bytes":     result.Median(end),
		"late_psi_some_share":      float64(late.PSISomeUS) / float64(w.late.Microseconds()),
		"late_refaults_per_second": float64(late.RefaultAnon+late.RefaultFile) / w.late.Seconds(),
	}
}
