package numapolicy

import "github.com/memagent/memagent/memcg"

// Offer is what one cgroup could give on one short node.
type Offer struct {
	Cgroup memcg.ID
	// Weight is the cgroup's weight in the lottery among those with memory on
	// the node, in pages; 0 where it gives nothing.
	Weight uint64
	// Most is the most bytes it could give there; an upper bound.
	Most uint64
	// Swappiness is what the request must pass: 0 unless anon may be taken.
	Swappiness memcg.Swappiness
	// Widen are nodes with room that the cgroup's cpuset.mems keeps it from
	// using. A suggestion to the operator and nothing the agent does by itself:
	// a wider set would spare the short node without any reclaim (case c57).
	Widen memcg.NodeMask
	// Rule is the kebab-case name of the rule that decided.
	Rule string
}

// Offer returns what the cgroup could give on a short node. The state must have
// seen the same sample in Decide. Anon is offered only where every node that the
// cgroup may use is short and without room, and the policy allows swap: as long
// as one has room, swapping buys nothing that steering would not.
func (st *State) Offer(id memcg.ID, node memcg.NodeID, in Input, p Policy) Offer {
	o := Offer{Cgroup: id, Swappiness: memcg.SwappinessOf(0)}
	if in.Sample == nil || in.Host == nil || in.Nodes == nil || in.Sample.NodesState != memcg.Present {
		o.Rule = "no-node-figures"
		return o
	}
	o.Widen = in.Nodes.room.Without(in.Nodes.short).And(in.Nodes.fast(p.Named)).Without(mayUse(&in))
	switch {
	case !p.Lottery:
		o.Rule = "lottery-off"
		return o
	case !in.Nodes.short.Has(node):
		o.Rule = "not-short"
		return o
	case !in.Nodes.fast(p.Named).Has(node):
		o.Rule = WhySlow
		return o
	}
	anon := p.SwapWhenShort && in.Nodes.noRoom(mayUse(&in))
	if anon {
		o.Swappiness, o.Rule = in.Swappiness, "short-everywhere"
	} else {
		in.Swappiness, o.Rule = o.Swappiness, "file-only"
	}
	page := float64(max(in.Host.PageSize, 1))
	sc := st.scales(&in, page)
	for i := range st.nodes {
		n, ok := in.Sample.Node(node)
		if st.nodes[i].id != node || !ok {
			continue
		}
		s := sc.weigh(n, &st.nodes[i], !anon)
		if s.Why != "" {
			o.Rule = s.Why
			return o
		}
		o.Weight, o.Most = s.Weight, mostOf(n, anon && sc.anon)
		return o
	}
	o.Rule = WhyEmpty
	return o
}

// Grant is which cgroup gives on a short node, and how much.
type Grant struct {
	Offer
	Bytes   uint64       // to ask for: what the node lacks, at most Offer.Most
	Drawing Drawing[int] // the draw; its items are places in the list of offers
}

// Relief is the lottery among cgroups with memory on a short node. The zero
// Relief is ready; one serves all nodes of a host, one after the other.
type Relief struct {
	entries []Entry[int]
	lottery Lottery[int]
}

// Draw picks one of the offers, with a chance in proportion to its weight, to
// give what the node lacks (Nodes.Lacks). ok is false where nobody can give. It
// allocates only where there are more offers than ever before.
func (r *Relief) Draw(offers []Offer, lacks uint64, from Source) (g Grant, ok bool) {
	if lacks == 0 {
		return g, false
	}
	r.entries = r.entries[:0]
	for i := range offers {
		r.entries = append(r.entries, Entry[int]{Item: i, Weight: offers[i].Weight})
	}
	r.lottery.Build(r.entries)
	d, ok := r.lottery.Draw(from)
	if !ok {
		return g, false
	}
	g = Grant{Offer: offers[d.Item], Drawing: d}
	g.Bytes = min(lacks, g.Most)
	return g, g.Bytes > 0
}
