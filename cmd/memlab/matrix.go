package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
)

func (a *app) matrixCommand() *cobra.Command {
	var t trial
	var kernels []string
	c := &cobra.Command{
		Use:   "matrix",
		Short: "Run every scenario on every kernel and show medians and spread",
		Long: `matrix runs all scenarios but those of a container host on all kernels, --runs times with each state of the agent. A run that
cannot be made does not keep the others from being made; the exit code is then 2.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.sweep(c, t, scenario.Comparisons(), kernels) },
	}
	t.flags(c)
	c.Flags().StringSliceVar(&kernels, "kernel", kernel.Names(), "kernels to run on")
	return c
}

func (a *app) suiteCommand() *cobra.Command {
	var t trial
	var kernelName string
	c := &cobra.Command{
		Use:   "suite",
		Short: "Run the scenarios whose checks are to hold, on one kernel",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.sweep(c, t, scenario.Suite(), []string{kernelName}) },
	}
	t.flags(c)
	c.Flags().StringVar(&kernelName, "kernel", "6.12", "kernel to boot: 6.1, 6.12 or latest")
	return c
}

// sweep runs scenarios on kernels and reports all of them.
func (a *app) sweep(c *cobra.Command, t trial, scenarios []scenario.Scenario, kernels []string) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	var plan []lab.Experiment
	for _, k := range kernels {
		for _, s := range scenarios {
			e, err := t.experiment(s, k)
			if err != nil {
				return err
			}
			if s.Alone && !c.Flags().Changed("agent") {
				e.Agents = []string{protocol.AgentOn}
			}
			plan = append(plan, e)
		}
	}
	start := time.Now()
	var results []result.Result
	var broken []error
	failed, skipped, made := 0, 0, 0
	for _, e := range plan {
		res, err := l.Run(c.Context(), e)
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if err != nil {
			a.say("memlab: %v", err)
			broken = append(broken, err)
			continue
		}
		results = append(results, res)
		failed += result.Failed(res.Checks)
		skipped += result.Skipped(res.Checks)
		made += len(res.Checks)
	}
	if err := a.write(t.json, results); err != nil {
		return err
	}
	if t.json != "-" {
		medians(a.out, results)
		for _, res := range results {
			fmt.Fprintf(a.out, "\n%s on %s\n", res.Scenario, res.Kernel)
			starved(a.out, res)
			checks(a.out, res.Checks)
		}
	}
	a.say("in all: %s", time.Since(start).Round(time.Second))
	if t.json != "-" {
		// An experiment that could not be made has failed, whatever its checks.
		fmt.Fprintf(a.out, "%d passed, %d failed, %d skipped\n", made-failed-skipped, failed+len(broken), skipped)
	}
	switch {
	case len(broken) > 0:
		return fmt.Errorf("%d of %d experiments could not be made:\n%w", len(broken), len(plan), errors.Join(broken...))
	case failed > 0:
		return &codeError{exitCheck, fmt.Errorf("%d of %d checks failed", failed, made)}
	}
	return nil
}

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
}

// medians prints a row for each scenario, kernel and state of the agent: the median over its
// runs, and the spread where runs differ.
func medians(w io.Writer, results []result.Result) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "scenario\tkernel\tagent\truns")
	for _, m := range measures {
		fmt.Fprintf(tw, "\t%s", m.name)
	}
	fmt.Fprintln(tw)
	for _, res := range results {
		for _, agent := range []string{"off", "on"} {
			runs := result.Of(res.Runs, agent)
			if len(runs) == 0 {
				continue
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%d", res.Scenario, res.Kernel, agent, len(runs))
			for _, m := range measures {
				values := result.Each(runs, m.of)
				fmt.Fprintf(tw, "\t%.4g", result.Median(values))
				if low, high := result.Spread(values); low != high {
					fmt.Fprintf(tw, " (%.4g..%.4g)", low, high)
				}
			}
			fmt.Fprintln(tw)
		}
	}
	flush(tw)
}
