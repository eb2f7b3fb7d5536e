package telemetry

import (
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

// DrawWeights is the most weights that a Draw lists: machines have a thousand
// nodes at most and a handful mostly, and the ticket and the sum check a draw
// without the rest.
const DrawWeights = 8

// Draw is one draw of a lottery with what is needed to check it: by whose weight
// a request is for memory on one node alone.
type Draw struct {
	Node memcg.NodeID
	// Short tells that the lottery was among the cgroups that could give on Node,
	// which is short; else it was among the nodes that the cgroup could give on.
	Short         bool
	Weight, Total uint64 // pages, discounted: of what was drawn, and of all
	// Ticket is the number drawn, of 0..Tickets-1.
	Ticket, Tickets uint64
	Entries         int // how many had a weight
	// Weights are the first DrawWeights of the nodes, in ascending id; none where
	// Short.
	Weights []NodeWeight
}

// NodeWeight is what a node could give in a lottery, in pages, discounted by
// what taking it has cost.
type NodeWeight struct {
	Node   memcg.NodeID
	Weight uint64
}

// Mems is what was planned for the nodes that a cgroup may use (cpuset.mems).
type Mems struct {
	Rule  string // the rule that decided, in kebab-case; "" where the policy keeps the file
	Want  string // the nodes to be used, as the kernel lists them; "" where nothing is to change
	Moves uint64 // bytes that change would move, at most
	Held  string // why it is not made now, "" if it is
	Stays uint64 // bytes of anon that the change before has left where they were, although it was to move them
	Moved uint64 // bytes of anon and file that have gone off the nodes that the change before has left
	Widen string // nodes with room that the set as it was found keeps the cgroup from; "" for none
}

// describeDraw says where the memory is to come from.
func (r *Record) describeDraw(b *strings.Builder) {
	d := r.Draw
	if d == nil || r.Want == 0 {
		return
	}
	among := "nodes"
	if d.Short {
		among = "cgroups"
	}
	fmt.Fprintf(b, " from node %d alone (weight %d of %d among %d %s)", d.Node, d.Weight, d.Total, d.Entries, among)
}

// describeMems says what becomes of the nodes that the cgroup may use.
func (r *Record) describeMems(b *strings.Builder) {
	m := &r.Mems
	switch {
	case m.Want != "" && m.Held == "":
		fmt.Fprintf(b, "; use nodes %s from now on (%s), which moves up to %s", m.Want, m.Rule, Bytes(m.Moves))
	case m.Want != "":
		fmt.Fprintf(b, "; would use nodes %s (%s); held back: %s", m.Want, m.Rule, m.Held)
	case m.Stays > 0:
		fmt.Fprintf(b, "; %s have not moved off the nodes it has left", Bytes(m.Stays))
	case m.Moved > 0:
		fmt.Fprintf(b, "; %s are off the nodes it has left", Bytes(m.Moved))
	case m.Widen != "":
		fmt.Fprintf(b, "; its nodes are short, and cpuset.mems keeps it from nodes %s, which have room", m.Widen)
	}
}

// logNodes writes what was decided about nodes.
func (r *Record) logNodes(e *zerolog.Event) {
	if r.NodeRule != "" {
		e.Str("node_rule", r.NodeRule)
	}
	if d := r.Draw; d != nil {
		weights := zerolog.Arr()
		for _, w := range d.Weights {
			weights.Dict(zerolog.Dict().Int("node", int(w.Node)).Uint64("weight", w.Weight))
		}
		e.Dict("draw", zerolog.Dict().Int("node", int(d.Node)).Bool("short", d.Short).Uint64("weight", d.Weight).Uint64("total", d.Total).
			Uint64("ticket", d.Ticket).Uint64("tickets", d.Tickets).Int("entries", d.Entries).Array("weights", weights))
	}
	if m := &r.Mems; m.Rule != "" {
		one := zerolog.Dict().Str("rule", m.Rule)
		if m.Want != "" {
			one.Str("want", m.Want).Uint64("moves", m.Moves)
		}
		if m.Held != "" {
			one.Str("held", m.Held)
		}
		if m.Stays > 0 {
			one.Uint64("stays", m.Stays)
		}
		if m.Moved > 0 {
			one.Uint64("moved", m.Moved)
		}
		if m.Widen != "" {
			one.Str("widen", m.Widen)
		}
		e.Dict("mems", one)
	}
}
