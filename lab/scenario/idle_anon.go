package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// idleAnon is what file-thrash and stream have in common: a file is read in passes beside anon
// that nobody uses, under a limit that both together do not fit in. They differ in the size of the
// file, and so in what is right.
type idleAnon struct {
	name, about string
	topology    string
	file        int64 // bytes
	short, long int   // passes
	swappiness  string
	headroom    string // "" for none
	guard       bool   // swap may be guarded against a stream
	yardstick   int64  // bytes of work that pass times are counted in, 0 for none: see workload --yardstick
	suite       bool
	checks      func([]result.Run) []result.Check
}

// oneNode is the machine for scenarios about the balance of anon and file. Each node has lists of
// its own, and a kernel that is short in one cgroup goes through the nodes: where anon and file
// happen to lie on different ones it takes from both, whatever it holds of either, so that on four
// nodes the same workload thrashes for two passes or for twenty.
const oneNode = "single"

const (
	page       = 4096
	idleLimit  = 180 * mib
	idleSize   = 150 * mib // of anon
	idleCgroup = "/app"
	idleTick   = time.Second // the agent's interval
	// idleEvery is the time from the beginning of a pass to that of the next. A kernel that is
	// left alone learns by the pass; read without a pause, the loop is over before the agent has
	// had its second look.
	idleEvery = 3 * time.Second
	// idleSample is how often counters are read: several times a tick, to tell what came first.
	idleSample = 250 * time.Millisecond
	// idlePass is how long a pass may take: seconds even where each page comes from the disk.
	idlePass = 10 * time.Second
)

func (i idleAnon) scenario() Scenario {
	return Scenario{
		Name: i.name, About: i.about, Law: "memagent", Topology: i.topology, Files: files(i.file), Suite: i.suite,
		Within: func(short bool) time.Duration {
			return time.Duration(i.passes(short))*idlePass + 2*setUpWithin
		},
		Run:    i.run,
		Checks: i.checks,
	}
}

func (i idleAnon) passes(short bool) int {
	return form(short, i.short, i.long)
}

// config is the agent's configuration. Swap is in memory here, so that writing to it wears nothing
// out and the budget may be a large one.
func (i idleAnon) config(law string) string {
	text := fmt.Sprintf(`mode: enforce
interval: %s
host:
  swap:
    write_budget: 64MiB/s
policies:
  - name: %s
    match:
      - path: %s
    law: %s
    swappiness: %s
    squeeze: off
`, idleTick, i.name, idleCgroup, law, i.swappiness)
	if i.headroom != "" {
		text += "    headroom: " + i.headroom + "\n"
	}
	if i.guard {
		text += "    swap_guard: true\n"
	}
	return text
}

func (i idleAnon) run(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	app, err := guest.NewCgroup(idleCgroup)
	if err != nil {
		return run, err
	}
	if err := app.Set("memory.max", fmt.Sprint(idleLimit)); err != nil {
		return run, err
	}
	idle, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(idleSize))
	if err != nil {
		return run, err
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, i.config(law(g, "memagent")), app)
	if err != nil {
		return run, err
	}
	defer agent.end()
	before, err := app.Take()
	if err != nil {
		return run, err
	}
	loops := i.passes(g.Spec.Short)
	reader, err := app.Settle(setUpWithin, "file", "--path", guest.DataDir+"/file",
		"--loops", fmt.Sprint(loops), "--every", idleEvery.String(), "--yardstick", fmt.Sprint(i.yardstick), "--linger")
	if err != nil {
		return run, err
	}
	var last time.Time
	w, err := follow(ctx, app, idleSample, func(counters.Snapshot) (bool, error) {
		if reader.Count() == loops && last.IsZero() {
			last = time.Now()
		}
		// The last pass is watched as long as the others.
		return !last.IsZero() && time.Since(last) >= idleEvery, agent.alive(idle, reader)
	})
	if err != nil {
		return run, err
	}
	w.fill(&run)
	w.passes(&run, reader, 0)
	end := w.series[len(w.series)-1]
	run.Facts["swapped_bytes"] = float64(end.Swap) - float64(before.Swap)
	run.Facts["shortfall_bytes"] = shortfall(w.series, before.Swap, i.file)
	judged(&run, agent.decisions(app), w.start)
	if err := agent.finish(&run, w.start, app); err != nil {
		return run, err
	}
	g.Logf("%d passes of %.0f ms in the median, %d file refaults, %d MiB of anon in swap, %.0f MiB were short",
		len(run.PassMS), result.Median(run.PassMS), run.Counters.RefaultFile, end.Swap/mib, run.Facts["shortfall_bytes"]/mib)
	return run, nil
}

// shortfall is how much anon had to go so that all of the file fits, in bytes: anon wherever it
// is, less what the set-up had put into swap already, the file, and whatever else is charged to
// the cgroup (page tables, slab), beyond the limit. It is measured at the end of a run, when all
// of them are there.
func shortfall(series []result.Point, swapBefore uint64, file int64) float64 {
	var values []float64
	for _, p := range series[max(0, len(series)-lastPoints):] {
		other := float64(p.Current) - float64(p.Anon) - float64(p.File)
		values = append(values, float64(p.Anon)+float64(p.Swap)-float64(swapBefore)+float64(file)+other-idleLimit)
	}
	return result.Median(values)
}
