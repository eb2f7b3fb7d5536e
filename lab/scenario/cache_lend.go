package scenario

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The cache-lend scenario, after "Improving algorithm of memcg pagecache pages eviction" (2019): a
// file is read again and again under a small memory.high, beside a host with free memory, from a disk
// that is as slow against memory as in that report. An agent may lend what nobody needs. Then another
// cgroup fills the host, and what was lent has to be back before anyone misses it.
const (
	lendFile   = 200 * mib
	lendHigh   = 40 * mib
	lendHot    = 16 * mib // of anon in the borrower, used all the time
	lendEvery  = 500 * time.Millisecond
	lendDisk   = 5 * mib // bytes a second: emulated guests read cache at 250 MiB a second, 39 times that and some
	lendCgroup = "/app"
	// Passes. Without an agent each one takes as long as the disk, and the second tells it all; once
	// memory is lent they are quick, and the fastest is the one that the machine was not busy with
	// something else in.
	lendOff   = 2
	lendShort = 6
	lendLong  = 12
	lendPass  = 90 * time.Second
	lendTick  = time.Second // the agent's interval

	// lendReserve is of the host, kept free. It is more than lendLeft and all that is lent together, so
	// that the host is short of it also once all is back.
	lendReserve = 256 * mib
	lendLeft    = 40 * mib  // of the host left free by the filler when nothing comes back
	lendFill    = 128 * mib // bytes a second
	lendWatch   = 15 * time.Second

	lendTrouble   = 40000 // pages that refault without the agent, of 51,200 that the second pass reads
	lendAfter     = 100   // pages that may refault from the third pass on
	lendSeen      = 3     // ticks
	lendFaster    = 1.0 / 39
	lendRecall    = 10   // seconds
	lendStall     = 0.01 // of the time
	lendFillLimit = 4 * time.Minute
)

var cacheLend = Scenario{
	Name:           "cache-lend",
	About:          "a file is re-read under a small memory.high beside a free host: memory is lent, and comes back",
	Law:            "memagent",
	Topology:       "small",
	Files:          files(lendFile),
	BytesPerSecond: lendDisk,
	Suite:          true,
	Within: func(short bool) time.Duration {
		return time.Duration(lendPasses("on", short))*lendPass + lendFillLimit + 2*setUpWithin
	},
	Run:    runCacheLend,
	Checks: checkCacheLend,
}

func lendPasses(agent string, short bool) int {
	if agent == "on" {
		return form(short, lendShort, lendLong)
	}
	return lendOff
}

// lendConfig is the agent's configuration.
func lendConfig(law, cgroup string) string {
	return fmt.Sprintf(`mode: enforce
interval: %s
state_dir: %s
host:
  reserve: %dMiB
policies:
  - name: borrower
    match:
      - path: %s
    law: %s
    swappiness: 0
    squeeze: off
    high:
      lend: true
      ceiling: 512MiB
`, lendTick, guest.StateDir, lendReserve/mib, cgroup, law)
}

func runCacheLend(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	app, err := guest.NewCgroup(lendCgroup)
	if err != nil {
		return run, err
	}
	if err := app.Set("memory.high", fmt.Sprint(lendHigh)); err != nil {
		return run, err
	}
	hot, err := app.Settle(setUpWithin, "anon", "--size", fmt.Sprint(lendHot), "--every", lendEvery.String())
	if err != nil {
		return run, err
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, lendConfig(law(g, "memagent"), lendCgroup), app)
	if err != nil {
		return run, err
	}
	defer agent.end()
	passes := lendPasses(g.Spec.Agent, g.Spec.Short)
	reader, err := app.Settle(setUpWithin, "file", "--path", guest.DataDir+"/file", "--loops", fmt.Sprint(passes), "--linger")
	if err != nil {
		return run, err
	}
	// What is lent within the first pass, for readahead that was evicted before it was read, is not yet
	// what the second one needs.
	var lent time.Time
	first := uint64(lendHigh)
	w, err := follow(ctx, app, idleSample, func(counters.Snapshot) (bool, error) {
		high, err := limit(app, "memory.high")
		if err != nil {
			return false, err
		}
		switch {
		case reader.Count() == 0 && high <= lendFile:
			first = high
		case lent.IsZero() && high > first:
			lent = time.Now()
		}
		return reader.Count() == passes, agent.alive(hot, reader)
	})
	if err != nil {
		return run, err
	}
	w.fill(&run)
	w.passes(&run, reader, 0)
	if begun := reader.Begun(1); !lent.IsZero() && len(begun) > 0 {
		run.Facts["lent_ms"] = float64(lent.Sub(begun[0]).Milliseconds())
	}
	g.Logf("%d passes of %.0f ms in the median, the last %.0f ms, %d file refaults; memory.high lent: %t",
		len(run.PassMS), result.Median(run.PassMS), run.PassMS[len(run.PassMS)-1], run.Counters.RefaultFile, !lent.IsZero())
	if agent.agent == nil {
		return run, nil // nothing was lent that could come back
	}
	facts, err := fillHost(ctx, app, func() error { return agent.alive(hot, reader) })
	if err != nil {
		return run, err
	}
	maps.Copy(run.Facts, facts)
	g.Logf("when the host filled: %v", facts)
	return run, agent.finish(&run, w.start, app)
}

