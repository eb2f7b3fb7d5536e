package numapolicy

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Input is what is known of one cgroup at one sample, and what is about to be
// asked of it.
type Input struct {
	Sample *memcg.Sample
	Host   *memcg.HostSample
	// Nodes has looked at Host already.
	Nodes *Nodes
	// Elapsed is the time since the previous sample of this cgroup that was
	// decided on, 0 on the first.
	Elapsed time.Duration
	// Swappiness is what the request would pass. Where it passes nothing the
	// weights are those of the kernel's initial value, 60.
	Swappiness memcg.Swappiness
	// AnonPrice and FilePrice are what one refault of a type costs, in
	// microseconds.
	AnonPrice, FilePrice float64
	// ByNode is true where the host can reclaim on one node of this cgroup.
	ByNode bool
	// Demotion is true where the kernel moves pages to slower nodes instead of
	// evicting them (/sys/kernel/mm/numa/demotion_enabled).
	Demotion bool
	// Random is drawn from at most once for each decision.
	Random Source
}

// Policy is what the operator wants for one cgroup. Values are taken as
// validated.
type Policy struct {
	// Lottery allows picking a node. Off leaves every request as it is.
	Lottery bool
	// SwapWhenShort allows anon to be taken from a short node where every node
	// that the cgroup may use is short and has no room.
	SwapWhenShort bool
	// Named are nodes that may be picked although they have no CPU.
	Named memcg.NodeMask
	// DemoteOutside allows reclaim to go on while the kernel moves pages to
	// nodes outside of the cgroup's cpuset.mems.effective.
	DemoteOutside bool
}

// Reach tells which nodes a request may take from.
type Reach uint8

// Reaches.
const (
	Everywhere Reach = iota // plain reclaim, every node in proportion
	OneNode                 // Decision.Nodes alone
	Nowhere                 // the request must not be made
)

var reachNames = [...]string{"everywhere", "one-node", "nowhere"}

// String returns the reach in kebab-case.
func (r Reach) String() string {
	if int(r) < len(reachNames) {
		return reachNames[r]
	}
	return "reach(?)"
}

// Decision is where to take memory from. Its slices point into the State and
// are valid until the next Decide with it.
type Decision struct {
	Reach Reach
	// Nodes is what to put into memcg.Reclaim.Nodes: the drawn node, or empty.
	Nodes memcg.NodeMask
	// Swappiness is what the request must pass: Input.Swappiness, or 0 where
	// only file may be taken.
	Swappiness memcg.Swappiness
	// FileOnly is true where Swappiness was set to 0 for a short node's sake. A
	// host that cannot pass it must skip the request.
	FileOnly bool
	// Demoted is true where the request is for what an earlier one has moved to
	// the node (State.Instead).
	Demoted bool
	// Most is the most bytes the drawn node could give; an upper bound, since
	// pages in use or dirty are among them. 0 unless Reach is OneNode.
	Most uint64
	// Drawing is the draw, with the table it was made from; empty where none
	// was made.
	Drawing Drawing[memcg.NodeID]
	// Shares tells of every node that memory.numa_stat lists how its weight
	// came about at the last build. Empty where nothing was weighed.
	Shares []Share
	// Outside is how many bytes of the cgroup lie outside of its
	// cpuset.mems.effective; absent where either is not known.
	Outside memcg.Field
	// Rule is the kebab-case name of the rule that decided.
	Rule string
	// Because lists the figures that decided.
	Because []memcg.Term
}
