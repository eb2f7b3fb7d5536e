package scenario

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The build scenario, after the kernel make of "memg: better numa scanning" (2011): many short
// processes use the same tools and headers, read sources nobody else reads, allocate, and end. They
// are spread over four nodes, under a limit of a third of what all of it would take. What is worth
// keeping is the tools, the headers and the anon; what is not is the sources, which lie unevenly.
const (
	buildTools   = 48 * mib // mapped by every unit, like a compiler
	buildCommon  = 16 * mib // read by every unit, like headers
	buildOwn     = 10 * mib // read by one unit
	buildSources = buildCommon + buildShort*buildOwn
	buildLeast   = 20 * mib // allocated by the smallest unit
	buildMost    = 60 * mib // and by the largest
	buildJobs    = 4
	// buildLimit is a third of the tools, the sources and what four units allocate on average: 234 MiB.
	// What is worth keeping is 224 MiB on average and 304 MiB at the worst.
	buildLimit  = (buildTools + buildSources + buildJobs*(buildLeast+buildMost)/2) / 3
	buildUnits  = 120
	buildShort  = 48 // as many as there are own parts
	buildUnit   = 4 * time.Second
	buildCgroup = "/build"
	buildNodes  = "0,1,2,3"
	// buildHeadroom is the agent's, of the limit: 7 MiB. The limit barely holds what is worth keeping,
	// and headroom is taken from that: with 8% as many pages came back again as the kernel alone takes.
	buildHeadroom = "3%"
	// buildSwappiness is the least that the agent passes, the kernel's own. What is file here is mostly
	// tools and headers, of which every unit needs all: with 0 twice as much of them came back.
	buildSwappiness = 60

	buildFaults  = 0.50 // of off's major faults
	buildStall   = 0.50 // of off's pressure
	buildElapsed = 1.05 // of off's time: not worse, but for what two runs of one kernel differ by
	buildMany    = 1000 // major faults of the kernel alone, or memory is not short
)

var build = Scenario{
	Name:     "build",
	About:    "many short processes re-read sources on four nodes: fewer major faults, less waiting",
	Law:      "memagent",
	Topology: "quad",
	Files:    []disk.File{{Name: "tools", Size: buildTools}, {Name: "sources", Size: buildSources}},
	Within:   func(short bool) time.Duration { return time.Duration(buildCount(short))*buildUnit + 2*setUpWithin },
	Run:      runBuild,
	Checks:   checkBuild,
}

func buildCount(short bool) int { return form(short, buildShort, buildUnits) }

// buildConfig is the agent's configuration. Swap is in memory here, and its budget bounds nothing.
func buildConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
host:
  swap:
    write_budget: 1GiB/s
policies:
  - name: build
    match:
      - path: %s
    law: %s
    swappiness: {auto: {base: %d, min: %d, max: 200}}
    squeeze: off
    headroom: %s
    numa:
      reclaim: lottery
`, buildCgroup, law, buildSwappiness, buildSwappiness, buildHeadroom)
}

func runBuild(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	c, err := guest.NewCgroup(buildCgroup)
	if err != nil {
		return run, err
	}
	for file, value := range map[string]string{"memory.max": fmt.Sprint(buildLimit), "cpuset.mems": buildNodes} {
		if err := c.Set(file, value); err != nil {
			return run, err
		}
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, buildConfig(law(g, "memagent")), c)
	if err != nil {
		return run, err
	}
	defer agent.end()
	units := buildCount(g.Spec.Short)
	begun := time.Now()
	maker, err := c.Start("build", "--tools", guest.DataDir+"/tools", "--sources", guest.DataDir+"/sources",
		"--common", fmt.Sprint(buildCommon), "--own", fmt.Sprint(buildOwn), "--least", fmt.Sprint(buildLeast), "--most", fmt.Sprint(buildMost),
		"--units", fmt.Sprint(units), "--jobs", fmt.Sprint(buildJobs), "--nodes", buildNodes, "--linger")
	if err != nil {
		return run, err
	}
	var took time.Duration
	w, err := follow(ctx, c, idleSample, func(counters.Snapshot) (bool, error) {
		if took == 0 && maker.Count() == units {
			took = maker.Last().Sub(begun)
		}
		return took > 0, agent.alive(maker)
	})
	if err != nil {
		return run, err
	}
	w.fill(&run)
	w.passes(&run, maker, 0)
	maps.Copy(run.Facts, map[string]float64{"build_ms": float64(took.Milliseconds())})
	g.Logf("%d units in %s, %d major faults, %d ms of pressure, %d pages swapped out, %d file refaults", units,
		took.Round(time.Second/10), run.Counters.PgMajFault, run.Counters.PSISomeUS/1000, run.Counters.SwapOut, run.Counters.RefaultFile)
	return run, agent.finish(&run, w.start, c)
}

func checkBuild(runs []result.Run) []result.Check {
	faults := func(r result.Run) float64 { return float64(r.Counters.PgMajFault) }
	stall := func(r result.Run) float64 { return float64(r.Counters.PSISomeUS) / 1e3 }
	return []result.Check{
		alone("major faults, by the kernel", runs, faults, buildMany, "faults"),
		share("major faults", runs, faults, buildFaults, "faults"),
		share("pressure", runs, stall, buildStall, "ms"),
		share("time of the build", runs, fact("build_ms"), buildElapsed, "ms"),
	}
}
