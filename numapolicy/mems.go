package numapolicy

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// MemsMode says how a cgroup's set of nodes, cpuset.mems, is chosen.
type MemsMode uint8

// Modes.
const (
	// MemsKeep never changes the set.
	MemsKeep MemsMode = iota
	// MemsAvoidShort leaves nodes out while they are short, within the set that
	// was found.
	MemsAvoidShort
	// MemsCompact uses the fewest nodes, near each other, that hold the working
	// set, within the set that was found.
	MemsCompact
	// MemsSpread uses every node that the parent grants and that is not short,
	// whatever set was found.
	MemsSpread
)

var memsModes = [...]string{"keep", "avoid-short", "compact", "spread"}

// String returns the mode as it is written in a configuration.
func (m MemsMode) String() string {
	if int(m) < len(memsModes) {
		return memsModes[m]
	}
	return "mems(?)"
}

const (
	// memsInterval is the least time between two changes of one cgroup's set. A
	// change migrates memory while its writer waits, with all CPUs drained for
	// every process (do_migrate_pages in mm/mempolicy.c): minutes of benefit
	// must stand against seconds of cost. Less lets two cgroups chase each other
	// between two nodes.
	memsInterval = 15 * time.Minute
	// leaveAfter is how long a node must have been short before it is left:
	// reclaim of clean file there has had its chance by then. A node that has no
	// clean file to give is left when it is seen short twice in a row.
	leaveAfter = time.Minute
	// returnAfter is how long it must have had room well above its high mark before
	// it is used again, the first time (MemsInput.returns). Longer than leaveAfter,
	// so that a node which hovers about its marks is left alone and not taken in and
	// out.
	returnAfter = 5 * time.Minute
)

// MemsInput is what a plan for one cgroup's cpuset.mems rests on.
type MemsInput struct {
	Mode MemsMode
	// Sample has the set as asked for and as granted, and what lies on each
	// node.
	Sample *memcg.Sample
	Host   *memcg.HostSample
	Nodes  *Nodes // has looked at Host already
	// Parent is the parent's cpuset.mems.effective; at the top, the online nodes
	// with memory.
	Parent memcg.NodeMask
	// Original is cpuset.mems as it was found before the agent first wrote it;
	// empty where it inherited.
	Original memcg.NodeMask
	// Wrote is what the agent last wrote and Written whether it ever did. A
	// value that is neither Wrote nor Original is somebody else's.
	Wrote   memcg.NodeMask
	Written bool
	// SinceChange is the time since the agent's last change, meaningless unless
	// Written.
	SinceChange time.Duration
	// Changes are the agent's changes of the last MemsMemory, in any order.
	Changes []MemsChange
	// Named are nodes that may be used although they have no CPU. Those that
	// Original names are named as well.
	Named memcg.NodeMask
	// WorkingSet is how many bytes the cgroup needs; absent where that is not
	// known.
	WorkingSet memcg.Field
}

// MemsPlan is what to do with cpuset.mems: keep it, or write another set.
type MemsPlan struct {
	// Set is true where Mems is to be written, false where the value stays.
	Set  bool
	Mems memcg.NodeMask // never empty where it is to be written
	// Moves is about how many bytes the kernel will migrate before the write
	// returns; an upper bound.
	Moves uint64
	// Widen are nodes with room outside of the set, where the set as it was
	// found leaves no way to avoid a short node. A suggestion to the operator.
	Widen memcg.NodeMask
	// Rule is the kebab-case name of the rule that decided.
	Rule string
}

// PlanMems says whether a cgroup should use another set of nodes. Whatever the
// mode, a set that is to be written is not empty, not the one in force, within
// the parent's and on nodes with memory; it adds no node without a CPU that
// nobody named; the nodes that memory would be moved to have room for it; at
// least a quarter of an hour has gone by since the last change, or a minute where
// only nodes are left that an earlier one had to do with; and there are at most six
// changes in an hour. A value that somebody else wrote is left alone.
func PlanMems(in MemsInput) MemsPlan {
	s := in.Sample
	switch {
	case in.Mode == MemsKeep:
		return MemsPlan{Rule: "keep"}
	case s == nil || in.Host == nil || in.Nodes == nil:
		return MemsPlan{Rule: "no-sample"}
	case s.MemsState != memcg.Present:
		return MemsPlan{Rule: "no-cpuset"}
	case s.NodesState != memcg.Present:
		return MemsPlan{Rule: "no-node-figures"}
	case in.foreign():
		return MemsPlan{Rule: "foreign-value"}
	case s.MemsEffective.Empty():
		return MemsPlan{Rule: "effective-unknown"}
	}
	target, plan := in.target()
	if plan.Rule != "" {
		return plan
	}
	target = target.And(in.Parent).And(in.Nodes.memory)
	switch {
	case target.Empty():
		return MemsPlan{Rule: "every-node-short", Widen: in.widen()}
	case target == s.MemsEffective || target == s.Mems:
		return MemsPlan{Rule: "equal-set"}
	}
	if rule := in.tooSoon(target); rule != "" {
		return MemsPlan{Rule: rule}
	}
	moves, ok, fits := in.room(target)
	switch {
	case !ok:
		return MemsPlan{Rule: "no-figures"}
	case !fits:
		return MemsPlan{Rule: "no-room", Moves: moves}
	}
	return MemsPlan{Set: true, Mems: target, Moves: moves, Rule: in.Mode.String()}
}

// foreign reports whether the value there now is somebody else's.
func (in *MemsInput) foreign() bool {
	asked := in.Sample.Mems
	return asked != in.Original && !(in.Written && asked == in.Wrote)
}

// found is the set that was found, as far as the parent grants it.
func (in *MemsInput) found() memcg.NodeMask {
	if granted := in.Original.And(in.Parent); !granted.Empty() {
		return granted
	}
	return in.Parent
}

// usable are the nodes that may be added to the set.
func (in *MemsInput) usable() memcg.NodeMask {
	named := in.Named
	for id := range in.Original.All {
		named.Add(id)
	}
	return in.Nodes.fast(named)
}

// widen are nodes with room that the cgroup may not use.
func (in *MemsInput) widen() memcg.NodeMask {
	return in.Nodes.room.Without(in.Nodes.short).And(in.usable()).Without(in.Sample.MemsEffective)
}
