package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The hot-cold scenario: the test program of the workingset series for anon ("workingset
// protection/detection on the anonymous LRU list", 2020) under the memory it had. What the loop
// uses does not fit, so no policy can save the swap-ins; but reclaim in small steps, ahead of the
// limit, spares the program the wait for it.
const (
	hotColdCold   = 512 * mib
	hotColdWindow = 128 * mib
	hotColdHot    = 96 * mib // each of the two hot sets
	hotColdLimit  = 280 * mib
	hotColdRound  = hotColdCold / hotColdWindow // loops until the window has been everywhere
	hotColdLoops  = 15
	hotColdShort  = 5
	hotColdLoop   = 20 * time.Second // at most, with all of it swapped in by an emulated CPU
	hotColdCgroup = "/app"
	// hotColdSettle is how long the program may take to allocate 704 MiB under the limit.
	hotColdSettle = 4 * time.Minute

	hotColdStall  = 0.20 // of off's pressure
	hotColdTime   = 1.00 // of off's time
	hotColdSwapIn = 1.03 // of off's swap-ins

	// In a part of its own, without a limit, a hot set that is abandoned must go by itself.
	abandonedCgroup = "/free"
	abandonedEvery  = 200 * time.Millisecond
	abandonedPasses = 15 // of the first set, before nobody touches it again
	abandonedWithin = 60 * time.Second
	abandonedShare  = 0.90 // of the first set counts as all of it
)

var hotCold = Scenario{
	Name:     "hot-cold",
	About:    "a hot set is abandoned for another, beside cold memory, under a limit: nobody waits for reclaim",
	Law:      "memagent",
	Topology: oneNode,
	Within: func(short bool) time.Duration {
		return time.Duration(hotColdPasses(short))*hotColdLoop + hotColdSettle + abandonedWithin + 3*setUpWithin
	},
	Run:    runHotCold,
	Checks: checkHotCold,
}

func hotColdPasses(short bool) int {
	return form(short, hotColdShort, hotColdLoops)
}

// hotColdConfig is the agent's configuration. Swap is in memory here, so that writing to it wears
// nothing out and the budget may be as large as to bound nothing. A headroom of 12 MiB is what
// reclaim by hand was measured with.
func hotColdConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
host:
  swap:
    write_budget: 1GiB/s
policies:
  - name: limited
    match:
      - path: %s
    law: %s
    swappiness: 200
    squeeze: off
    headroom: 12MiB
  - name: free
    match:
      - path: %s
    law: %s
    swappiness: 200
    squeeze:
      idle_age: 10s
`, hotColdCgroup, law, abandonedCgroup, law)
}

func runHotCold(ctx context.Context, g *guest.Guest) (result.Run, error) {
	run, agent, start, err := loopHotCold(ctx, g, "memory.max", hotColdConfig(law(g, "memagent")), hotColdPasses(g.Spec.Short))
	defer agent.end()
	if err != nil || agent.agent == nil {
		return run, err
	}
	if err := abandoned(ctx, g, agent, &run); err != nil {
		return run, err
	}
	return run, agent.finish(&run, start, guest.Cgroup{Path: hotColdCgroup})
}

// loopHotCold runs the program under a limit, beside an agent that is the caller's to end.
func loopHotCold(ctx context.Context, g *guest.Guest, file, config string, loops int) (run result.Run, agent companion, start time.Time, err error) {
	app, err := guest.NewCgroup(hotColdCgroup)
	if err != nil {
		return run, agent, start, err
	}
	if err := app.Set(file, fmt.Sprint(hotColdLimit)); err != nil {
		return run, agent, start, err
	}
	if agent, err = accompany(ctx, g, config, app); err != nil {
		return run, agent, start, err
	}
	program, err := app.Settle(hotColdSettle, "hotcold", "--cold", fmt.Sprint(hotColdCold),
		"--window", fmt.Sprint(hotColdWindow), "--hot", fmt.Sprint(hotColdHot), "--loops", fmt.Sprint(loops))
	if err != nil {
		return run, agent, start, err
	}
	defer program.Stop()
	first := program.Count()
	var late counters.Snapshot
	round := false // the window has been everywhere once
	w, err := follow(ctx, app, idleSample, func(now counters.Snapshot) (bool, error) {
		if !round && program.Count() >= hotColdRound {
			round, late = true, now
		}
		return program.Count() >= loops, agent.alive(program)
	})
	if err != nil {
		return run, agent, start, err
	}
	w.fill(&run)
	w.passes(&run, program, first)
	run.Facts["late_swap_ins"] = float64(w.after.Since(late).SwapIn)
	g.Logf("%d loops of %.0f ms in the median, %d swap-ins, %d ms of pressure",
		len(run.PassMS), result.Median(run.PassMS), run.Counters.SwapIn, run.Counters.PSISomeUS/1000)
	return run, agent, w.start, nil
}

// agesFile is where the kernel tells the ages of pages.
const agesFile = "/sys/kernel/debug/lru_gen"

// ages says why the kernel tells no ages, or nothing when it does.
func ages() string {
	on, err := os.ReadFile("/sys/kernel/mm/lru_gen/enabled")
	if err != nil || strings.TrimSpace(string(on)) == "0x0000" {
		return "the multi-gen LRU is not there or not on, and without it nobody knows ages"
	}
	if _, err := os.Stat(agesFile); err != nil {
		return "this kernel does not show ages in " + agesFile
	}
	return ""
}

// abandoned lets a hot set be abandoned for another where there is no limit, and measures when it
// is out. A fact that is missing says that it never was.
func abandoned(ctx context.Context, g *guest.Guest, agent companion, run *result.Run) error {
	if why := ages(); why != "" {
		run.Facts["ages"] = 0
		g.Logf("no hot set is abandoned without a limit: %s", why)
		return nil
	}
	run.Facts["ages"] = 1
	free, err := guest.NewCgroup(abandonedCgroup)
	if err != nil {
		return err
	}
	old, err := free.Settle(setUpWithin, "anon", "--size", fmt.Sprint(hotColdHot),
		"--every", abandonedEvery.String(), "--passes", fmt.Sprint(abandonedPasses))
	if err != nil {
		return err
	}
	used, err := free.Settle(setUpWithin, "anon", "--size", fmt.Sprint(hotColdHot), "--every", abandonedEvery.String())
	if err != nil {
		return err
	}
	deadline := time.Now().Add(setUpWithin)
	for old.Count() < abandonedPasses {
		if err := agent.alive(old, used); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the first hot set was touched only %d times within %s", old.Count(), setUpWithin)
		}
		time.Sleep(abandonedEvery)
	}
	out, begun := false, time.Now()
	w, err := follow(ctx, free, idleSample, func(now counters.Snapshot) (bool, error) {
		out = float64(now.Swap) >= abandonedShare*hotColdHot
		return out || time.Since(begun) >= abandonedWithin, agent.alive(old, used)
	})
	if err != nil {
		return err
	}
	c := w.after.Since(w.before)
	if out {
		run.Facts["abandoned_out_seconds"] = w.elapsed.Seconds()
	}
	run.Facts["abandoned_refault_pages"] = float64(c.RefaultAnon)
	g.Logf("without a limit %d MiB of the abandoned set went to swap in %s, %d pages came back",
		w.after.Swap/mib, w.elapsed.Round(time.Second), c.RefaultAnon)
	return nil
}

func checkHotCold(runs []result.Run) []result.Check {
	stall := func(r result.Run) float64 { return float64(r.Counters.PSISomeUS) / 1e3 }
	whole := func(r result.Run) float64 { return float64(r.ElapsedMS) / 1e3 }
	ins := func(r result.Run) float64 { return float64(r.Counters.SwapIn) }
	checks := []result.Check{
		share("pressure", runs, stall, hotColdStall, "ms"),
		share("run time", runs, whole, hotColdTime, "s"),
		share("swap-ins", runs, ins, hotColdSwapIn, "pages"),
	}
	const name = "abandoned set out"
	for _, r := range result.Of(runs, "on") {
		if r.Facts["ages"] == 0 {
			return append(checks, result.Skip(name, "the kernel tells no ages"))
		}
	}
	return append(checks, most(name, runs, fact("abandoned_out_seconds"), abandonedWithin.Seconds(), "s without a limit"))
}
