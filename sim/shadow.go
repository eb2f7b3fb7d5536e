package sim

import "github.com/memagent/memagent/memcg"

// Workingset detection, after mm/workingset.c. A page that is evicted leaves a
// shadow: the nonresident age of the cgroup whose reclaim took it. The age has
// grown by one for every eviction and activation since; when the page comes
// back, the difference is its refault distance: how much more memory would
// have kept it.

// aged notes evictions or activations on a node for c and all above it.
func (c *cgroup) aged(node int, n uint64) {
	for ; c != nil; c = c.parent {
		c.vecs[node].age += n
	}
}

// detects reports whether pages of a kind have a refault distance at all.
func (h *Host) detects(kind int) bool { return kind == fileKind || h.kernel.DetectAnon }

// reach returns the pages that could have made room for one of a kind, had it
// been known to come back: the size that its distance is compared with.
func (h *Host) reach(c *cgroup, node, kind int) uint64 {
	v := &c.vecs[node]
	if !h.kernel.DetectAnon {
		return v.size[activeFile]
	}
	swap := h.canSwap(c)
	ws := v.size[activeFile]
	switch {
	case kind == anonKind:
		ws += v.size[inactiveFile]
		if swap {
			ws += v.size[activeAnon]
		}
	case swap:
		ws += v.size[activeAnon] + v.size[inactiveAnon]
	}
	return ws
}

// canSwap reports whether a page of c could be swapped out: limits on the way
// to the root and the host's free swap.
func (h *Host) canSwap(c *cgroup) bool { return h.swapUsed < h.swapTotal && c.swapRoom() > 0 }

// refault notes that page p comes back, to c on a node, and decides whether it
// goes to the active list. It is called before p is put on any list.
func (h *Host) refault(p *page, c *cgroup, node int) {
	kind := p.kind()
	was := p.flags&workingset != 0
	p.flags &^= out | workingset
	if !h.detects(kind) {
		if h.kernel.Prints(memcg.StatRefaultAnon) {
			c.add(node, cRefaultAnon, 1)
		}
		if h.kernel.NewAnonActive {
			p.flags |= active
		}
		return
	}
	by := h.groups[p.by]
	c.add(node, cRefaultAnon+counter(kind), 1)
	if by == nil {
		return // the cgroup whose age it was is gone, and nothing to compare with
	}
	distance := by.vecs[p.node].age - p.shadow
	recent := distance <= h.reach(by, int(p.node), kind)
	for g := c; g != nil; g = g.parent {
		g.truth[kind].note(distance, recent)
	}
	if h.trace != nil {
		h.trace(traced{what: tracedRefault, kind: kind, page: p, distance: distance, recent: recent})
	}
	if !recent {
		return
	}
	p.flags |= active
	c.aged(node, 1)
	h.traceAge(kind)
	c.add(node, cActivateAnon+counter(kind), 1)
	if was {
		p.flags |= workingset
		c.add(node, cRestoreAnon+counter(kind), 1)
		h.noteCost(c, node, kind, 1, 0)
	}
}

// noteCost tells the balance of c and all above it what a kind has cost: pages
// read or written, and pages scanned in vain. Old costs fade once they reach a
// quarter of the lists.
func (h *Host) noteCost(c *cgroup, node, kind int, io, rotated uint64) {
	cost := io * h.kernel.CostIO
	if h.kernel.CostRotation {
		cost += rotated
	}
	if cost == 0 {
		return
	}
	for ; c != nil; c = c.parent {
		v := &c.vecs[node]
		v.cost[kind] += cost
		if v.cost[anonKind]+v.cost[fileKind] > v.total()/4 {
			v.cost[anonKind] /= 2
			v.cost[fileKind] /= 2
		}
	}
}

// traced is one thing that the tests of this package look at.
type traced struct {
	what     tracedWhat
	kind     int
	page     *page
	distance uint64
	recent   bool
}

type tracedWhat int

const (
	tracedEvict tracedWhat = iota
	tracedRefault
	tracedActivate
)

func (h *Host) traceAge(kind int) {
	if h.trace != nil {
		h.trace(traced{what: tracedActivate, kind: kind})
	}
}
