package scenario

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The node-imbalance scenario, after "memg: better numa scanning" (2011): one node holds cold cache
// that costs nothing to lose, another holds anon alone. The kernel reclaims from every node in
// proportion, and so swaps anon that need not go. Asked for as much, the agent takes it from the
// node with the cache.
const (
	imbalanceFile   = 200 * mib // of cold clean cache on node 0
	imbalanceAnon   = 48 * mib  // beside it
	imbalanceOther  = 96 * mib  // of anon on node 1, with nothing else
	imbalanceAsk    = 96 * mib
	imbalanceCgroup = "/app"

	// The agent is asked by a limit that leaves imbalanceSpare free, below which it keeps headroom for
	// that and for what it is asked.
	imbalanceSpare = 16 * mib
	// imbalanceWithin is how long the agent may take, and imbalanceAfter how long it is watched for
	// taking too much.
	imbalanceWithin = time.Minute
	imbalanceShort  = 5 * time.Second
	imbalanceLong   = 20 * time.Second

	imbalanceWrong = 1000 // pages of anon that kernels take from node 1, or there is no imbalance
	imbalanceApart = 0.02 // of what was asked for may be lacking, or be too much
)

var nodeImbalance = Scenario{
	Name:     "node-imbalance",
	About:    "cold cache on one node, anon on another: reclaim goes to the cache",
	Law:      "memagent",
	Topology: "quad",
	Suite:    true,
	Files:    files(imbalanceFile),
	Within:   func(short bool) time.Duration { return imbalanceWithin + imbalanceAfter(short) + 3*setUpWithin },
	Run:      runNodeImbalance,
	Checks:   checkNodeImbalance,
}

func imbalanceAfter(short bool) time.Duration { return form(short, imbalanceShort, imbalanceLong) }

// imbalanceConfig is the agent's configuration. Swap is in memory here, and its budget bounds
// nothing.
func imbalanceConfig(law, headroom string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
host:
  swap:
    write_budget: 1GiB/s
policies:
  - name: imbalance
    match:
      - path: %s
    law: %s
    squeeze: off
    headroom: %s
    numa:
      reclaim: lottery
`, imbalanceCgroup, law, headroom)
}

// headroomFor is the headroom that makes the agent take as much from a cgroup as is asked for, once
// its limit leaves spare bytes free. It is a share, since no size counts beyond an eighth of a limit.
func headroomFor(c guest.Cgroup, asked, spare int64) (string, error) {
	s, err := counters.Take(c.Dir())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%.4f%%", 100*float64(asked+spare)/(float64(s.Current)+float64(spare))), nil
}

func runNodeImbalance(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	app, err := guest.NewCgroup(imbalanceCgroup)
	if err != nil {
		return run, err
	}
	for node, size := range []int64{imbalanceAnon, imbalanceOther} {
		if _, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(size), "--node", fmt.Sprint(node)); err != nil {
			return run, err
		}
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	if _, err := app.Finish(setUpWithin, "file", "--path", guest.DataDir+"/file", "--node", "0"); err != nil {
		return run, err
	}
	headroom, err := headroomFor(app, imbalanceAsk, imbalanceSpare)
	if err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, imbalanceConfig(law(g, "memagent"), headroom), app)
	if err != nil {
		return run, err
	}
	defer agent.end()
	w, refused, err := demand(ctx, g, app, agent, imbalanceAsk, imbalanceSpare, imbalanceAfter(g.Spec.Short))
	if err != nil {
		return run, err
	}
	w.fill(&run)
	anon, file := fell(w, "anon", "0"), fell(w, "file", "0")
	wrong := fell(w, "anon", "1")
	maps.Copy(run.Facts, map[string]float64{
		"wrong_anon_pages":   wrong / page,
		"victim_anon_pages":  anon / page,
		"victim_freed_bytes": anon + file,
		"freed_bytes":        anon + file + wrong + fell(w, "file", "1"),
		"refused_bytes":      float64(refused),
	})
	g.Logf("%d MiB asked for: node 0 gave %.1f MiB of file and %.1f of anon, node 1 %.1f MiB of anon",
		imbalanceAsk/mib, file/mib, anon/mib, wrong/mib)
	return run, agent.finish(&run, w.start, app)
}

// demand makes a cgroup smaller: without the agent by asking the kernel, with it by a limit the agent
// keeps headroom below, of which spare bytes are free already. It watches the cgroup from before
// that until some time after, and returns what the kernel would not give, in bytes.
func demand(ctx context.Context, g *guest.Guest, c guest.Cgroup, agent companion, bytes, spare int64, after time.Duration) (w watched, refused int64, err error) {
	var target uint64
	var asked, reached time.Time
	w, err = follow(ctx, c, idleSample, func(now counters.Snapshot) (bool, error) {
		if asked.IsZero() {
			asked, target = time.Now(), now.Current-uint64(float64(bytes)*(1-imbalanceApart))
			if agent.agent != nil {
				return false, c.Set("memory.max", fmt.Sprint(now.Current+uint64(spare)))
			}
			var err error
			refused, err = ask(c, bytes)
			reached, after = time.Now(), statsSettle
			return false, err
		}
		if reached.IsZero() && now.Current <= target {
			reached = time.Now()
			g.Logf("as much was given %s after it was asked for", time.Since(asked).Round(time.Millisecond))
		}
		late := time.Since(asked) >= imbalanceWithin
		return late || !reached.IsZero() && time.Since(reached) >= after, agent.alive()
	})
	return w, refused, err
}

func checkNodeImbalance(runs []result.Run) []result.Check {
	unit := "pages"
	if off := result.Of(runs, "off"); len(off) > 0 {
		_, words := fact("wrong_anon_pages").of(off)
		unit += ", " + words + " without the agent"
	}
	return []result.Check{
		alone("anon out on the wrong node, by the kernel", runs, fact("wrong_anon_pages"), imbalanceWrong, "pages"),
		most("anon out on the wrong node", runs, fact("wrong_anon_pages"), 0, unit),
		near("freed on the right node", runs, fact("victim_freed_bytes"), imbalanceAsk, imbalanceApart, "bytes"),
	}
}
