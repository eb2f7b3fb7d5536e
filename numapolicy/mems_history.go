package numapolicy

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

const (
	// memsAnHour is how many changes of one cgroup's set there may be in an hour,
	// whatever happens: three times out and back. One of them is kept for leaving,
	// so that a cgroup is not caught on a node that fills up after it was added.
	// More lets a set flap, and each change moves memory; fewer leaves it caught.
	memsAnHour = 6
	// leaveAgainAfter is the least time between a change and leaving a node that an
	// earlier change had to do with. A quarter of an hour would hold the cgroup there
	// while it swaps.
	leaveAgainAfter = time.Minute
	// MemsMemory is how long changes count. A node that was left so often lately has
	// to have room for twice as long each time before it is used again.
	MemsMemory = 3 * time.Hour
	// backOffMost is how many times that doubles: 80 minutes.
	backOffMost = 4
)

// MemsChange is one change of a cgroup's set that the agent has made or tried.
type MemsChange struct {
	Ago time.Duration
	// Left and Added are the nodes that are no longer in the set, and new in it.
	// Both are empty for one that was in vain.
	Left, Added memcg.NodeMask
}

// leavesAgain reports whether a set only leaves nodes that earlier changes have left or
// added: nodes that have been short before, or would not be used but for the agent. The
// quarter of an hour is against two cgroups that chase each other between two nodes,
// which takes nodes that are added.
func (in *MemsInput) leavesAgain(target memcg.NodeMask) bool {
	if in.Mode == MemsCompact || !target.Without(in.Sample.MemsEffective).Empty() {
		return false
	}
	left := in.Sample.MemsEffective.Without(target)
	for i := range in.Changes {
		if c := &in.Changes[i]; c.Ago < MemsMemory {
			left = left.Without(c.Left).Without(c.Added)
		}
	}
	return left.Empty()
}

// tooSoon returns the rule that holds a change back, "" for none.
func (in *MemsInput) tooSoon(target memcg.NodeMask) (rule string) {
	least, most := memsInterval, memsAnHour-1
	if target.Without(in.Sample.MemsEffective).Empty() {
		most = memsAnHour
	}
	if in.leavesAgain(target) {
		least = leaveAgainAfter
	}
	lately := 0
	for i := range in.Changes {
		if in.Changes[i].Ago < time.Hour {
			lately++
		}
	}
	switch {
	case in.Written && in.SinceChange < least:
		return "changed-lately"
	case lately >= most:
		return "changed-often"
	}
	return ""
}

// returns are the nodes that have had room for long enough to be used again.
func (in *MemsInput) returns(among memcg.NodeMask) (back memcg.NodeMask) {
	for id := range among.All {
		often := 0
		for i := range in.Changes {
			if c := &in.Changes[i]; c.Ago < MemsMemory && c.Left.Has(id) {
				often++
			}
		}
		if in.Nodes.roomyFor(id) >= returnAfter<<min(max(often-1, 0), backOffMost) {
			back.Add(id)
		}
	}
	return back
}
