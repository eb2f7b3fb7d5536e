package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
	"github.com/memagent/memagent/lab/topology"
)

// resultsDir is the folder of the cache that the matrix keeps its runs in.
const resultsDir = "results"

// matrix is what the flags of the command say.
type matrix struct {
	trial
	scenarios, kernels []string
	show               bool
	markdown           string
}

func (a *app) matrixCommand() *cobra.Command {
	var m matrix
	c := &cobra.Command{
		Use:   "matrix",
		Short: "Run every scenario on every kernel, as far as that was not done, and show medians and spread",
		Long: `matrix runs all scenarios but those of a container host on all kernels, --runs times with each state of the agent, and keeps
each run as a file in the folder "` + resultsDir + `" of the cache. What is there is not made again: the same command continues what
was stopped, and adds what is missing when more is asked for. Runs with the agent count for the build of memagent that made them,
known by the content of its file; name one that is kept elsewhere with --memagent. Runs without the agent serve every build.

A run that cannot be made does not keep the others from being made; the exit code is then 2, and the same command tries it again.
The table shows the medians of all that is kept of what the flags name, of every build.`,
		Example: "  memlab matrix --runs 3 --short\n" +
			"  memlab matrix --scenario stream,squeeze --kernel 6.12 --lru classic,mglru --runs 3\n" +
			"  memlab matrix --show --markdown table.md",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.matrix(c, m) },
	}
	m.flags(c)
	c.Flags().Lookup("lru").Usage = "page ageing: classic, mglru or default (the kernel's own), or several, as in classic,mglru"
	c.Flags().StringSliceVar(&m.kernels, "kernel", kernel.Names(), "kernels to run on")
	c.Flags().StringSliceVar(&m.scenarios, "scenario", nil, "scenarios to run (default: all that are compared)")
	c.Flags().BoolVar(&m.show, "show", false, "run nothing, show what is kept")
	c.Flags().StringVar(&m.markdown, "markdown", "", "write the table to this file as well, for a document; - is standard output in place of the other")
	return c
}

func (a *app) matrix(c *cobra.Command, m matrix) error {
	l, err := a.lab()
	if err != nil {
		return err
	}
	store := result.Store{Dir: filepath.Join(l.Cache, resultsDir)}
	kept, err := store.Load()
	if err != nil {
		a.say("memlab: %v", err)
	}
	var broken []error
	planned := 0
	builds := map[string]bool{"": true} // those of this call
	if !m.show {
		wants, err := m.wants(c, l)
		if err != nil {
			return err
		}
		planned = len(wants)
		for _, w := range wants {
			builds[w.cell.Build] = true
		}
		kept, broken, err = m.fill(c.Context(), wants, kept, a.say, l.Run, store.Add)
		if err != nil {
			return err
		}
	}
	groups := sheet(kept).groups()
	groups = slices.DeleteFunc(groups, func(g group) bool { return !m.asksFor(c, g) })
	if m.show && len(groups) == 0 {
		return fmt.Errorf("nothing is kept of that in %s; without --show it is run", store.Dir)
	}
	results := make([]result.Result, len(groups))
	for i, g := range groups {
		results[i] = g.Result
	}
	if err := a.write(m.json, results); err != nil {
		return err
	}
	lines := table(matrixColumns, matrixRows(groups))
	if err := m.writeMarkdown(a.out, lines); err != nil {
		return err
	}
	quiet := m.json == "-" || m.markdown == "-"
	if !quiet {
		plain(a.out, lines)
	}
	if m.show { // whether checks hold is the question of those who run
		return nil
	}
	results = results[:0]
	for _, g := range groups {
		if builds[g.build] {
			results = append(results, g.Result)
		}
	}
	return a.verdict(results, broken, planned, !quiet)
}

// wants are the cells that the flags ask for, in the order they are filled in.
func (m matrix) wants(c *cobra.Command, l *lab.Lab) ([]want, error) {
	list := scenario.Comparisons()
	if len(m.scenarios) > 0 {
		list = nil
		for _, name := range m.scenarios {
			s, err := scenario.Find(name)
			if err != nil {
				return nil, err
			}
			if s.Host {
				return nil, fmt.Errorf("--scenario %s: it needs a container host, and nothing is measured there that is compared; use memlab run", name)
			}
			list = append(list, s)
		}
	}
	// All flags are checked before the first kernel is fetched and the first run made, hours before the last.
	if m.topology != "" {
		if _, err := topology.Load(m.topology); err != nil {
			return nil, err
		}
	}
	for _, lru := range strings.Split(m.lru, ",") {
		t := m.trial
		t.lru = lru
		if _, err := t.experiment(list[0], ""); err != nil {
			return nil, err
		}
	}
	var out []want
	builds := map[string]string{}
	for _, k := range m.kernels {
		got, err := l.Kernels().Get(c.Context(), k)
		if err != nil {
			return nil, err
		}
		for _, lru := range strings.Split(m.lru, ",") {
			for _, s := range list {
				t := m.trial
				t.lru = lru
				e, err := t.experiment(s, k)
				if err != nil {
					return nil, err
				}
				if s.Alone && !c.Flags().Changed("agent") {
					e.Agents = []string{protocol.AgentOn}
				}
				cell := result.Cell{Scenario: s.Name, Kernel: got.Release, Topology: e.Topology, LRU: e.LRU, Accel: string(l.Accel(e.Counted || s.Counted)), Short: e.Short}
				if cell.Topology == "" {
					cell.Topology = s.Topology
				}
				for _, agent := range e.Agents {
					w := want{s, k, cell}
					w.cell.Agent = agent
					if agent == protocol.AgentOn {
						w.cell.Law = e.Law
						if w.cell.Law == "" {
							w.cell.Law = s.Law
						}
						if w.cell.Build, err = m.build(l, s, builds); err != nil {
							return nil, err
						}
					}
					out = append(out, w)
				}
			}
		}
	}
	return out, nil
}

