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

// The swappiness scenario: two cgroups with the same work and the same limit, of which one must
// never swap and the other should swap first. cgroup v2 has no knob for either.
const (
	twinLimit = 200 * mib
	twinAnon  = 140 * mib // bytes that nobody uses: more than is reclaimed in all
	twinHot   = 16 * mib  // bytes of a file, re-read all the time
	twinEvery = time.Second
	twinNew   = 128 * mib // bytes of a file that passes through, at twinRate bytes a second
	twinRate  = 10 * mib  // 20 MiB a second for both
	// twinTime is how long both are watched: 18 MiB are free at first, and what comes after them
	// has to be made room for, 100 MiB in each.
	twinTime = 12 * time.Second

	twinFile   = mib  // bytes of file from which on a cgroup "has file"
	twinShare  = 0.80 // of what is reclaimed with a high swappiness must be anon
	twinByHand = 0.95 // of all reclaim must be the agent's
)

// twins are the cgroups and their swappiness.
var twins = []struct {
	name       string
	swappiness int
}{{"zero", 0}, {"high", 180}}

var swappiness = Scenario{
	Name:     "swappiness",
	About:    "twin cgroups with a swappiness of 0 and 180: one never swaps, the other swaps first",
	Law:      "memagent",
	Topology: oneNode,
	Suite:    true,
	Alone:    true,
	Files: []disk.File{
		{Name: "zero-hot", Size: twinHot}, {Name: "zero-new", Size: twinNew},
		{Name: "high-hot", Size: twinHot}, {Name: "high-new", Size: twinNew},
	},
	Within: func(bool) time.Duration { return twinTime + 3*setUpWithin },
	Run:    runSwappiness,
	Checks: checkSwappiness,
}

// swappinessConfig is the agent's configuration. Swap is in memory here, so that writing to it
// wears nothing out and the budget may be a large one.
func swappinessConfig(law string) string {
	text := `mode: enforce
interval: 1s
host:
  swap:
    write_budget: 64MiB/s
policies:
`
	for _, t := range twins {
		text += fmt.Sprintf(`  - name: %s
    match:
      - path: /%s
    law: %s
    swappiness: %d
    squeeze: off
    headroom: 8%%
`, t.name, t.name, law, t.swappiness)
	}
	return text
}

func runSwappiness(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	var cgroups []guest.Cgroup
	for _, t := range twins {
		c, err := guest.NewCgroup("/" + t.name)
		if err != nil {
			return run, err
		}
		if err := c.Set("memory.max", fmt.Sprint(twinLimit)); err != nil {
			return run, err
		}
		if _, err := c.Settle(setUpWithin, "anon", "--size", fmt.Sprint(twinAnon)); err != nil {
			return run, err
		}
		cgroups = append(cgroups, c)
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, swappinessConfig(law(g, "memagent")), cgroups...)
	if err != nil {
		return run, err
	}
	defer agent.end()

	var procs []*guest.Proc
	before := make([]counters.Snapshot, len(twins))
	for i, c := range cgroups {
		if before[i], err = c.Take(); err != nil {
			return run, err
		}
	}
	for i, c := range cgroups {
		path := guest.DataDir + "/" + twins[i].name
		for _, args := range [][]string{
			{"file", "--path", path + "-hot", "--loops", "0", "--every", twinEvery.String()},
			{"file", "--path", path + "-new", "--loops", "0", "--rate", fmt.Sprint(twinRate)},
		} {
			p, err := c.Settle(setUpWithin, args...)
			if err != nil {
				return run, err
			}
			procs = append(procs, p)
		}
	}
	var zeroSwap uint64 // the most that /zero had in swap while it had file
	start := time.Now()
	w, err := follow(ctx, cgroups[1], idleSample, func(counters.Snapshot) (bool, error) {
		s, err := cgroups[0].Take()
		if err != nil {
			return false, err
		}
		if s.Stat["file"] >= twinFile && s.Swap > before[0].Swap {
			zeroSwap = max(zeroSwap, s.Swap-before[0].Swap)
		}
		return time.Since(start) >= twinTime, agent.alive(procs...)
	})
	if err != nil {
		return run, err
	}
	after := make([]counters.Snapshot, len(twins))
	for i, c := range cgroups {
		if after[i], err = c.Take(); err != nil {
			return run, err
		}
	}
	if err := agent.finish(&run, w.start, cgroups...); err != nil {
		return run, err
	}
	w.fill(&run)
	w.passes(&run, procs[2], 0)
	run.Facts["zero_swapped_pages"] = float64(zeroSwap) / page
	for i, t := range twins {
		d := func(key string) float64 { return float64(after[i].Stat[key] - before[i].Stat[key]) }
		out := (float64(after[i].Swap)-float64(before[i].Swap))/page + d("workingset_refault_anon")
		if _, has := after[i].Stat["pswpout"]; has {
			out = d("pswpout")
		}
		own := float64(agent.reclaimed(cgroups[i])) / page
		if _, has := after[i].Stat["pgsteal_proactive"]; has {
			own = d("pgsteal_proactive")
		}
		run.Facts[t.name+"_reclaimed_pages"] = d("pgsteal")
		run.Facts[t.name+"_anon_pages"] = out
		run.Facts[t.name+"_by_agent_pages"] = own
		g.Logf("/%s with %d: %.0f pages reclaimed, %.0f of them anon, %.0f by the agent", t.name, t.swappiness, d("pgsteal"), out, own)
	}
	return run, nil
}

func checkSwappiness(runs []result.Run) []result.Check {
	ratio := func(above, below string) measure {
		return func(r result.Run) float64 { return fact(above)(r) / fact(below)(r) }
	}
	return []result.Check{
		most("swapped out at 0", runs, fact("zero_swapped_pages"), 0, "pages, while there is file"),
		least("anon at 180", runs, ratio("high_anon_pages", "high_reclaimed_pages"), twinShare, "of all pages reclaimed there"),
		least("by the agent at 0", runs, ratio("zero_by_agent_pages", "zero_reclaimed_pages"), twinByHand, "of all pages reclaimed there"),
		least("by the agent at 180", runs, ratio("high_by_agent_pages", "high_reclaimed_pages"), twinByHand, "of all pages reclaimed there"),
	}
}
