package numapolicy

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

const (
	mib  = 1 << 20
	page = 4096
)

// sizes is what a test says of one node of a cgroup, in MiB, and of its
// counters.
type sizes struct {
	inactiveFile, activeFile, inactiveAnon, activeAnon uint64
	refaultAnon, refaultFile                           uint64 // counts
	scan, steal                                        uint64 // pages; both 0: not printed
	dirty                                              uint64
}

func (z sizes) stats(id memcg.NodeID) memcg.NodeStats {
	n := memcg.NodeStats{ID: id}
	n.SetAll(memcg.Unsupported)
	set := func(k memcg.NodeStat, v uint64) { n.Set(k, memcg.Value(v)) }
	set(memcg.NodeInactiveFile, z.inactiveFile*mib)
	set(memcg.NodeActiveFile, z.activeFile*mib)
	set(memcg.NodeInactiveAnon, z.inactiveAnon*mib)
	set(memcg.NodeActiveAnon, z.activeAnon*mib)
	set(memcg.NodeAnon, (z.inactiveAnon+z.activeAnon)*mib)
	set(memcg.NodeFile, (z.inactiveFile+z.activeFile)*mib)
	set(memcg.NodeFileDirty, z.dirty*mib)
	set(memcg.NodeRefaultAnon, z.refaultAnon)
	set(memcg.NodeRefaultFile, z.refaultFile)
	if z.scan > 0 || z.steal > 0 {
		set(memcg.NodeScan, z.scan)
		set(memcg.NodeSteal, z.steal)
	}
	return n
}

// sampleOf is a cgroup that may use every node, with swap.
func sampleOf(nodes ...memcg.NodeStats) *memcg.Sample {
	s := &memcg.Sample{Nodes: nodes, NodesState: memcg.Present, SwapRoom: memcg.Unlimited(), MemsState: memcg.Present}
	s.Stat.SetAll(memcg.Unsupported)
	return s
}

// hostOf is a host of nodes with a CPU each, 16 GiB of memory and as much free
// of it, in MiB, as is said.
func hostOf(free ...uint64) *memcg.HostSample {
	h := &memcg.HostSample{PageSize: page, SwapTotal: memcg.Value(4 << 30), SwapFree: memcg.Value(4 << 30)}
	for i, f := range free {
		n := memcg.Node{
			ID: memcg.NodeID(i), HasMemory: true, HasCPU: true, MemTotal: memcg.Value(16 << 30),
			MemFree: memcg.Value(f * mib), InactiveFile: memcg.Value(0), ActiveFile: memcg.Value(0),
		}
		for j := range free {
			n.Distance = append(n.Distance, 10+10*max(i-j, j-i))
		}
		h.Nodes = append(h.Nodes, n)
	}
	return h
}

// cached has all that is not free be page cache in use, so that no node fills up
// with anything else.
func cached(h *memcg.HostSample) *memcg.HostSample {
	for i := range h.Nodes {
		n := &h.Nodes[i]
		total, _ := n.MemTotal.Get()
		free, _ := n.MemFree.Get()
		n.ActiveFile = memcg.Value(total - free)
	}
	return h
}

// nodesOf has looked at a host once.
func nodesOf(h *memcg.HostSample) *Nodes {
	var n Nodes
	n.Look(h, DefaultMarks, 0)
	return &n
}

// nodesFor has looked at a host twice, some time apart.
func nodesFor(h *memcg.HostSample, d time.Duration) *Nodes {
	n := nodesOf(h)
	n.Look(h, DefaultMarks, d)
	return n
}

// ticket is a source that always draws the same one.
type ticket uint64

func (t ticket) Uint64N(n uint64) uint64 { return uint64(t) % n }

func inputOf(s *memcg.Sample, h *memcg.HostSample) Input {
	return Input{
		Sample: s, Host: h, Nodes: nodesOf(h), Elapsed: 5 * time.Second, Swappiness: memcg.SwappinessOf(60),
		AnonPrice: 100, FilePrice: 100, ByNode: true, Random: ticket(0),
	}
}

// decideTwice decides on two samples five seconds apart; grow changes the second
// of them.
func decideTwice(st *State, in Input, p Policy, grow func(n *memcg.NodeStats)) Decision {
	first := in
	first.Elapsed = 0
	Decide(st, first, p)
	var later memcg.Sample
	later.CopyFrom(in.Sample)
	for i := range later.Nodes {
		if grow != nil {
			grow(&later.Nodes[i])
		}
	}
	in.Sample = &later
	return Decide(st, in, p)
}

var lottery = Policy{Lottery: true}

// weights returns the weights by node.
func (d *Decision) weights() map[memcg.NodeID]uint64 {
	m := map[memcg.NodeID]uint64{}
	for _, s := range d.Shares {
		m[s.Node] = s.Weight
	}
	return m
}

func (d *Decision) share(id memcg.NodeID) Share {
	for _, s := range d.Shares {
		if s.Node == id {
			return s
		}
	}
	return Share{Why: "not listed"}
}
