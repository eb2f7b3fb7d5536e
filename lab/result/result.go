// Package result is what a lab run leaves behind: counters as evidence, the checks made on them,
// and the JSON both are kept in.
package result

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Result is everything known about one scenario on one kernel.
type Result struct {
	Scenario string `json:"scenario"`
	// Kernel is uname -r in the guest, KernelAsked the short name it was resolved from.
	Kernel      string `json:"kernel"`
	KernelAsked string `json:"kernel_asked"`
	Topology    string `json:"topology"`
	// LRU is "classic" or "mglru".
	LRU   string `json:"lru"`
	Law   string `json:"law,omitempty"`
	Short bool   `json:"short"`
	// Accel is QEMU's accelerator, "kvm", "tcg" or "tcg-counted". Times compare only within one.
	Accel  string  `json:"accel"`
	Runs   []Run   `json:"runs"`
	Checks []Check `json:"checks"`
}

// Run is one guest's life.
type Run struct {
	// Agent is "off" or "on".
	Agent    string   `json:"agent"`
	Counters Counters `json:"counters"`
	// Nodes is keyed by node id.
	Nodes map[string]Node `json:"nodes"`
	// PassMS are the times of the workload's passes in milliseconds.
	PassMS []float64 `json:"pass_ms"`
	// YardstickMS are the times of the same small work after each of these passes, in milliseconds:
	// how fast the machine was. Empty where the scenario does not measure it.
	YardstickMS []float64 `json:"yardstick_ms,omitempty"`
	// PassAtMS is when those passes began, in milliseconds since the measured part began.
	PassAtMS []float64 `json:"pass_at_ms,omitempty"`
	// ElapsedMS is the measured part of the run, in guest milliseconds.
	ElapsedMS  int64       `json:"elapsed_ms"`
	AgentStats *AgentStats `json:"agent_stats,omitempty"`
	// Facts are measurements of the scenario's own; the unit ends the name.
	Facts map[string]float64 `json:"facts,omitempty"`
	// Series are samples over time.
	Series []Point `json:"series,omitempty"`
	// Artifacts are texts worth keeping, by name.
	Artifacts map[string]string `json:"artifacts,omitempty"`
	// Differences are kernel values that changed though they must not.
	Differences []string `json:"differences,omitempty"`

	// BootRetries is 1 when the guest died before its init came up and was started again.
	BootRetries int `json:"boot_retries"`
	// BootMS is the time from QEMU's start to the guest's hello, HostMS to its end, in host milliseconds.
	BootMS int64 `json:"boot_ms"`
	HostMS int64 `json:"host_ms"`
	// HostRanMS and HostWaitedMS are the time QEMU's threads were on a host CPU, and ready but
	// waiting for one. Times measured in a guest that waited much say little.
	HostRanMS    int64 `json:"host_ran_ms"`
	HostWaitedMS int64 `json:"host_waited_ms"`
}

// Starved is the share of the time its CPUs wanted to run that a guest had to wait for the host.
func (r Run) Starved() float64 {
	if r.HostRanMS+r.HostWaitedMS == 0 {
		return 0
	}
	return float64(r.HostWaitedMS) / float64(r.HostRanMS+r.HostWaitedMS)
}

// PassTimes returns how the pass times of runs are to be compared, and their unit: each in yardsticks,
// the time of the small work right after it, which takes out what a machine that is slow for
// everybody adds; or in milliseconds where not all of the runs measured that.
func PassTimes(runs []Run) (of func(Run) []float64, unit string) {
	for _, r := range runs {
		if len(r.YardstickMS) != len(r.PassMS) || slices.Contains(r.YardstickMS, 0) {
			return func(r Run) []float64 { return r.PassMS }, "ms"
		}
	}
	return func(r Run) []float64 {
		out := make([]float64, len(r.PassMS))
		for i, ms := range r.PassMS {
			out[i] = ms / r.YardstickMS[i]
		}
		return out
	}, "yardsticks"
}

// Counters are what happened to the scenario's main cgroup during the measured part.
type Counters struct {
	RefaultFile uint64 `json:"refault_file"` // pages
	RefaultAnon uint64 `json:"refault_anon"` // pages
	// SwapIn and SwapOut are pages, of the cgroup where its memory.stat has them (6.13), else of the host.
	SwapIn     uint64 `json:"swapin"`
	SwapOut    uint64 `json:"swapout"`
	PgMajFault uint64 `json:"pgmajfault"`  // faults
	PgScan     uint64 `json:"pgscan"`      // pages
	PgSteal    uint64 `json:"pgsteal"`     // pages
	PSISomeUS  uint64 `json:"psi_some_us"` // microseconds
	PSIFullUS  uint64 `json:"psi_full_us"` // microseconds
}

