package controller

import (
	"slices"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
)

// lendSlack is how much more than the reserve must be available before anything
// is lent, and how much more than what is short is taken back, as part of the
// reserve: so that lending and taking back do not chase each other.
const lendSlack = 1.0 / 8

// till is what the host has to lend, and what it has lent.
//
// What is lent as page cache counts as available with the kernel, which could
// drop it; but it is in use, and dropping it at speed is what must not happen.
// So it is subtracted: available is what is there for others without taking
// anything back.
type till struct {
	reserve float64 // share of the host, and of each node
	lent    uint64  // bytes lent in all
	used    uint64  // bytes of these that are in use
	held    uint64  // bytes of these that are page cache now
	nodes   map[memcg.NodeID]uint64
}

// count adds up what the borrowers have. share is the reserve as configured.
func (t *till) count(reserve config.Amount, host *memcg.HostSample, borrowers []*cgroup) {
	total, _ := host.MemTotal.Get()
	t.reserve, t.lent, t.used, t.held = 0, 0, 0, 0
	if bytes, ok := reserve.Of(total); ok && total > 0 {
		t.reserve = float64(bytes) / float64(total)
	}
	if t.nodes == nil {
		t.nodes = make(map[memcg.NodeID]uint64)
	}
	clear(t.nodes)
	for _, cg := range borrowers {
		t.lent += cg.loan.lent()
		t.held += cg.heldFile
		t.used += cg.heldIn
		for _, n := range cg.heldOn {
			t.nodes[n.node] += n.bytes
		}
	}
}

// kept is the reserve of a total.
func (t *till) kept(total uint64) uint64 { return uint64(t.reserve * float64(total)) }

// onHost returns what is available on the host beyond the reserve, negative where
// it is short; ok is false where that is not known.
func (t *till) onHost(h *memcg.HostSample) (bytes int64, ok bool) {
	total, okT := h.MemTotal.Get()
	free, okF := h.MemAvailable.Get()
	if !okT || !okF {
		return 0, false
	}
	return int64(free) - int64(t.held) - int64(t.kept(total)), true
}

// onNode is onHost for one node, whose cache could be dropped.
func (t *till) onNode(n *memcg.Node) (bytes int64, ok bool) {
	total, okT := n.MemTotal.Get()
	free, okF := memcg.Sum(n.MemFree, n.InactiveFile, n.ActiveFile).Get()
	if !okT || !okF || total == 0 {
		return 0, false
	}
	return int64(free) - int64(t.nodes[n.ID]) - int64(t.kept(total)), true
}

// pool is how much may be lent to a cgroup that may use those nodes, all where
// the mask is empty: what is above the reserve and a little more, on the host
// and on its nodes, less what is lent and not used yet.
func (t *till) pool(h *memcg.HostSample, nodes memcg.NodeMask) uint64 {
	unused := int64(t.lent - min(t.used, t.lent))
	total, _ := h.MemTotal.Get()
	room, ok := t.onHost(h)
	if !ok {
		return 0
	}
	room -= int64(lendSlack * float64(t.kept(total)))
	var there int64
	known := false
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if !nodes.Empty() && !nodes.Has(n.ID) {
			continue
		}
		if bytes, ok := t.onNode(n); ok {
			known = true
			total, _ := n.MemTotal.Get()
			there += max(bytes-int64(lendSlack*float64(t.kept(total))), 0)
		}
	}
	if known {
		room = min(room, there)
	}
	return uint64(max(room-unused, 0))
}

// short returns how much is missing to the reserve and a little more, on the host
// and on each node, where less than the reserve is there.
func (t *till) short(h *memcg.HostSample) (host uint64, nodes []shortNode) {
	missing := func(bytes int64, total memcg.Field) uint64 {
		all, _ := total.Get()
		return uint64(-bytes) + uint64(lendSlack*float64(t.kept(all)))
	}
	if bytes, ok := t.onHost(h); ok && bytes < 0 {
		host = missing(bytes, h.MemTotal)
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if bytes, ok := t.onNode(n); ok && bytes < 0 {
			nodes = append(nodes, shortNode{n.ID, missing(bytes, n.MemTotal)})
		}
	}
	return host, nodes
}

// shortNode is bytes of one node.
type shortNode struct {
	node  memcg.NodeID
	bytes uint64
}

// recallShort has borrowers give back while the host or a node is under its
// reserve: drawn by what they have, over what it is worth to them.
func (c *Core) recallShort(host *memcg.HostSample) {
	c.till.count(c.cfg.Host.Reserve, host, c.borrowers)
	if c.till.lent == 0 {
		return
	}
	missing, nodes := c.till.short(host)
	c.drawBorrowers(missing, func(cg *cgroup) uint64 { return cg.loan.lent() }, func(cg *cgroup) uint64 { return cg.heldIn })
	for _, n := range nodes {
		on := func(cg *cgroup) uint64 {
			for _, h := range cg.heldOn {
				if h.node == n.node {
					return h.bytes
				}
			}
			return 0
		}
		c.drawBorrowers(n.bytes, on, on)
	}
}

// lendPrice is the share of time that refaults cost a borrower at which what it
// has counts half: the default cost target of the squeeze.
const lendPrice = 0.001

// drawBorrowers recalls loans until what they bring covers what is missing.
func (c *Core) drawBorrowers(missing uint64, has, brings func(*cgroup) uint64) {
	if missing == 0 {
		return
	}
	left := make([]numapolicy.Entry[*cgroup], 0, len(c.borrowers))
	var coming uint64
	for _, cg := range c.borrowers {
		switch {
		case cg.loan.back == backShort:
			coming += brings(cg)
		case has(cg) > 0:
			weight := uint64(float64(has(cg)) / (1 + cg.loanCost/lendPrice))
			left = append(left, numapolicy.Entry[*cgroup]{Item: cg, Weight: max(weight, 1)})
		}
	}
	for coming < missing && len(left) > 0 {
		gives := left[0].Item // where there is no source to draw from
		if c.nodes.from != nil {
			c.lottery.Build(left)
			if d, ok := c.lottery.Draw(c.nodes.from); ok {
				gives = d.Item
			}
		}
		coming += brings(gives)
		gives.loan.recall(backShort)
		left = slices.DeleteFunc(left, func(e numapolicy.Entry[*cgroup]) bool { return e.Item == gives })
	}
}
