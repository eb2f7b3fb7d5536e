package numapolicy

import "github.com/memagent/memagent/memcg"

// rebuildAfter is how many pages must have come, gone or been taken before the
// weights are worked out anew, as many as the seed's kernel waits for
// (NUMAINFO_EVENTS_TARGET): 4 MiB of small pages. More draws from weights that
// no longer hold; fewer builds tables that say the same.
const rebuildAfter = 1024

// basis is what a table was built for, besides sizes and counters.
type basis struct {
	fast, unknown, fileOnly memcg.NodeMask
	swappiness              memcg.Swappiness
	anon                    bool // anon counts
}

// Decide says from which nodes a request of one cgroup may take memory. It
// takes in every sample, also where nothing is to be asked, so that the sums it
// weighs by go on. Whatever the weights, these bounds hold: no node is drawn of
// which nothing is known, that has no memory, or that has no CPU and was not
// named; a short node gives no anon while another has room. It allocates only
// where nodes come or go.
func Decide(st *State, in Input, p Policy) Decision {
	d := Decision{Swappiness: in.Swappiness}
	if !p.Lottery {
		d.Rule = "lottery-off"
		return d
	}
	if in.Sample == nil || in.Host == nil || in.Nodes == nil || in.Sample.NodesState != memcg.Present || len(in.Sample.Nodes) == 0 {
		d.Rule = "no-node-figures"
		return d
	}
	page := float64(max(in.Host.PageSize, 1))
	st.learn(in.Sample, in.Elapsed, page)
	st.owed.look(&in, page)
	if in.Sample.MemsState == memcg.Present && !in.Sample.MemsEffective.Empty() {
		d.Outside = Outside(in.Sample, in.Sample.MemsEffective)
	}
	if spills := st.spill.look(d.Outside); spills && in.Demotion && !p.DemoteOutside {
		d.Reach, d.Rule = Nowhere, "demotes-outside"
		d.Because = st.because(&d, &in)
		return d
	}
	b := st.basis(&in, &p, page)
	if !st.fresh || st.events >= rebuildAfter || b != st.built {
		st.build(&in, b, page)
	}
	d.Shares = st.shares
	st.pick(&d, &in, b)
	d.Because = st.because(&d, &in)
	return d
}

// basis works out what a table must be built for now.
func (st *State) basis(in *Input, p *Policy, page float64) basis {
	b := basis{fast: in.Nodes.fast(p.Named), swappiness: in.Swappiness}
	sc := st.scales(in, page)
	b.anon = sc.anon
	if short := in.Nodes.short; !short.Empty() && !(p.SwapWhenShort && in.Nodes.noRoom(mayUse(in))) {
		b.fileOnly = short
	}
	for i := range st.nodes {
		h := &st.nodes[i]
		if _, _, ok := sc.counted(&in.Sample.Nodes[i], h, b.fileOnly.Has(h.id)); !ok {
			b.unknown.Add(h.id)
		}
	}
	return b
}

// mayUse returns the nodes that the cgroup may use: what cpuset.mems grants, or
// all nodes with memory where nothing says otherwise.
func mayUse(in *Input) memcg.NodeMask {
	if in.Sample.MemsState == memcg.Present && !in.Sample.MemsEffective.Empty() {
		return in.Sample.MemsEffective
	}
	return in.Nodes.memory
}

// build weighs every node and replaces the table.
func (st *State) build(in *Input, b basis, page float64) {
	st.events, st.built, st.fresh = 0, b, true
	sc := st.scales(in, page)
	st.shares, st.entries = st.shares[:0], st.entries[:0]
	for i := range in.Sample.Nodes {
		n := &in.Sample.Nodes[i]
		var s Share
		if b.fast.Has(n.ID) {
			s = sc.weigh(n, &st.nodes[i], b.fileOnly.Has(n.ID))
		} else {
			s = Share{Node: n.ID, Why: WhySlow}
		}
		st.shares = append(st.shares, s)
		st.entries = append(st.entries, Entry[memcg.NodeID]{Item: n.ID, Weight: s.Weight})
	}
	st.lottery.Build(st.entries)
}

