package numapolicy

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Marks say when a node is short: below Low until it has High again. Both are
// parts of the node's memory, 0 < Low < High < 1; marks outside are taken as
// validated elsewhere and make no node short. They are the least: where the
// kernel keeps more of a node free, and where a node fills up, its marks are
// higher (see level.marks).
type Marks struct {
	Low, High float64
}

// DefaultMarks lie where the kernel itself begins on a large node. Its own
// watermarks are some 0.1 % of a zone apart (watermark_scale_factor in
// Documentation/admin-guide/sysctl/vm.rst) and kswapd stops at the highest of
// them, so a node full of cache rests at a few tenths of a percent; on a small
// one min_free_kbytes makes it several percent, which memcg.Node.Reserve tells.
// Higher marks would keep memory idle on every node; lower ones would leave the
// work to kswapd, which takes anon as well.
var DefaultMarks = Marks{Low: 0.005, High: 0.01}

func (m Marks) valid() bool { return m.Low > 0 && m.Low < m.High && m.High < 1 }

// Nodes is what is remembered of the host's nodes between readings. The zero
// Nodes knows none. One Nodes serves all cgroups of a host; it is read only
// while they decide.
type Nodes struct {
	list []level

	memory, cpu        memcg.NodeMask
	short, room, known memcg.NodeMask
	filling            memcg.NodeMask
}

// level is how full one node is, in bytes.
type level struct {
	id         memcg.NodeID
	total      uint64
	free       uint64
	cache      uint64 // inactive file, which can be had for a read at worst; 0 where it was not printed
	least, low uint64
	high       uint64
	growth     growth
	known      bool // free and total were read
	short      bool
	unchanging time.Duration // how long it has been short, or not short, at a stretch
	roomy      bool          // see level.lasting
	roomyFor   time.Duration // at a stretch
}

// Look takes in one reading of the host, elapsed after the one before it (0 on
// the first). A node below its low mark is short until it is at or above its
// high mark. A node whose size or free memory was not read is neither short nor
// has it room, until it is read again. It allocates only where nodes come or go.
func (n *Nodes) Look(h *memcg.HostSample, m Marks, elapsed time.Duration) {
	n.align(h.Nodes)
	n.memory, n.cpu = memcg.NodeMask{}, memcg.NodeMask{}
	n.short, n.room, n.known, n.filling = memcg.NodeMask{}, memcg.NodeMask{}, memcg.NodeMask{}, memcg.NodeMask{}
	for i := range h.Nodes {
		node, l := &h.Nodes[i], &n.list[i]
		if node.HasCPU {
			n.cpu.Add(node.ID)
		}
		if total, ok := node.MemTotal.Get(); !node.HasMemory || ok && total == 0 {
			*l = level{id: node.ID}
			continue
		}
		n.memory.Add(node.ID)
		l.look(node, m, max(elapsed, 0))
		if !l.known {
			continue
		}
		n.known.Add(node.ID)
		if l.short {
			n.short.Add(node.ID)
		}
		switch {
		case l.full(fillReach * max(elapsed, 0)):
			n.filling.Add(node.ID)
		case l.free >= l.high || l.cache >= l.high-l.free:
			n.room.Add(node.ID)
		}
	}
}

// look takes in one reading of a node with memory.
func (l *level) look(node *memcg.Node, m Marks, elapsed time.Duration) {
	total, ok := node.MemTotal.Get()
	free, there := node.MemFree.Get()
	if !ok || !there || !m.valid() {
		*l = level{id: node.ID}
		return
	}
	l.total, l.free = total, free
	l.cache, _ = node.InactiveFile.Get()
	l.growth.look(node, elapsed)
	l.marks(node, m, elapsed)
	was, first := l.short, !l.known
	l.known = true
	if l.short {
		l.short = free < l.high
	} else {
		l.short = free < l.low
	}
	if l.short != was || first {
		l.unchanging = 0
	} else {
		l.unchanging = longer(l.unchanging, elapsed)
	}
	stays := l.roomy && !first
	if l.roomy = l.lasting(); l.roomy && stays {
		l.roomyFor = longer(l.roomyFor, elapsed)
	} else {
		l.roomyFor = 0
	}
}

func longer(d, by time.Duration) time.Duration {
	return time.Duration(min(uint64(d)+uint64(by), math.MaxInt64))
}

// align makes the list name the nodes of the reading, in its order.
func (n *Nodes) align(nodes []memcg.Node) {
	same := len(n.list) == len(nodes)
	for i := 0; same && i < len(nodes); i++ {
		same = n.list[i].id == nodes[i].ID
	}
	if same {
		return
	}
	list := make([]level, len(nodes))
	for i := range nodes {
		if l := n.level(nodes[i].ID); l != nil {
			list[i] = *l
		} else {
			list[i].id = nodes[i].ID
		}
	}
	n.list = list
}

// level returns what is known of one node, nil where it is not online.
func (n *Nodes) level(id memcg.NodeID) *level {
	for i := range n.list {
		if n.list[i].id == id {
			return &n.list[i]
		}
	}
	return nil
}

// Memory returns the nodes that have memory: those in the kernel's has_memory
// of which MemTotal is not 0 (case c12).
func (n *Nodes) Memory() memcg.NodeMask { return n.memory }

// Short returns the nodes that are short.
func (n *Nodes) Short() memcg.NodeMask { return n.short }

// Room returns the nodes that can take more memory without anything being
// swapped: what is free, or is inactive page cache, reaches the high mark, and
// will for some intervals. A short node can be among them, when it is full of
// cache.
func (n *Nodes) Room() memcg.NodeMask { return n.room }

// Lacks returns how many bytes must become free on a short node before reclaim
// there stops, at its high mark; 0 on a node that is not short.
func (n *Nodes) Lacks(id memcg.NodeID) uint64 {
	if l := n.level(id); l != nil && l.short && l.free < l.high {
		return l.high - l.free
	}
	return 0
}

// spare returns the bytes that a node can take before it would be at its high
// mark; 0 where that is not known.
func (n *Nodes) spare(id memcg.NodeID) uint64 {
	if l := n.level(id); l != nil && l.known && l.free > l.high {
		return l.free - l.high
	}
	return 0
}

// shortFor returns the nodes that have been short for at least so long.
func (n *Nodes) shortFor(d time.Duration) memcg.NodeMask {
	var m memcg.NodeMask
	for i := range n.list {
		if l := &n.list[i]; l.known && l.short && l.unchanging >= d {
			m.Add(l.id)
		}
	}
	return m
}

// roomyFor returns for how long a node has had room that lasts.
func (n *Nodes) roomyFor(id memcg.NodeID) time.Duration {
	if l := n.level(id); l != nil && l.known && n.room.Has(id) {
		return l.roomyFor
	}
	return 0
}

// exhausted returns the nodes that were short in two readings in a row and are
// without room, and those that will be within a few intervals at the rate at
// which they fill up: there is nothing to wait for, what comes next is swap.
func (n *Nodes) exhausted() memcg.NodeMask {
	m := n.shortFor(time.Nanosecond).Without(n.room)
	for id := range n.filling.All {
		m.Add(id)
	}
	return m
}

// noRoom reports whether every one of the given nodes that has memory is known
// to be short and to be without room. A node of which nothing is known may have
// room, and without any node there is none to be short.
func (n *Nodes) noRoom(nodes memcg.NodeMask) bool {
	nodes = nodes.And(n.memory)
	return !nodes.Empty() && nodes.Without(n.short).Empty() && nodes.And(n.room).Empty()
}
