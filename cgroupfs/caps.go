package cgroupfs

import (
	"context"

	"github.com/memagent/memagent/memcg"
)

// CapState is the answer to one probe. Only Yes and No are conclusive and may
// be kept: Unknown and NotAsked must be asked again.
type CapState uint8

const (
	// CapUnknown: the probe could not tell, CapResult.Err says why.
	CapUnknown CapState = iota
	// CapYes: seen to be there.
	CapYes
	// CapNo: seen not to be there.
	CapNo
	// CapNotAsked: the answer would need a write that may not be made: there
	// is no matched cgroup to write to, or nothing may be written at all.
	CapNotAsked
)

var capStateNames = [...]string{"unknown", "yes", "no", "not asked"}

// String returns the state in lower-case words.
func (s CapState) String() string {
	if int(s) < len(capStateNames) {
		return capStateNames[s]
	}
	return capStateNames[CapUnknown]
}

// Conclusive reports whether the answer may be kept. The others must be asked
// again.
func (s CapState) Conclusive() bool { return s == CapYes || s == CapNo }

// Names of the capabilities, for those who ask whether a policy can be carried
// out on this kernel.
const (
	CapMemory               = "memory-controller"
	CapReclaim              = "reclaim"
	CapReclaimSwappiness    = "reclaim-swappiness"
	CapReclaimSwappinessMax = "reclaim-swappiness-max"
	CapNumaStat             = "numa-stat"
	CapNodeScan             = "node-scan"
	CapRefaultSplit         = "refault-split"
	CapProactiveSplit       = "proactive-split"
	CapHostPressure         = "pressure-host"
	CapPressure             = "pressure-cgroup"
	CapSwap                 = "swap"
	CapSwapLimits           = "swap-limits"
	CapZswap                = "zswap"
	CapLRUGen               = "lru-gen"
	CapLRUGenInode          = "lru-gen-inode"
	CapDAMON                = "damon-paddr"
	CapReclaimNodes         = "reclaim-nodes"
	CapHighNonblock         = "high-nonblock"
	CapCpuset               = "cpuset"
	CapNUMA                 = "numa-nodes"
	CapDemotion             = "demotion"
	CapNodeReclaim          = "node-reclaim"
)

// Capability is something that not every kernel, configuration or host offers.
type Capability struct {
	Name string // one of the Cap constants, for policies and machines
	// Since is the first mainline kernel that has it, "" where it depends on
	// configuration alone. For messages only: distributions backport and
	// disable, so no decision is taken on it.
	Since  string
	Costs  string // what the operator loses where it is missing, one sentence
	Remedy string // what the operator can do about it, one sentence
}

// CapResult is what was found of one Capability.
type CapResult struct {
	Capability
	State CapState
	// Detail is what was seen: the file, as the operator finds it, and what it
	// held.
	Detail string
	// Err is why State is CapUnknown, nil for every other state.
	Err error
}

// finding is what one probe found; Err set makes it Unknown.
type finding struct {
	state  CapState
	detail string
	err    error
}

func yes(detail string) finding      { return finding{state: CapYes, detail: detail} }
func no(detail string) finding       { return finding{state: CapNo, detail: detail} }
func notAsked(detail string) finding { return finding{state: CapNotAsked, detail: detail} }
func unknown(detail string, err error) finding {
	return finding{state: CapUnknown, detail: detail, err: err}
}

