package memcg

// Stat names one key of memory.stat. The kernel's own spelling is what String
// returns. Kernels print different sets of keys in different orders, so a
// reader looks keys up by name and leaves out what it does not know.
type Stat uint8

// Keys of memory.stat that memagent uses. Sizes are bytes; workingset_*, pg*,
// *swpin*, *swpout* and everything from StatRefault on are counts of pages or
// events since the cgroup was created. Presence by kernel: kernel-facts in
// docs/architecture.md; the comment says when a key is newer than 5.9.
const (
	StatAnon Stat = iota
	StatFile
	StatKernel // 5.18
	StatKernelStack
	StatPagetables
	StatSecPagetables
	StatPercpu
	StatSock
	StatVmalloc
	StatShmem
	StatZswap
	StatZswapped
	StatFileMapped
	StatFileDirty
	StatFileWriteback
	StatSwapcached
	StatAnonTHP
	StatInactiveAnon
	StatActiveAnon
	StatInactiveFile
	StatActiveFile
	StatUnevictable
	StatSlabReclaimable
	StatSlabUnreclaimable
	StatSlab
	StatHugetlb // only where hugetlb is accounted to memory

	// StatRefault and StatActivate are the counters without the anon/file
	// split that kernels before 5.9 print instead of it.
	StatRefault
	StatActivate
	StatRefaultAnon
	StatRefaultFile
	StatActivateAnon
	StatActivateFile
	StatRestoreAnon
	StatRestoreFile
	StatNodereclaim
	StatDemoteKswapd
	StatDemoteDirect
	StatDemoteKhugepaged
	StatDemoteProactive
	StatPromoteSuccess
	StatScan
	StatSteal
	StatPswpin  // 6.13
	StatPswpout // 6.13
	StatScanKswapd
	StatScanDirect
	StatScanKhugepaged
	StatScanProactive // 6.15
	StatStealKswapd
	StatStealDirect
	StatStealKhugepaged
	StatStealProactive // 6.15
	StatFault
	StatMajfault
	StatRefill
	StatPgactivate
	StatPgdeactivate
	StatZeroSwapin  // swpin_zero, 6.12
	StatZeroSwapout // swpout_zero, 6.12
	StatZswpin
	StatZswpout
	StatZswpwb

	// NumStats is the number of keys, not a key.
	NumStats
)

var statNames = [NumStats]string{
	StatAnon: "anon", StatFile: "file", StatKernel: "kernel", StatKernelStack: "kernel_stack",
	StatPagetables: "pagetables", StatSecPagetables: "sec_pagetables", StatPercpu: "percpu", StatSock: "sock",
	StatVmalloc: "vmalloc", StatShmem: "shmem", StatZswap: "zswap", StatZswapped: "zswapped",
	StatFileMapped: "file_mapped", StatFileDirty: "file_dirty", StatFileWriteback: "file_writeback",
	StatSwapcached: "swapcached", StatAnonTHP: "anon_thp", StatInactiveAnon: "inactive_anon",
	StatActiveAnon: "active_anon", StatInactiveFile: "inactive_file", StatActiveFile: "active_file",
	StatUnevictable: "unevictable", StatSlabReclaimable: "slab_reclaimable",
	StatSlabUnreclaimable: "slab_unreclaimable", StatSlab: "slab", StatHugetlb: "hugetlb",
	StatRefault: "workingset_refault", StatActivate: "workingset_activate",
	StatRefaultAnon: "workingset_refault_anon", StatRefaultFile: "workingset_refault_file",
	StatActivateAnon: "workingset_activate_anon", StatActivateFile: "workingset_activate_file",
	StatRestoreAnon: "workingset_restore_anon", StatRestoreFile: "workingset_restore_file",
	StatNodereclaim: "workingset_nodereclaim", StatDemoteKswapd: "pgdemote_kswapd",
	StatDemoteDirect: "pgdemote_direct", StatDemoteKhugepaged: "pgdemote_khugepaged",
	StatDemoteProactive: "pgdemote_proactive", StatPromoteSuccess: "pgpromote_success", StatScan: "pgscan",
	StatSteal: "pgsteal", StatPswpin: "pswpin", StatPswpout: "pswpout", StatScanKswapd: "pgscan_kswapd",
	StatScanDirect: "pgscan_direct", StatScanKhugepaged: "pgscan_khugepaged",
	StatScanProactive: "pgscan_proactive", StatStealKswapd: "pgsteal_kswapd",
	StatStealDirect: "pgsteal_direct", StatStealKhugepaged: "pgsteal_khugepaged",
	StatStealProactive: "pgsteal_proactive", StatFault: "pgfault", StatMajfault: "pgmajfault",
	StatRefill: "pgrefill", StatPgactivate: "pgactivate", StatPgdeactivate: "pgdeactivate",
	StatZeroSwapin: "swpin_zero", StatZeroSwapout: "swpout_zero", StatZswpin: "zswpin",
	StatZswpout: "zswpout", StatZswpwb: "zswpwb",
}

var statByName = func() map[string]Stat {
	m := make(map[string]Stat, NumStats)
	for s, name := range statNames {
		m[name] = Stat(s)
	}
	return m
}()

// String returns the kernel's name of the key.
func (s Stat) String() string {
	if s < NumStats {
		return statNames[s]
	}
	return "stat(?)"
}

// StatNamed looks a key up by the kernel's name. It does not allocate.
func StatNamed(name []byte) (Stat, bool) {
	s, ok := statByName[string(name)]
	return s, ok
}

// Stats is one reading of memory.stat, or of one node's column of
// memory.numa_stat before it is packed into NodeStats. The zero Stats has
// every key Missing.
type Stats struct {
	v     [NumStats]uint64
	state [NumStats]State
}

// Get returns the field of one key.
func (s *Stats) Get(k Stat) Field { return Field{v: s.v[k], state: s.state[k]} }

// Set stores the field of one key.
func (s *Stats) Set(k Stat, f Field) { s.v[k], s.state[k] = f.v, f.state }

// SetAll gives every key the same absence: Unsupported before a file is read
// whole, so that what it does not print stays unsupported.
func (s *Stats) SetAll(why State) {
	for k := range s.state {
		s.v[k], s.state[k] = 0, why
	}
}

// Since returns the growth of one counter since an earlier reading.
func (s *Stats) Since(earlier *Stats, k Stat) (uint64, bool) { return s.Get(k).Since(earlier.Get(k)) }

// Valid reports whether no key is Invalid. A reading that is not valid must
// not enter a decision.
func (s *Stats) Valid() bool {
	for _, st := range s.state {
		if st == Invalid {
			return false
		}
	}
	return true
}
