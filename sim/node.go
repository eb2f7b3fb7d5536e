package sim

import (
	"cmp"
	"slices"

	"github.com/memagent/memagent/memcg"
)

// node is the memory of one NUMA node, in pages.
type node struct {
	id          memcg.NodeID
	total, free uint64
	// low and high are the marks at which background reclaim starts and ends;
	// half of low is kept for nobody.
	low, high uint64
	failures  int // background reclaim runs in a row that freed nothing
	noCPU     bool
	distance  []int
	order     []int // indexes of all nodes with memory, nearest first
}

// Distances of the kernel's table where none is given.
const (
	localDistance  = 10
	remoteDistance = 20
)

// maxFailures is after how many vain runs background reclaim leaves a node
// alone (MAX_RECLAIM_RETRIES).
const maxFailures = 16

func (h *Host) addNodes(configs []NodeConfig) {
	for i, c := range configs {
		total := c.Bytes / PageSize
		n := node{id: c.ID, total: total, free: total, low: total / 256, high: total / 128, noCPU: c.NoCPU}
		n.distance = slices.Clone(c.Distance)
		if n.distance == nil {
			for j := range configs {
				n.distance = append(n.distance, remoteDistance)
				if i == j {
					n.distance[j] = localDistance
				}
			}
		}
		if total > 0 {
			h.withMemory.Add(c.ID)
		}
		h.nodes = append(h.nodes, n)
	}
	for i := range h.nodes {
		n := &h.nodes[i]
		for j := range h.nodes {
			if h.nodes[j].total > 0 {
				n.order = append(n.order, j)
			}
		}
		slices.SortStableFunc(n.order, func(a, b int) int { return cmp.Compare(n.distance[a], n.distance[b]) })
	}
}

func (h *Host) nodeIndex(id memcg.NodeID) (int, bool) {
	i := slices.IndexFunc(h.nodes, func(n node) bool { return n.id == id })
	return i, i >= 0
}

// place finds a node for one page of j, as near to the one it runs on as there
// is room. Where every allowed node is low they are reclaimed in the
// background, then at the workload's expense; at last somebody is killed. It
// returns false when that was j.
func (h *Host) place(j *Job) (int, bool) {
	c := j.group
	order := h.nodes[j.home()].order
	for {
		if n, ok := h.roomAbove(order, c, func(n *node) uint64 { return n.low }); ok {
			return n, true
		}
		for _, i := range order {
			if c.allowed.Has(h.nodes[i].id) {
				h.background(i)
			}
		}
		if n, ok := h.roomAbove(order, c, func(n *node) uint64 { return n.low / 2 }); ok {
			return n, true
		}
		h.near = h.near[:0]
		for _, i := range order {
			if c.allowed.Has(h.nodes[i].id) {
				h.near = append(h.near, i)
			}
		}
		got := h.shrink(request{
			target: h.root(), nodes: h.near, goal: batch, swappiness: h.swappiness, by: direct, global: true,
		})
		h.paid(j, got)
		if got.reclaimed > 0 {
			for _, i := range h.near {
				h.nodes[i].failures = 0
			}
			continue
		}
		if !h.kill(h.root(), j) || j.ended {
			return 0, false
		}
	}
}

func (h *Host) roomAbove(order []int, c *cgroup, mark func(*node) uint64) (int, bool) {
	for _, i := range order {
		if n := &h.nodes[i]; c.allowed.Has(n.id) && n.free > mark(n) {
			return i, true
		}
	}
	return 0, false
}

// background is kswapd: it reclaims one node up to its high mark, in nobody's
// time.
func (h *Host) background(i int) {
	n := &h.nodes[i]
	if n.free >= n.high || n.failures >= maxFailures {
		return
	}
	one := [1]int{i}
	got := h.shrink(request{
		target: h.root(), nodes: one[:], goal: max(n.high-n.free, batch),
		swappiness: h.swappiness, by: kswapd, global: true,
	})
	if got.reclaimed == 0 {
		n.failures++
		return
	}
	n.failures = 0
}