// pick decides by the table that stands.
func (st *State) pick(d *Decision, in *Input, b basis) {
	s := swappinessOf(in.Swappiness)
	// Where plain reclaim could take anon from a short node, it is out of the
	// question as long as the request lets it.
	spare := s > 0 && !st.held().And(b.fileOnly).Empty()
	switch {
	case st.lottery.Tickets() == 0 && d.without(WhyNoFigures) > 0:
		d.Rule = "no-figures"
	case st.lottery.Tickets() == 0:
		d.Rule = "nothing-to-give"
	case !in.ByNode:
		d.Rule = "not-by-node"
	case in.Random == nil:
		d.Rule = "nothing-to-draw-from"
	case !spare && balanced(st.shares):
		d.Rule = "balanced"
	default:
		st.draw(d, in)
		return
	}
	switch {
	case spare && s >= 200: // a request for anon alone
		d.Reach, d.Rule = Nowhere, "short-gives-no-anon"
	case spare:
		d.fileOnly()
	}
}

// draw lets the lottery pick the one node that gives.
func (st *State) draw(d *Decision, in *Input) {
	for i := range st.shares {
		s := &st.shares[i]
		if n, ok := in.Sample.Node(s.Node); ok && s.Why == "" {
			s.Most = mostOf(n, !s.FileOnly && st.built.anon)
		}
	}
	d.Drawing, _ = st.lottery.Draw(in.Random)
	d.take(in.Swappiness)
}

// take makes the decision the one for the node that was drawn.
func (d *Decision) take(asked memcg.Swappiness) {
	d.Reach, d.Rule = OneNode, "drawn"
	d.Nodes, d.Most = memcg.NodesOf(d.Drawing.Item), 0
	d.FileOnly, d.Swappiness = false, asked
	for i := range d.Shares {
		s := &d.Shares[i]
		if s.Node != d.Drawing.Item {
			continue
		}
		if d.Most = s.Most; s.FileOnly {
			d.fileOnly()
			d.Rule = "drawn-short"
		}
	}
}

// Redraw draws once more by the table that the last Decide with this state has
// left, for a request that is made before the next sample with a swappiness of
// its own; d is what that Decide returned. Where it drew no node, d is returned
// as it is. So that a burst of requests is spread as the weights are, and not
// all of it falls to one node.
func (st *State) Redraw(d Decision, asked memcg.Swappiness, from Source) Decision {
	if d.Reach != OneNode || from == nil {
		return d
	}
	drawing, ok := st.lottery.Draw(from)
	if !ok {
		return d
	}
	d.Drawing = drawing
	d.take(asked)
	return d
}

func (d *Decision) fileOnly() {
	d.FileOnly, d.Swappiness = true, memcg.SwappinessOf(0)
}

// held returns the nodes on which something of the cgroup lies, or may lie.
func (st *State) held() (m memcg.NodeMask) {
	for i := range st.nodes {
		if size, ok := st.nodes[i].size.Get(); !ok || size > 0 {
			m.Add(st.nodes[i].id)
		}
	}
	return m
}

// mostOf returns the most bytes that reclaim could take on a node: its file
// lists without what is known to be dirty, and inactive anon where anon counts.
func mostOf(n *memcg.NodeStats, anon bool) uint64 {
	most, _ := n.Get(memcg.NodeInactiveFile).Get()
	active, _ := n.Get(memcg.NodeActiveFile).Get()
	most = addSaturated(most, active)
	for _, k := range [...]memcg.NodeStat{memcg.NodeFileDirty, memcg.NodeFileWriteback} {
		busy, _ := n.Get(k).Get()
		most -= min(busy, most)
	}
	if anon {
		in, _ := n.Get(memcg.NodeInactiveAnon).Get()
		most = addSaturated(most, in)
	}
	return most
}
