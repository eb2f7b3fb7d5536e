package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/memagent/memagent/lab/result"
)

// measures are the columns of the medians table.
var measures = []struct {
	name string
	of   func(result.Run) float64
}{
	{"resident MiB", func(r result.Run) float64 { return r.Facts["resident_after_bytes"] / (1 << 20) }},
	{"refaults", func(r result.Run) float64 { return float64(r.Counters.RefaultAnon + r.Counters.RefaultFile) }},
	{"swap-ins", func(r result.Run) float64 { return float64(r.Counters.SwapIn) }},
	{"swap-outs", func(r result.Run) float64 { return float64(r.Counters.SwapOut) }},
	{"PSI some ms", func(r result.Run) float64 { return float64(r.Counters.PSISomeUS) / 1e3 }},
	{"pass ms", func(r result.Run) float64 { return result.Median(r.PassMS) }},
	{"agent CPU ms", func(r result.Run) float64 {
		if r.AgentStats == nil {
			return 0
		}
		return float64(r.AgentStats.MeasuredCPUMS)
	}},
	{"BUSY %", func(r result.Run) float64 { return 100 * r.Starved() }},
}

// row is a line of the medians table: runs that are alike but for chance.
type row struct {
	names []string // by the names of the columns before the measures
	runs  []result.Run
}

// table is the medians of rows, and the spread where runs differ, as text cells; the first line is
// the heading.
func table(columns []string, rows []row) [][]string {
	head := append(append([]string(nil), columns...), "runs")
	for _, m := range measures {
		head = append(head, m.name)
	}
	out := [][]string{head}
	for _, r := range rows {
		line := append(append([]string(nil), r.names...), fmt.Sprint(len(r.runs)))
		for _, m := range measures {
			values := result.Each(r.runs, m.of)
			cell := fmt.Sprintf("%.4g", result.Median(values))
			if low, high := result.Spread(values); low != high {
				cell += fmt.Sprintf(" (%.4g..%.4g)", low, high)
			}
			line = append(line, cell)
		}
		out = append(out, line)
	}
	return out
}

// medians prints a row for each scenario, kernel and state of the agent.
func medians(w io.Writer, results []result.Result) {
	var rows []row
	for _, res := range results {
		for _, agent := range []string{"off", "on"} {
			if runs := result.Of(res.Runs, agent); len(runs) > 0 {
				rows = append(rows, row{[]string{res.Scenario, res.Kernel, agent}, runs})
			}
		}
	}
	plain(w, table([]string{"scenario", "kernel", "agent"}, rows))
}

// plain prints a table for a terminal.
func plain(w io.Writer, lines [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintln(tw, strings.Join(l, "\t"))
	}
	flush(tw)
}

// markdown is a table for a document.
func markdown(lines [][]string) string {
	var b strings.Builder
	for i, l := range lines {
		b.WriteString("| " + strings.Join(l, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(l)) + "|\n")
		}
	}
	return b.String()
}
