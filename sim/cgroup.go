package sim

import (
	"github.com/memagent/memagent/memcg"
)

// counter is something that is counted for a cgroup on a node.
type counter int

const (
	cRefaultAnon counter = iota // refault + kind
	cRefaultFile
	cActivateAnon // activate + kind
	cActivateFile
	cRestoreAnon // restore + kind
	cRestoreFile
	cScanKswapd // scan + reclaimer
	cScanDirect
	cScanProactive
	cStealKswapd // steal + reclaimer
	cStealDirect
	cStealProactive
	cRefill
	cPgactivate
	cPgdeactivate
	cFault
	cMajfault
	cSwapin
	cSwapout
	numCounters
)

// vec is one cgroup on one node: the kernel's lruvec.
type vec struct {
	lists [numLists]list // this cgroup's own pages

	// Of the whole subtree:
	size  [numLists]uint64
	count [numCounters]uint64

	age  uint64           // nonresident age: evictions and activations
	cost [numKinds]uint64 // of reclaiming each kind
	seen [numKinds]uint64 // workingset_activate at the end of the last reclaim of this target

	cursor int // where the next partial walk of this subtree starts
}

func (v *vec) total() uint64 {
	return v.size[inactiveAnon] + v.size[activeAnon] + v.size[inactiveFile] + v.size[activeFile]
}

// cgroup is one directory. What is charged to it is charged to its ancestors.
type cgroup struct {
	id      memcg.ID
	number  uint32 // index in Host.groups, never used again
	parent  *cgroup
	kids    []*cgroup // in the order they were made
	limits  Limits
	allowed memcg.NodeMask // cpuset.mems.effective
	vecs    []vec          // by index of the node
	jobs    []*Job

	// Of the whole subtree:
	usage, swap uint64 // pages
	procs       int    // jobs that were started and have not ended
	running     int    // threads of those of them that still have something to do

	events, local [numEvents]uint64
	ear           *ear // of the host
	swapEvents    [numSwapEvents]uint64
	some, full    stallClock

	truth    [numKinds]Distances
	hidden   map[memcg.Stat]bool
	offset   [memcg.NumStats]uint64 // taken off what is printed: a counter that was reset
	inFlight bool                   // a Reclaim is running
	dead     bool
}

type event int

const (
	eventLow event = iota
	eventHigh
	eventMax
	eventOOM
	eventOOMKill
	numEvents
)

type swapEvent int

const (
	swapMax swapEvent = iota
	swapFail
	numSwapEvents
)

// note counts an event of c: its own, and its ancestors' as part of their
// subtrees.
func (c *cgroup) note(e event) {
	c.local[e]++
	for ; c != nil; c = c.parent {
		c.events[e]++
		c.ear.tell(c.id)
	}
}

func (c *cgroup) noteSwap(e swapEvent) {
	for ; c != nil; c = c.parent {
		c.swapEvents[e]++
	}
}

func (c *cgroup) add(node int, k counter, n uint64) {
	for ; c != nil; c = c.parent {
		c.vecs[node].count[k] += n
	}
}

// sum returns a counter over all nodes.
func (c *cgroup) sum(k counter) uint64 {
	var n uint64
	for i := range c.vecs {
		n += c.vecs[i].count[k]
	}
	return n
}

// listed returns the length of one list over all nodes.
func (c *cgroup) listed(l lru) uint64 {
	var n uint64
	for i := range c.vecs {
		n += c.vecs[i].size[l]
	}
	return n
}

func (c *cgroup) resize(node int, l lru, by int) {
	for ; c != nil; c = c.parent {
		c.vecs[node].size[l] += uint64(by)
	}
}

// swapRoom returns how many pages the swap limits from c to the root let out.
func (c *cgroup) swapRoom() uint64 {
	room := uint64(unlimited)
	for ; c != nil; c = c.parent {
		limit := limitPages(c.limits.SwapMax)
		if c.swap >= limit {
			return 0
		}
		if limit < unlimited {
			room = min(room, limit-c.swap)
		}
	}
	return room
}

// subtree appends c and all below it, parents first.
func (c *cgroup) subtree(dst []*cgroup) []*cgroup {
	dst = append(dst, c)
	for _, k := range c.kids {
		dst = k.subtree(dst)
	}
	return dst
}

// grant works out which nodes c and all below it may use: what they ask for
// within what their parent has, or what it has where nothing else is left.
func (c *cgroup) grant(above memcg.NodeMask) {
	c.allowed = above
	if got := c.limits.Mems.And(above); !got.Empty() {
		c.allowed = got
	}
	for _, k := range c.kids {
		k.grant(c.allowed)
	}
}
