// Package demo shows memagent at work: two containers in a guest, one that has gone idle and one
// that is busy, and a table of what happens to them.
package demo

import (
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/disk"
)

const mib = 1 << 20

const (
	idleAnon  = 256 * mib // bytes, filled once
	idleFile  = 128 * mib // bytes, read once
	busyAnon  = 96 * mib  // bytes, re-read all the time
	busyEvery = 200 * time.Millisecond

	lead  = 10 * time.Second // without the agent, for the times before
	work  = 90 * time.Second // with it
	setUp = time.Minute      // at most, to allocate everything

	// idleMustFall is the part of the idle container's memory that must be gone in the end,
	// busyMustStay that of the busy one's that must still be there.
	idleMustFall = 0.5
	busyMustStay = 0.9
)

// JobName is the guest's job that runs the demonstration.
const JobName = "demo"

// Within is how long the guest may take.
const Within = lead + work + 2*setUp

// Files are on the guest's data disk.
var Files = []disk.File{{Name: "idle", Size: idleFile}}

// The containers.
const (
	idle = "/demo/idle"
	busy = "/demo/busy"
)

// config gives both containers the same policy: telling them apart is the agent's work.
var config = fmt.Sprintf(`mode: enforce
interval: 1s
host:
  swap:
    write_budget: 16MiB/s
policies:
  - name: demo
    match:
      - path: %s
      - path: %s
    law: tmo
    squeeze:
      max_step: 2%%
      pressure_target: 0.1%%
      floor: 16MiB
`, idle, busy)

// Sample is one look at the containers.
type Sample struct {
	// Phase says what is going on.
	Phase string `json:"phase"`
	// ElapsedMS is the time since the containers were set up, in guest milliseconds.
	ElapsedMS int64   `json:"elapsed_ms"`
	Groups    []Group `json:"groups,omitempty"`
	// End is set in the last sample.
	End *End `json:"end,omitempty"`
}

// Group is one container.
type Group struct {
	Cgroup string `json:"cgroup"`
	// Resident is the memory it takes, Anon and File what that is made of, Swap what is on the
	// swap device; bytes.
	Resident uint64 `json:"resident"`
	Anon     uint64 `json:"anon"`
	File     uint64 `json:"file"`
	Swap     uint64 `json:"swap"`
	// Refaults is pages a second, Stalled the share of time in percent (PSI some).
	Refaults float64 `json:"refaults"`
	Stalled  float64 `json:"stalled"`
	// Decision is the agent's last sentence about it, Reclaimed what it has taken so far, in bytes.
	Decision  string `json:"decision,omitempty"`
	Reclaimed uint64 `json:"reclaimed"`
}

// End is what came of it.
type End struct {
	// Before and After are resident bytes by container.
	Before map[string]uint64 `json:"before"`
	After  map[string]uint64 `json:"after"`
	// PassBefore and PassAfter are the medians of the busy container's pass times, in milliseconds.
	PassBefore float64 `json:"pass_before"`
	PassAfter  float64 `json:"pass_after"`
	// AgentCPUMS is the CPU time the agent took, in milliseconds, over AgentMS; AgentKernelMS the
	// part of it in the kernel.
	AgentCPUMS    int64 `json:"agent_cpu_ms"`
	AgentKernelMS int64 `json:"agent_kernel_ms"`
	AgentMS       int64 `json:"agent_ms"`
}

// Failures says what did not come out as it must, one sentence each.
func (e End) Failures() []string {
	var out []string
	if fell := 1 - float64(e.After[idle])/float64(e.Before[idle]); !(fell >= idleMustFall) {
		out = append(out, fmt.Sprintf("%s fell by %.0f %%, at least %.0f %% was expected", idle, 100*fell, 100*idleMustFall))
	}
	if kept := float64(e.After[busy]) / float64(e.Before[busy]); !(kept >= busyMustStay) {
		out = append(out, fmt.Sprintf("%s kept %.0f %% of its memory, at least %.0f %% was expected", busy, 100*kept, 100*busyMustStay))
	}
	return out
}