// capabilities lists every probe in the order in which they are reported.
var capabilities = []struct {
	Capability
	probe func(*prober) finding
}{
	{Capability{CapMemory, "4.5",
		"Nothing works without it.",
		"Boot with the unified hierarchy (systemd.unified_cgroup_hierarchy=1) and enable memory in cgroup.subtree_control."}, probeMemory},
	{Capability{CapReclaim, "5.19",
		"memagent can only observe: without memory.reclaim it does not reclaim by other means.",
		"Run a kernel from 5.19 on."}, probeReclaim},
	{Capability{CapReclaimSwappiness, "6.11",
		"A swappiness per cgroup is passed through lru_gen where that is usable; else policies that set one are skipped, not degraded.",
		"Run a kernel that takes swappiness= in memory.reclaim, from 6.11 on."}, probeSwappiness},
	{Capability{CapReclaimSwappinessMax, "6.16",
		"Reclaim of anon alone is not strict: at swappiness 200 the kernel may still take file pages.",
		"Run a kernel from 6.16 on where strictness matters."}, probeSwappinessMax},
	{Capability{CapNumaStat, "5.10",
		"Per-node features are off for want of memory.numa_stat.",
		"Run a kernel built with CONFIG_NUMA."}, probeNumaStat},
	{Capability{CapNodeScan, "7.1",
		"Scan and steal ratios are taken for the whole cgroup instead of for each node.",
		"None needed; a kernel from 7.1 on makes the node lottery sharper."}, probeNodeScan},
	{Capability{CapRefaultSplit, "5.9",
		"Anon and file refaults cannot be told apart, so no verdict on either is given.",
		"Run a kernel from 5.9 on."}, probeRefaultSplit},
	{Capability{CapProactiveSplit, "6.15",
		"Reclaim by memagent shows up in pgscan_direct and pgsteal_direct and is subtracted by measurement.",
		"None needed; a kernel from 6.15 on counts it apart."}, probeProactiveSplit},
	{Capability{CapHostPressure, "4.20",
		"Pressure of the whole host is unknown and cannot stop reclaim or lending.",
		"Boot with psi=1 on a kernel built with CONFIG_PSI."}, probeHostPressure},
	{Capability{CapPressure, "4.20",
		"Pressure of a cgroup is unknown, so reclaim guided by pressure is off.",
		"Boot with psi=1, and leave cgroup.pressure at 1."}, probePressure},
	{Capability{CapSwap, "",
		"Anonymous memory cannot be moved out: only file pages are reclaimed.",
		"Add swap, zram for example."}, probeSwap},
	{Capability{CapSwapLimits, "4.5",
		"Swap of a cgroup is neither known nor bounded: decisions take its swap room to be 0.",
		"Boot with swapaccount=1 on a kernel built with CONFIG_SWAP."}, probeSwapLimits},
	{Capability{CapZswap, "3.11",
		"Swapped pages go to the device uncompressed; nothing else is lost.",
		"Boot with zswap.enabled=1 where swap is on a slow device."}, probeZswap},
	{Capability{CapLRUGen, "6.1",
		"Cold memory is not known by age and one node alone cannot be evicted exactly.",
		"Mount debugfs, write y to /sys/kernel/mm/lru_gen/enabled, and boot without lockdown (Secure Boot turns it on)."}, probeLRUGen},
	{Capability{CapLRUGenInode, "7.0",
		"The ids of lru_gen are private: its listing is read anew before each use.",
		"None needed."}, probeLRUGenInode},
	{Capability{CapDAMON, "5.16",
		"The second way to evict from one node alone is not there.",
		"Run a kernel built with CONFIG_DAMON_PADDR and CONFIG_DAMON_SYSFS."}, probeDAMON},
	{Capability{CapReclaimNodes, "6.1",
		"Reclaim takes from every node in proportion, so a node that is short is relieved at the expense of all others.",
		"See lru-gen for the exact way; where it is not to be had, allow DAMON (host.damon), and write N to /sys/module/damon_stat/parameters/enabled."},
		probeReclaimNodes},
	{Capability{CapHighNonblock, "6.16",
		"Lowering memory.high may block its writer while the kernel reclaims.",
		"None needed: limits are lowered in small steps from a worker of their own."}, probeHighNonblock},
	{Capability{CapCpuset, "5.0",
		"The nodes of a cgroup cannot be steered.",
		"Let the owner of the parent cgroup enable cpuset in cgroup.subtree_control; memagent does not."}, probeCpuset},
	{Capability{CapNUMA, "",
		"Everything about nodes is off.",
		"None: the machine, or its kernel, has one node."}, probeNUMA},
	{Capability{CapDemotion, "5.15",
		"Cold pages are not moved to slower memory before they are evicted; nothing is lost on a host without tiers.",
		"Write 1 to /sys/kernel/mm/numa/demotion_enabled where there is slower memory."}, probeDemotion},
	{Capability{CapNodeReclaim, "6.17",
		"The kernel cannot be asked to reclaim from one node regardless of cgroup.",
		"None needed: memagent evicts by cgroup and node."}, probeNodeReclaim},
}

// Capabilities probes what this host offers, in a fixed order: what a kernel
// can do is tried out, not guessed from its version. Cgroup features are
// looked for on a cgroup that is not the root, which lacks files that all
// others have (case c21).
//
// Some answers need a write that does no work ("0 swappiness=60"). It is made
// only into probeIn, which must be a cgroup that a policy matches, and never
// when the FS is read-only; otherwise those results are CapNotAsked and their
// Detail says what to expect of the kernel's release. A done ctx makes the
// rest CapUnknown.
func (fs *FS) Capabilities(ctx context.Context, probeIn *memcg.ID) []CapResult {
	p := newProber(fs, probeIn)
	results := make([]CapResult, 0, len(capabilities))
	for _, c := range capabilities {
		f := unknown("", ctx.Err())
		if f.err == nil {
			f = c.probe(p)
		}
		results = append(results, CapResult{Capability: c.Capability, State: f.state, Detail: f.detail, Err: f.err})
	}
	return results
}
