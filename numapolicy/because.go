package numapolicy

import "github.com/memagent/memagent/memcg"

// maxTerms is the most figures a decision names.
const maxTerms = 8

// because lists the figures that decided, without a node's name in them: the
// shares have those. The list is kept in the state.
func (st *State) because(d *Decision, in *Input) []memcg.Term {
	terms := st.terms[:0]
	if out, ok := d.Outside.Get(); ok && (out > 0 || d.Reach == Nowhere) {
		terms = append(terms,
			term("outside of the allowed nodes", float64(out), "bytes"),
			term("least outside so far", float64(st.spill.base), "bytes"))
	}
	switch {
	case d.Reach == OneNode:
		return append(terms,
			term("drawn node", float64(d.Drawing.Item), "node"),
			term("its weight", float64(d.Drawing.Weight), "pages"),
			term("all weights", float64(d.Drawing.Total()), "pages"),
			term("ticket", float64(d.Drawing.Ticket), "ticket"),
			term("tickets", float64(d.Drawing.Tickets()), "tickets"))
	case len(d.Shares) == 0:
		return terms
	}
	return append(terms,
		term("nodes weighed", float64(len(d.Shares)), "nodes"),
		term("nodes that can give", float64(d.without("")), "nodes"),
		term("nodes without figures", float64(d.without(WhyNoFigures)), "nodes"),
		fieldTerm("free swap", in.Host.SwapFree))
}

func term(name string, v float64, unit string) memcg.Term {
	return memcg.Term{Name: name, Value: v, Unit: unit, Known: true}
}

// fieldTerm is a size in bytes, or the state of its absence in place of a unit.
func fieldTerm(name string, f memcg.Field) memcg.Term {
	if v, ok := f.Get(); ok {
		return term(name, float64(v), "bytes")
	}
	return memcg.Term{Name: name, Unit: f.State().String()}
}

// without counts the nodes that have no ticket for the given reason; "" counts
// those that have one.
func (d *Decision) without(why string) (n int) {
	for i := range d.Shares {
		if d.Shares[i].Why == why {
			n++
		}
	}
	return n
}