// limit reads one of a cgroup's limits in bytes; "max" is more than any.
func limit(c guest.Cgroup, file string) (uint64, error) {
	text, err := c.Get(file)
	if err != nil || text == "max" {
		return 1<<64 - 1, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s of %s: %w", file, c.Path, err)
	}
	return n, nil
}

// fillHost fills the host from another cgroup and measures whether and when what was lent to the
// borrower came back, and who had to wait.
func fillHost(ctx context.Context, borrower guest.Cgroup, alive func() error) (map[string]float64, error) {
	other, err := guest.NewCgroup("/filler")
	if err != nil {
		return nil, err
	}
	host, err := counters.TakeNode(0)
	if err != nil {
		return nil, err
	}
	wants := int64(host.Free) - lendLeft
	if wants < mib {
		return nil, fmt.Errorf("the host has only %d MiB free, too little to fill", host.Free/mib)
	}
	before, err := borrower.Take()
	if err != nil {
		return nil, err
	}
	highBefore, err := limit(borrower, "memory.high")
	if err != nil {
		return nil, err
	}
	filler, err := other.Start("anon", "--size", fmt.Sprint(wants), "--rate", fmt.Sprint(lendFill))
	if err != nil {
		return nil, err
	}
	var short, full time.Time
	facts := map[string]float64{"lent_at_fill_bytes": float64(highBefore) - lendHigh}
	begun := time.Now()
	w, err := follow(ctx, other, idleSample, func(counters.Snapshot) (bool, error) {
		now, err := counters.TakeNode(0)
		if err != nil {
			return false, err
		}
		if short.IsZero() && now.Free < lendReserve {
			short = time.Now()
		}
		high, err := limit(borrower, "memory.high")
		if err != nil {
			return false, err
		}
		s, err := borrower.Take()
		if err != nil {
			return false, err
		}
		if _, back := facts["recall_seconds"]; !back && !short.IsZero() && highBefore > lendHigh && high <= lendHigh && s.Current <= lendHigh {
			facts["recall_seconds"] = time.Since(short).Seconds()
		}
		if full.IsZero() && filler.Ready() {
			full = time.Now()
		}
		if err := alive(); err != nil {
			return false, err
		}
		if time.Since(begun) > lendFillLimit {
			return false, fmt.Errorf("the host was not full within %s", lendFillLimit)
		}
		return !full.IsZero() && time.Since(full) >= lendWatch, filler.Alive()
	})
	if err != nil {
		return nil, err
	}
	after, err := borrower.Take()
	if err != nil {
		return nil, err
	}
	kills, err := events(other)
	if err != nil {
		return nil, err
	}
	us := float64(w.elapsed.Microseconds())
	facts["filler_oom_kills"] = float64(kills["oom_kill"])
	facts["filler_stall_share"] = float64(w.after.PSISome-w.before.PSISome) / us
	facts["borrower_stall_share"] = float64(after.PSISome-before.PSISome) / us
	facts["fill_seconds"] = full.Sub(begun).Seconds()
	return facts, nil
}

func checkCacheLend(runs []result.Run) []result.Check {
	refaults := func(r result.Run) float64 { return float64(r.Counters.RefaultFile) }
	// The second pass still reads what was lost in the first; the memory is there from the third on.
	const settled = 2
	from := func(r result.Run, pass int) (sum float64) {
		for n := pass; n < len(r.PassAtMS); n++ {
			sum += refaultsOf(r, n)
		}
		return sum
	}
	// What came in before the loan, in the ticks that it may take, pushed out as much, some of which
	// the third pass has to read. From the fourth on nothing is left to.
	beyond := func(r result.Run) float64 {
		lentMS := fact("lent_ms")(r)
		if len(r.PassAtMS) <= settled || math.IsNaN(lentMS) {
			return math.NaN()
		}
		second := r.PassAtMS[settled-1]
		before := fileRefaults(r, second+lentMS) - fileRefaults(r, second)
		return max(0, from(r, settled)-before)
	}
	pass := func(r result.Run) float64 {
		first := settled
		if r.Agent == "off" {
			first = 1
		}
		if len(r.PassMS) <= first {
			return math.NaN()
		}
		return slices.Min(r.PassMS[first:])
	}
	lent := func(r result.Run) float64 { return fact("lent_ms")(r) / float64(lendTick.Milliseconds()) }
	return []result.Check{
		alone("file refaults, by the kernel", runs, refaults, lendTrouble, "pages"),
		most("lent", runs, lent, lendSeen, "ticks after the second pass began"),
		most("file refaults once lent", runs, beyond, lendAfter, "pages from the third pass on, beyond what came in before the loan"),
		most("file refaults in the end", runs, func(r result.Run) float64 { return from(r, settled+1) }, lendAfter, "pages from the fourth pass on"),
		share("pass time once lent", runs, pass, lendFaster, "ms, the fastest each"),
		most("recalled", runs, fact("recall_seconds"), lendRecall, "s after the host was short"),
		most("the filler's kills", runs, fact("filler_oom_kills"), 0, "by the OOM killer"),
		most("the filler's waiting", runs, fact("filler_stall_share"), lendStall, "of the time"),
		most("the borrower's waiting", runs, fact("borrower_stall_share"), lendStall, "of the time, during recall"),
	}
}
