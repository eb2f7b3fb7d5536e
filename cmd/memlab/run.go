package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
)

// parseLRU reads --lru; the kernel's own choice is the empty string.
func parseLRU(s string) (string, error) {
	switch s {
	case "default":
		return "", nil
	case "classic", "mglru":
		return s, nil
	}
	return "", fmt.Errorf("--lru %q: it must be classic, mglru or default", s)
}

// parseAgents reads --agent, such as "off,on".
func parseAgents(s string) ([]string, error) {
	var out []string
	for _, a := range strings.Split(s, ",") {
		if a != protocol.AgentOff && a != protocol.AgentOn {
			return nil, fmt.Errorf("--agent %q: it must be off, on or both, as in off,on", s)
		}
		out = append(out, a)
	}
	return out, nil
}

// knownLaws are the laws --law takes.
var knownLaws = []string{"memagent", "senpai", "tmo"}

func parseLaw(s string) error {
	if s == "" {
		return nil
	}
	for _, l := range knownLaws {
		if s == l {
			return nil
		}
	}
	return fmt.Errorf("--law %q: it must be one of %s", s, strings.Join(knownLaws, ", "))
}

// trial are the flags of commands that run scenarios.
type trial struct {
	agents, topology, law, lru, json string
	runs                             int
	short, counted                   bool
}

func (t *trial) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.agents, "agent", "off,on", "states of the agent to run with: off, on or off,on")
	c.Flags().StringVar(&t.topology, "topology", "", "machine to boot (default: the scenario's own; see memlab list)")
	c.Flags().StringVar(&t.law, "law", "", "law the agent follows: "+strings.Join(knownLaws, ", ")+" (default: the scenario's own)")
	c.Flags().StringVar(&t.lru, "lru", "default", "page ageing: classic, mglru or default (the kernel's own)")
	c.Flags().IntVar(&t.runs, "runs", 1, "runs with each state of the agent")
	c.Flags().BoolVar(&t.short, "short", false, "the form that fits CI: less time, the same checks")
	c.Flags().BoolVar(&t.counted, "counted", false, "take the guest's instructions for its clock: slower, but times do not depend on how busy this machine is")
	c.Flags().StringVar(&t.json, "json", "", "write results to this file; - is standard output")
}

// experiment is what the flags say, for a scenario on a kernel.
func (t *trial) experiment(s scenario.Scenario, kernel string) (lab.Experiment, error) {
	agents, err := parseAgents(t.agents)
	if err != nil {
		return lab.Experiment{}, err
	}
	lru, err := parseLRU(t.lru)
	if err != nil {
		return lab.Experiment{}, err
	}
	if err := parseLaw(t.law); err != nil {
		return lab.Experiment{}, err
	}
	if t.runs < 1 {
		return lab.Experiment{}, fmt.Errorf("--runs %d: it must be at least 1", t.runs)
	}
	return lab.Experiment{
		Scenario: s, Kernel: kernel, Topology: t.topology, Agents: agents, Runs: t.runs,
		Law: t.law, LRU: lru, Short: t.short, Counted: t.counted,
	}, nil
}

// write puts results where --json says.
func (a *app) write(file string, results []result.Result) error {
	switch file {
	case "":
		return nil
	case "-":
		return result.Encode(a.out, results)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	err = result.Encode(f, results)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing results to %s: %w", file, err)
	}
	return nil
}

func (a *app) runCommand() *cobra.Command {
	var t trial
	var kernel string
	c := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Run a scenario and hold its checks against what was measured",
		Long: `run boots a fresh guest for each run, alternating the agent's states, and prints the checks.
It exits 1 when a check fails.`,
		Example: "  memlab run squeeze --kernel 6.12 --agent off,on --runs 3 --json squeeze.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := scenario.Find(args[0])
			if err != nil {
				return err
			}
			e, err := t.experiment(s, kernel)
			if err != nil {
				return err
			}
			l, err := a.lab()
			if err != nil {
				return err
			}
			start := time.Now()
			res, err := l.Run(c.Context(), e)
			if err != nil {
				return err
			}
			if err := a.write(t.json, []result.Result{res}); err != nil {
				return err
			}
			if t.json != "-" {
				report(a.out, res)
			}
			a.say("in all: %s", time.Since(start).Round(time.Second))
			if n := result.Failed(res.Checks); n > 0 {
				return &codeError{exitCheck, fmt.Errorf("%d of %d checks failed", n, len(res.Checks))}
			}
			return nil
		},
	}
	t.flags(c)
	c.Flags().StringVar(&kernel, "kernel", "6.12", "kernel to boot: 6.1, 6.12 or latest")
	return c
}