// Node is the memory of the main cgroup on one node, in bytes.
type Node struct {
	AnonBefore uint64 `json:"anon_before"`
	AnonAfter  uint64 `json:"anon_after"`
	FileBefore uint64 `json:"file_before"`
	FileAfter  uint64 `json:"file_after"`
}

// AgentStats is what the agent says of itself when it ends, and what was seen from outside.
type AgentStats struct {
	CPUMS          int64 `json:"cpu_ms"`  // milliseconds, its own figure
	RSSKiB         int64 `json:"rss_kib"` // KiB, its own figure
	Decisions      int64 `json:"decisions"`
	Actions        int64 `json:"actions"`
	ReclaimedBytes int64 `json:"reclaimed_bytes"`
	Writes         int64 `json:"writes"`
	MeasuredCPUMS  int64 `json:"measured_cpu_ms"` // milliseconds, by wait4(2)
	// MeasuredKernelMS is the part of MeasuredCPUMS that was spent in the kernel: reclaim that
	// the agent asked for and reading counters. Absent in results from before it was measured.
	MeasuredKernelMS int64  `json:"measured_kernel_ms,omitempty"`
	MeasuredRSSKiB   int64  `json:"measured_rss_kib"`
	ExitCode         int    `json:"exit_code"`
	StopMS           int64  `json:"stop_ms"` // milliseconds from SIGTERM to its end
	LastText         string `json:"last_text,omitempty"`
}

// Point is one sample of the main cgroup.
type Point struct {
	AtMS    int64  `json:"at_ms"`   // milliseconds since the measured part began
	Current uint64 `json:"current"` // bytes, as are Anon, File and Swap
	Anon    uint64 `json:"anon"`
	File    uint64 `json:"file"`
	Swap    uint64 `json:"swap"`
	// Refaults and PSISomeUS count from the beginning of the measured part.
	// RefaultFile is the file part of Refaults.
	Refaults    uint64 `json:"refaults"`
	RefaultFile uint64 `json:"refault_file"`
	PSISomeUS   uint64 `json:"psi_some_us"`
}

// Resident is what the cgroup's own memory takes, in bytes.
func (p Point) Resident() uint64 { return p.Anon + p.File }

// Check is one sentence that was held against the runs.
type Check struct {
	Name string  `json:"name"`
	OK   bool    `json:"ok"`
	Got  float64 `json:"got"`
	Want string  `json:"want"`
	// Skipped says why the check could not be made. It then neither passes nor fails.
	Skipped string `json:"skipped,omitempty"`
}

// AtMost is a check that got is no more than limit.
func AtMost(name string, got, limit float64, of string) Check {
	return made(Check{Name: name, OK: got <= limit, Got: got, Want: fmt.Sprintf("<= %g%s", limit, of)})
}

// AtLeast is a check that got is no less than limit.
func AtLeast(name string, got, limit float64, of string) Check {
	return made(Check{Name: name, OK: got >= limit, Got: got, Want: fmt.Sprintf(">= %g%s", limit, of)})
}

// made fails a check on a ratio with nothing below the line, which JSON has no number for.
func made(c Check) Check {
	if math.IsNaN(c.Got) || math.IsInf(c.Got, 0) {
		c.OK, c.Got = false, 0
		c.Want += " (there was nothing to measure it against)"
	}
	return c
}

// Skip is a check that could not be made.
func Skip(name, why string) Check { return Check{Name: name, Skipped: why} }

// Failed counts the checks that were made and do not hold.
func Failed(checks []Check) int {
	n := 0
	for _, c := range checks {
		if !c.OK && c.Skipped == "" {
			n++
		}
	}
	return n
}

// Skipped is the number of checks that could not be made.
func Skipped(checks []Check) int {
	n := 0
	for _, c := range checks {
		if c.Skipped != "" {
			n++
		}
	}
	return n
}

// Encode writes results as JSON: one object for one result, an array for more.
func Encode(w io.Writer, results []Result) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if len(results) == 1 {
		return enc.Encode(results[0])
	}
	return enc.Encode(results)
}
