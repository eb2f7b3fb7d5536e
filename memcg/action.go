package memcg

import (
	"strconv"
	"time"
)

// ID names one cgroup for as long as it lives: a path that comes back with
// another inode is another cgroup.
type ID struct {
	Path  string // below the cgroup2 mount, "/" for its root, bytes as the kernel has them
	Inode uint64 // of the directory
}

// String returns the path.
func (id ID) String() string { return id.Path }

// Swappiness is the balance that one reclaim request asks for. The zero value
// passes nothing: the kernel's own host-wide value applies.
type Swappiness struct {
	v   int16
	set bool
}

// SwappinessMax is what `swappiness=max` is here: anon only, on kernels from
// 6.16 on.
const SwappinessMax = 201

// SwappinessOf returns the request for v, 0 (file only) to 200, or
// SwappinessMax. Values outside are the same as passing nothing; config
// refuses them long before.
func SwappinessOf(v int) Swappiness {
	if v < 0 || v > SwappinessMax {
		return Swappiness{}
	}
	return Swappiness{v: int16(v), set: true}
}

// Get returns the value 0..SwappinessMax; ok is false when nothing is passed.
func (s Swappiness) Get() (v int, ok bool) { return int(s.v), s.set }

// String returns what is passed to the kernel: a number, "max", or "kernel"
// where nothing is.
func (s Swappiness) String() string {
	switch {
	case !s.set:
		return "kernel"
	case s.v == SwappinessMax:
		return "max"
	}
	return strconv.Itoa(int(s.v))
}

// Reclaim asks the kernel to take memory from one cgroup.
type Reclaim struct {
	Cgroup     ID
	Bytes      uint64 // to take; rounded down to whole pages
	Swappiness Swappiness
	// Deadline bounds the whole request in wall time; chunks stop when it is
	// over. 0 means the actuator's own default.
	Deadline time.Duration
	// Floor is the memory.current, in bytes, at which chunks stop.
	Floor uint64
	// OlderThan, where not 0, restricts the request to generations of the
	// multi-gen LRU that are at least so old. A host that cannot tell ages
	// refuses with ErrUnsupported or ErrDenied: such a request is never
	// carried out on memory of any age.
	OlderThan time.Duration
	// Nodes, where not empty, restricts the request to memory on these nodes.
	// A host that cannot reclaim by node refuses with ErrUnsupported or
	// ErrDenied: such a request is never carried out on other nodes.
	Nodes NodeMask
}

// What a request can be carried out with, for Outcome.Via.
const (
	// ViaReclaim is the cgroup's memory.reclaim file.
	ViaReclaim = "memory.reclaim"
	// ViaLRUGen is eviction through lru_gen of debugfs, list by list.
	ViaLRUGen = "lru_gen"
	// ViaDAMON is page-out by a monitor of the nodes' physical memory.
	ViaDAMON = "damon"
)

// Outcome is what came of a Reclaim, judged by counters read before and after
// and not by what the write returned.
type Outcome struct {
	Request Reclaim
	Err     error // the error that ended it, nil when all was asked; Partial is normal
	Writes  int   // write(2) calls made
	// Via is what the request was carried out with: one of the constants above,
	// the one that did the work where one before it was tried and refused; ""
	// when nothing was written.
	Via string
	// Refused is why a better way than Via was not to be had, nil when none
	// was refused. Where no way was left it is part of Err instead.
	Refused error
	Took    time.Duration

	Asked     uint64 // bytes handed to the kernel in all chunks
	Reclaimed Field  // bytes: growth of pgsteal times the page size; may include what others reclaimed meanwhile
	// Shrunk is the fall of memory.current in bytes, 0 when it grew.
	Shrunk Field
	// SwapOut is the growth of memory.swap.current in bytes, 0 when it shrank.
	SwapOut Field
	// Demoted is bytes moved to slower nodes: counted as reclaimed by the
	// kernel though memory.current does not fall (case c32).
	Demoted Field
	// Nodes tells the same by node, in ascending id, for a request that names
	// nodes: every node that memory.numa_stat lists, also those that were not
	// named. nil where there is no memory.numa_stat.
	Nodes []NodeOutcome
}

// Freed is what the request took and did not only move to slower nodes, in
// bytes: Reclaimed without Demoted. Where the kernel knows no demotion it is
// Reclaimed; it is absent where either could not be measured.
func (o *Outcome) Freed() Field {
	taken, ok := o.Reclaimed.Get()
	if !ok || o.Demoted.State() == Unsupported {
		return o.Reclaimed
	}
	moved, ok := o.Demoted.Get()
	if !ok {
		return o.Demoted
	}
	return Value(taken - min(moved, taken))
}

// NodeOutcome is what came of a Reclaim on one node.
type NodeOutcome struct {
	Node NodeID
	// Anon and File are the fall of what the cgroup and those below it have
	// there, in bytes, 0 when it grew. memory.numa_stat may lag by 64 pages a
	// CPU.
	Anon, File Field
	// Reclaimed is bytes: growth of the node's pgsteal times the page size.
	// Unsupported where pgsteal is not told by node (before 7.1).
	Reclaimed Field
}

// Term is one figure that went into a decision.
type Term struct {
	Name  string
	Value float64
	Unit  string // "bytes", "pages/s", "us/s", "%", ...
	Known bool   // false: the figure was absent, Value means nothing
}
