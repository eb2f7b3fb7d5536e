package sim

import (
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// Kernel says how one generation of the kernel behaves and which keys it
// prints. Copy one of the Kernel variables and change a field to get a kernel
// that never was.
type Kernel struct {
	Name string

	// NewAnonActive: anonymous pages start their life on the active list, and
	// one reference puts them back there (before 5.9).
	NewAnonActive bool
	// DetectAnon: refault distance is computed for anonymous pages too, and
	// compared with all that could have made room (5.9). Without it only file
	// pages have a distance, compared with the active file list.
	DetectAnon bool
	// CostIO is what one page read or written weighs in the anon/file balance
	// against one page rotated; 1 before 6.5.
	CostIO uint64
	// CostRotation: pages scanned in vain count as a cost of their side.
	CostRotation bool
	// PartialWalk: reclaim of a subtree ends its walk when the goal is met and
	// goes on from there the next time (6.12).
	PartialWalk bool
	// Batched: memory.reclaim works in quarters of what remains (6.9) instead
	// of all at once.
	Batched bool

	// Reclaim: there is a memory.reclaim (5.19).
	Reclaim bool
	// Swappiness: memory.reclaim takes a swappiness of 0 to 200 (6.9).
	Swappiness bool
	// SwappinessMax: it takes "max", anon only (6.16).
	SwappinessMax bool

	// Proactive: reclaim on request is counted apart, as *_proactive, where
	// older kernels count it as *_direct (6.15).
	Proactive bool
	// HighNonblock: memory.high that is opened with O_NONBLOCK is set without
	// reclaiming down to it (6.16).
	HighNonblock bool
	// MemsEmptied: cpuset.mems may be emptied while processes are there (7.2).
	MemsEmptied bool
	// NodeScan: memory.numa_stat has the scan and steal counters (7.1).
	NodeScan bool

	keys [memcg.NumStats]bool
}

// Prints reports whether this kernel's memory.stat has the key.
func (k *Kernel) Prints(key memcg.Stat) bool { return key < memcg.NumStats && k.keys[key] }

// Without returns the kernel with some keys left out of memory.stat, as a
// build without their feature would.
func (k Kernel) Without(keys ...memcg.Stat) Kernel {
	for _, key := range keys {
		k.keys[key] = false
	}
	return k
}

// String returns the kernel's name.
func (k Kernel) String() string { return k.Name }

// The kernels that are known. Key sets were read in the sources of 6.1.192,
// 6.12.117 and 7.3.4 with the configuration of Debian.
var (
	// Kernel56 is the base that the anonymous working-set patches of 2020 were
	// measured against.
	Kernel56 = Kernel{Name: "5.6", NewAnonActive: true, CostIO: 1, CostRotation: true, keys: keySet(oldKeys)}

	Kernel61 = Kernel{Name: "6.1", DetectAnon: true, CostIO: 1, Reclaim: true, keys: keySet(baseKeys, keys61)}

	Kernel612 = Kernel{
		Name: "6.12", DetectAnon: true, CostIO: 32, CostRotation: true, PartialWalk: true, Batched: true,
		Reclaim: true, Swappiness: true, keys: keySet(baseKeys, keys61, keys612),
	}

	Kernel73 = Kernel{
		Name: "7.3", DetectAnon: true, CostIO: 32, CostRotation: true, PartialWalk: true, Batched: true,
		Reclaim: true, Swappiness: true, SwappinessMax: true, Proactive: true, NodeScan: true,
		HighNonblock: true, MemsEmptied: true,
		keys: keySet(baseKeys, keys61, keys612, keys73),
	}
)

// baseKeys are in every kernel's memory.stat.
var baseKeys = []memcg.Stat{
	memcg.StatAnon, memcg.StatFile, memcg.StatKernelStack, memcg.StatPercpu, memcg.StatSock, memcg.StatShmem,
	memcg.StatFileMapped, memcg.StatFileDirty, memcg.StatFileWriteback, memcg.StatAnonTHP,
	memcg.StatInactiveAnon, memcg.StatActiveAnon, memcg.StatInactiveFile, memcg.StatActiveFile, memcg.StatUnevictable,
	memcg.StatSlabReclaimable, memcg.StatSlabUnreclaimable, memcg.StatSlab, memcg.StatNodereclaim,
	memcg.StatScan, memcg.StatSteal, memcg.StatFault, memcg.StatMajfault, memcg.StatRefill,
	memcg.StatPgactivate, memcg.StatPgdeactivate,
}

var oldKeys = append([]memcg.Stat{memcg.StatRefault, memcg.StatActivate}, baseKeys...)

var keys61 = []memcg.Stat{
	memcg.StatKernel, memcg.StatPagetables, memcg.StatSecPagetables, memcg.StatVmalloc,
	memcg.StatZswap, memcg.StatZswapped, memcg.StatZswpin, memcg.StatZswpout, memcg.StatSwapcached,
	memcg.StatRefaultAnon, memcg.StatRefaultFile, memcg.StatActivateAnon, memcg.StatActivateFile,
	memcg.StatRestoreAnon, memcg.StatRestoreFile,
	memcg.StatScanKswapd, memcg.StatScanDirect, memcg.StatStealKswapd, memcg.StatStealDirect,
}

var keys612 = []memcg.Stat{
	memcg.StatDemoteKswapd, memcg.StatDemoteDirect, memcg.StatDemoteKhugepaged, memcg.StatPromoteSuccess,
	memcg.StatScanKhugepaged, memcg.StatStealKhugepaged, memcg.StatZeroSwapin, memcg.StatZeroSwapout, memcg.StatZswpwb,
}

var keys73 = []memcg.Stat{
	memcg.StatPswpin, memcg.StatPswpout,
	memcg.StatScanProactive, memcg.StatStealProactive, memcg.StatDemoteProactive,
}

func keySet(groups ...[]memcg.Stat) (set [memcg.NumStats]bool) {
	for _, g := range groups {
		for _, key := range g {
			if set[key] {
				panic(fmt.Sprintf("sim: key %v is listed twice", key))
			}
			set[key] = true
		}
	}
	return set
}
