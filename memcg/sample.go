package memcg

// Sample is one reading of all memory files of one cgroup. Readers reuse a
// Sample: what it held before is gone after the next read. Fields of files
// that this cgroup does not have are Unsupported; of files that were not read,
// Missing.
type Sample struct {
	Current     Field // memory.current, bytes
	SwapCurrent Field // memory.swap.current, bytes
	Stat        Stats // memory.stat, the whole subtree
	// Nodes is memory.numa_stat, one entry for each node with memory that the
	// kernel printed, in ascending id. Empty where NodesState is not Present.
	Nodes      []NodeStats
	NodesState State

	Pressure    Pressure // memory.pressure
	Events      Events   // memory.events, the whole subtree
	EventsLocal Events   // memory.events.local, this cgroup alone
	SwapEvents  SwapEvents

	Min, Low, High, Max Limit // memory.min, low, high, max
	SwapMax             Limit // memory.swap.max
	// SwapRoom is how many bytes of anon the swap limits of this cgroup and of
	// all its ancestors still let out: the minimum of swap.max - swap.current
	// on the way to the root. Unlimited where none binds. It says nothing
	// about free swap on the host. See case c52.
	SwapRoom Limit

	Populated Field // cgroup.events populated: 0 or 1
	Frozen    Field // cgroup.events frozen: 0 or 1

	Mems          NodeMask // cpuset.mems as asked for; empty means inherit
	MemsEffective NodeMask // cpuset.mems.effective as granted
	MemsState     State    // of both: Unsupported where cpuset is not enabled
}

// NodeStat names one key of memory.numa_stat that memagent keeps for each
// node. Sizes are bytes, the rest are counts, as in memory.stat.
type NodeStat uint8

// Keys kept for each node. The scan and steal sums exist from 7.1 on only.
const (
	NodeAnon NodeStat = iota
	NodeFile
	NodeInactiveAnon
	NodeActiveAnon
	NodeInactiveFile
	NodeActiveFile
	NodeUnevictable
	NodeFileDirty
	NodeFileWriteback
	NodeRefaultAnon
	NodeRefaultFile
	NodeScan  // sum of pgscan_* of the node
	NodeSteal // sum of pgsteal_* of the node
	NodeDemote

	// NumNodeStats is the number of keys, not a key.
	NumNodeStats
)

// NodeStats is what memory.numa_stat says of one node.
type NodeStats struct {
	ID    NodeID
	v     [NumNodeStats]uint64
	state [NumNodeStats]State
}

// Get returns the field of one key.
func (n *NodeStats) Get(k NodeStat) Field { return Field{v: n.v[k], state: n.state[k]} }

// Set stores the field of one key.
func (n *NodeStats) Set(k NodeStat, f Field) { n.v[k], n.state[k] = f.v, f.state }

// SetAll gives every key the same absence.
func (n *NodeStats) SetAll(why State) {
	for k := range n.state {
		n.v[k], n.state[k] = 0, why
	}
}

// Node returns the entry of one node; ok is false when memory.numa_stat did
// not list it.
func (s *Sample) Node(id NodeID) (*NodeStats, bool) {
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return &s.Nodes[i], true
		}
	}
	return nil, false
}

// CopyFrom makes s an independent copy of o, reusing s's memory.
func (s *Sample) CopyFrom(o *Sample) {
	nodes := append(s.Nodes[:0], o.Nodes...)
	*s = *o
	s.Nodes = nodes
}

// Pressure is one reading of a PSI file (memory.pressure). Where PSI is off,
// every field is Unsupported, which is not a pressure of 0.
type Pressure struct {
	Some, Full Stall
}

// Stall is one line of a PSI file.
type Stall struct {
	Total Field   // microseconds of stall since the cgroup was created
	Avg10 float64 // percent of the last 10 s, 0..100; meaningless unless Total is present
	Avg60 float64 // percent of the last 60 s, 0..100; meaningless unless Total is present
}

// Events is one reading of memory.events or memory.events.local: how often
// each thing happened.
type Events struct {
	Low, High, Max, OOM, OOMKill Field
}

// SwapEvents is one reading of memory.swap.events.
type SwapEvents struct {
	High, Max, Fail Field
}
