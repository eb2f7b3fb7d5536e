package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
)

func (a *app) suiteCommand() *cobra.Command {
	var t trial
	var kernelName string
	c := &cobra.Command{
		Use:   "suite",
		Short: "Run the scenarios whose checks are to hold, on one kernel",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.suite(c, t, kernelName) },
	}
	t.flags(c)
	c.Flags().StringVar(&kernelName, "kernel", "6.12", "kernel to boot: 6.1, 6.12 or latest")
	return c
}

// suite runs the scenarios of the suite and reports all of them.
func (a *app) suite(c *cobra.Command, t trial, kernelName string) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	var plan []lab.Experiment
	for _, s := range scenario.Suite() {
		e, err := t.experiment(s, kernelName)
		if err != nil {
			return err
		}
		if s.Alone && !c.Flags().Changed("agent") {
			e.Agents = []string{protocol.AgentOn}
		}
		plan = append(plan, e)
	}
	start := time.Now()
	var results []result.Result
	var broken []error
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
	}
	if err := a.write(t.json, results); err != nil {
		return err
	}
	if t.json != "-" {
		medians(a.out, results)
	}
	a.say("in all: %s", time.Since(start).Round(time.Second))
	return a.verdict(results, broken, len(plan), t.json != "-")
}

// verdict prints the checks of all results where it is to, and says how a command ends that has made
// some of its experiments, and not those that are broken.
func (a *app) verdict(results []result.Result, broken []error, planned int, print bool) error {
	failed, skipped, made := 0, 0, 0
	for _, res := range results {
		failed += result.Failed(res.Checks)
		skipped += result.Skipped(res.Checks)
		made += len(res.Checks)
		if print {
			fmt.Fprintf(a.out, "\n%s on %s, %s LRU\n", res.Scenario, res.Kernel, res.LRU)
			starved(a.out, res)
			checks(a.out, res.Checks)
		}
	}
	if print {
		// An experiment that could not be made has failed, whatever its checks.
		fmt.Fprintf(a.out, "%d passed, %d failed, %d skipped\n", made-failed-skipped, failed+len(broken), skipped)
	}
	switch {
	case len(broken) > 0:
		return fmt.Errorf("%d of %d experiments could not be made:\n%w", len(broken), planned, errors.Join(broken...))
	case failed > 0:
		return &codeError{exitCheck, fmt.Errorf("%d of %d checks failed", failed, made)}
	}
	return nil
}
