package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/docker/go-units"

	"github.com/memagent/memagent/lab/machine"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
)

// starvedNote is the share of waiting for the host from which a report says that times are off.
const starvedNote = 0.2

// report prints a result for people.
func report(w io.Writer, res result.Result) {
	fmt.Fprintf(w, "%s on %s (%s, %s LRU, %s)\n", res.Scenario, res.Kernel, res.Topology, res.LRU, res.Accel)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "agent\tresident\trefaults\tswap in/out\tmajor faults\tPSI some\tpass (median)\tagent CPU\treclaimed\tboot")
	for _, r := range res.Runs {
		c := r.Counters
		resident, cpu, reclaimed := "-", "-", "-"
		if n := len(r.Series); n > 0 {
			resident = fmt.Sprintf("%s -> %s", human(r.Series[0].Resident()), human(r.Series[n-1].Resident()))
		}
		if st := r.AgentStats; st != nil {
			cpu, reclaimed = fmt.Sprintf("%d ms", st.MeasuredCPUMS), human(uint64(max(0, st.ReclaimedBytes)))
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d/%d\t%d\t%.1f ms\t%.1f ms\t%s\t%s\t%.1f s\n", r.Agent, resident,
			c.RefaultAnon+c.RefaultFile, c.SwapIn, c.SwapOut, c.PgMajFault, float64(c.PSISomeUS)/1e3,
			result.Median(r.PassMS), cpu, reclaimed, float64(r.BootMS)/1e3)
	}
	flush(tw)
	starved(w, res)
	for _, r := range res.Runs {
		for _, d := range r.Differences {
			fmt.Fprintf(w, "changed with the agent %s: %s\n", r.Agent, d)
		}
	}
	if s, err := scenario.Find(res.Scenario); err == nil && s.Table != nil {
		fmt.Fprint(w, s.Table(res.Runs))
	}
	checks(w, res.Checks)
}

// starved says so when the host was too busy for times to mean much. A clock of instructions does
// not mind.
func starved(w io.Writer, res result.Result) {
	if res.Accel == string(machine.Counted) {
		return
	}
	_, most := result.Spread(result.Each(res.Runs, result.Run.Starved))
	if most >= starvedNote {
		fmt.Fprintf(w, "note: the host was busy; a guest's CPUs waited for it %.0f %% of the time they wanted to run, so times say little\n", 100*most)
	}
}

// checks prints checks, one a line.
func checks(w io.Writer, list []result.Check) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range list {
		switch {
		case c.Skipped != "":
			fmt.Fprintf(tw, "skip\t%s\t%s\n", c.Name, c.Skipped)
		case c.OK:
			fmt.Fprintf(tw, "ok\t%s\t%.4g\t%s\n", c.Name, c.Got, c.Want)
		default:
			fmt.Fprintf(tw, "FAIL\t%s\t%.4g\t%s\n", c.Name, c.Got, c.Want)
		}
	}
	flush(tw)
}

// flush ends a table. Its writer reports its own errors at the next write, if anybody cares.
func flush(tw *tabwriter.Writer) { _ = tw.Flush() }

// human is a size for people.
func human(n uint64) string {
	return units.CustomSize("%.0f %s", float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
}