// build names the memagent that a scenario runs with by the content of its file.
func (m matrix) build(l *lab.Lab, s scenario.Scenario, known map[string]string) (string, error) {
	path, err := l.AgentFor(s, protocol.AgentOn)
	if err != nil || known[path] != "" {
		return known[path], err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("telling builds of memagent apart: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("telling builds of memagent apart: %w", err)
	}
	known[path] = hex.EncodeToString(sum.Sum(nil))[:10]
	return known[path], nil
}

// fill makes the runs that are missing, one of each cell before the second of any, and returns all
// that are kept then, with what could not be made. A cell that failed once is left for the next call.
// The error is the context's, or for a run that could not be kept.
func (m matrix) fill(ctx context.Context, wants []want, kept []result.Kept, say func(string, ...any),
	run func(context.Context, lab.Experiment) (result.Result, error), keep func(result.Kept) error,
) (_ []result.Kept, broken []error, _ error) {
	s := sheet(kept)
	missing, _, _ := s.left(wants, m.runs)
	say("matrix: %d runs wanted, %d kept already, %d missing", m.runs*len(wants), m.runs*len(wants)-missing, missing)
	failed := map[result.Cell]bool{}
	for round := 1; round <= m.runs; round++ {
		for _, w := range wants {
			if failed[w.cell] || s.have(w) >= round {
				continue
			}
			open := slices.DeleteFunc(slices.Clone(wants), func(w want) bool { return failed[w.cell] })
			say("matrix: %s", remaining(s.left(open, m.runs)))
			e := lab.Experiment{
				Scenario: w.scenario, Kernel: w.asked, Topology: w.cell.Topology, Agents: []string{w.cell.Agent}, Runs: 1,
				Law: m.law, LRU: w.cell.LRU, Short: m.short, Counted: m.counted,
			}
			res, err := run(ctx, e)
			if ctx.Err() != nil {
				say("matrix: what was run is kept; the same command continues")
				return s, broken, ctx.Err()
			}
			if err != nil {
				say("memlab: %v", err)
				failed[w.cell] = true
				broken = append(broken, err)
				continue
			}
			k := result.Kept{At: time.Now().UTC(), LRUAsked: w.cell.LRU, Build: w.cell.Build, Result: res}
			if err := keep(k); err != nil {
				return s, broken, err
			}
			s = append(s, k)
		}
	}
	return s, broken, nil
}

// remaining says what is still to be done.
func remaining(n int, takes time.Duration, unknown int) string {
	text := fmt.Sprintf("%d runs left", n)
	switch {
	case unknown == n:
		return text + ", and nothing to estimate their time by yet"
	case unknown > 0:
		return text + fmt.Sprintf(", about %s and %d of unknown length", takes.Round(time.Second), unknown)
	}
	return text + fmt.Sprintf(", about %s by earlier ones", takes.Round(time.Second))
}

// asksFor says whether a group is one of those that the flags name; flags that were not given name all.
func (m matrix) asksFor(c *cobra.Command, g group) bool {
	given := c.Flags().Changed
	lrus := strings.Split(m.lru, ",")
	switch {
	case len(m.scenarios) > 0 && !slices.Contains(m.scenarios, g.Scenario),
		given("kernel") && !slices.Contains(m.kernels, g.KernelAsked),
		given("lru") && !slices.Contains(lrus, "default") && !slices.Contains(lrus, g.LRU),
		given("law") && g.Law != "" && m.law != g.Law,
		given("topology") && m.topology != g.Topology,
		(given("short") || !m.show) && m.short != g.Short:
		return false
	}
	return true
}

// writeMarkdown writes the table where --markdown says.
func (m matrix) writeMarkdown(out io.Writer, lines [][]string) error {
	var err error
	switch m.markdown {
	case "":
	case "-":
		_, err = io.WriteString(out, markdown(lines))
	default:
		err = os.WriteFile(m.markdown, []byte(markdown(lines)), 0o644)
	}
	if err != nil {
		return errors.Join(errors.New("writing the table"), err)
	}
	return nil
}
