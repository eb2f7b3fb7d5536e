package main

import (
	"sort"
	"time"

	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
)

// want is one place of the matrix: a cell to be filled. The LRU is the one asked for, and empty for
// the kernel's own.
type want struct {
	scenario scenario.Scenario
	// asked is the short name of the kernel, which the cell has by its release.
	asked string
	cell  result.Cell
}

// sheet is all runs that are kept.
type sheet []result.Kept

// have is how many runs of a wanted cell are kept. A run is known by the LRU it had, whether it was
// asked for or the kernel's own.
func (s sheet) have(w want) int {
	c := w.cell
	if c.LRU == "" {
		c.LRU = s.ownLRU(c.Kernel)
	}
	n := 0
	for _, k := range s {
		if k.Cell() == c {
			n++
		}
	}
	return n
}

// ownLRU is the LRU that a kernel has by itself, as far as a kept run tells.
func (s sheet) ownLRU(release string) string {
	for _, k := range s {
		if k.Kernel == release && k.LRUAsked == "" {
			return k.LRU
		}
	}
	return ""
}

// takes is how long a run of the scenario took in the median with the agent in that state: on the same kernel,
// else on any. ok is false where none is kept.
func (s sheet) takes(w want) (d time.Duration, ok bool) {
	for _, alike := range []func(result.Cell) bool{
		func(c result.Cell) bool {
			return c.Scenario == w.cell.Scenario && c.Agent == w.cell.Agent && c.Kernel == w.cell.Kernel
		},
		func(c result.Cell) bool { return c.Scenario == w.cell.Scenario && c.Agent == w.cell.Agent },
	} {
		var ms []float64
		for _, k := range s {
			if c := k.Cell(); c.Short == w.cell.Short && alike(c) {
				ms = append(ms, float64(k.Runs[0].HostMS))
			}
		}
		if len(ms) > 0 {
			return time.Duration(result.Median(ms)) * time.Millisecond, true
		}
	}
	return 0, false
}

// left is how many runs are still missing for so many of each wanted cell, and how long they will
// take; unknown of them nobody knows.
func (s sheet) left(wants []want, runs int) (n int, takes time.Duration, unknown int) {
	for _, w := range wants {
		missing := max(0, runs-s.have(w))
		n += missing
		d, ok := s.takes(w)
		if !ok {
			unknown += missing
		}
		takes += time.Duration(missing) * d
	}
	return n, takes, unknown
}

// group is what one set of checks is made on: runs with one build of the agent, and those without.
type group struct {
	result.Result
	build string
}

// groups sorts kept runs into groups. Runs without the agent are in each group they can be compared
// in; where there is none with it, they are a group of their own.
func (s sheet) groups() []group {
	byCell := map[result.Cell][]result.Kept{}
	for _, k := range s {
		byCell[k.Cell()] = append(byCell[k.Cell()], k)
	}
	var out []group
	compared := map[result.Cell]bool{}
	for c, on := range byCell {
		if c.Agent != protocol.AgentOn {
			continue
		}
		off := c
		off.Agent, off.Law, off.Build = protocol.AgentOff, "", ""
		compared[off] = true
		out = append(out, collect(append(append([]result.Kept(nil), byCell[off]...), on...), c))
	}
	for c, off := range byCell {
		if c.Agent != protocol.AgentOn && !compared[c] {
			out = append(out, collect(off, c))
		}
	}
	sort.Slice(out, func(i, j int) bool { return before(out[i], out[j]) })
	return out
}

func collect(kept []result.Kept, c result.Cell) group {
	g := group{result.Result{
		Scenario: c.Scenario, Kernel: c.Kernel, Topology: c.Topology, LRU: c.LRU, Accel: c.Accel, Law: c.Law, Short: c.Short,
		KernelAsked: kept[0].KernelAsked,
	}, c.Build}
	for _, k := range kept {
		g.Runs = append(g.Runs, k.Runs[0])
	}
	if s, err := scenario.Find(c.Scenario); err == nil { // else it is one of another version of the lab
		g.Checks = s.Checks(g.Runs)
	}
	return g
}

// key orders groups and tells rows without the agent apart, which several groups may share.
func (g group) key() result.Cell {
	return result.Cell{Scenario: g.Scenario, Kernel: g.Kernel, Topology: g.Topology, LRU: g.LRU, Accel: g.Accel, Short: g.Short}
}

func before(a, b group) bool {
	for _, p := range [][2]string{
		{a.Scenario, b.Scenario}, {a.Kernel, b.Kernel}, {a.LRU, b.LRU}, {a.Topology, b.Topology}, {a.Accel, b.Accel}, {form(a), form(b)}, {a.Law, b.Law}, {a.build, b.build},
	} {
		if p[0] != p[1] {
			return p[0] < p[1]
		}
	}
	return false
}

// form names the form of a scenario that a group was run in.
func form(g group) string {
	if g.Short {
		return "short"
	}
	return "long"
}

// matrixColumns are the columns of the matrix before its measures.
var matrixColumns = []string{"scenario", "kernel", "LRU", "form", "agent", "build"}

// matrixRows are the rows of groups; runs without the agent that several share stand there once.
func matrixRows(groups []group) []row {
	var rows []row
	shown := map[result.Cell]bool{}
	for _, g := range groups {
		names := func(agent, build string) []string {
			return []string{g.Scenario, g.Kernel, g.LRU, form(g), agent, build}
		}
		if off := result.Of(g.Runs, protocol.AgentOff); len(off) > 0 && !shown[g.key()] {
			shown[g.key()] = true
			rows = append(rows, row{names(protocol.AgentOff, "-"), off})
		}
		if on := result.Of(g.Runs, protocol.AgentOn); len(on) > 0 {
			rows = append(rows, row{names("on, "+g.Law, g.build), on})
		}
	}
	return rows
}
