package memcg

import "time"

// Generation is one generation of pages on one list of the multi-gen LRU: the
// list of one cgroup on one node, its own pages and not those of cgroups below
// it. Source: the lru_gen file of debugfs
// (Documentation/admin-guide/mm/multigen_lru.rst).
type Generation struct {
	Node NodeID
	// Seq is the kernel's number of the generation; it never falls on a list.
	// The next younger one is Seq+1.
	Seq uint64
	// Age is the time since the generation was made, in whole milliseconds:
	// what is in it was not found in use for about so long.
	Age time.Duration
	// AnonPages and FilePages are base pages, huge ones counted in full.
	AnonPages, FilePages uint64
	// Evictable is false for the two youngest generations of a list, from
	// which the kernel never evicts.
	Evictable bool
}
