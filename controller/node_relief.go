package controller

import (
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// offer is what a cgroup could give on a node that is short, and the record that
// would say so.
type offer struct {
	numapolicy.Offer
	node   memcg.NodeID
	record int    // place in Core.records
	floor  uint64 // bytes at which it stops
	spare  uint64 // bytes above that
}

// offer notes what a cgroup that wants nothing itself could give on each node
// that is short. The record is the next one of the step.
func (c *Core) offer(cg *cgroup, d *workingset.Decision, r *telemetry.Record, in numapolicy.Input, p numapolicy.Policy) {
	spare, ok := d.Signals.Reclaimable.Get()
	floor, _ := d.Signals.Floor.Get()
	switch d.Verdict {
	case workingset.Throttled, workingset.LimitBound, workingset.FileThrash:
		return // it lacks memory itself, and file most of all
	}
	if !in.ByNode || in.Random == nil || !ok || cg.held != "" || c.modeOf(cg) != c.mode || c.busy(cg.id) {
		return
	}
	for id := range c.nodes.levels.Short().All {
		o := cg.placing.state.Offer(cg.id, id, in, p)
		if v, set := o.Swappiness.Get(); !set || v > 0 {
			if room, known := d.Signals.SwapRoom.Get(); known {
				o.Most = min(o.Most, uint64(room))
			}
		}
		if !o.Widen.Empty() && r.Mems.Widen == "" {
			r.Mems.Widen = o.Widen.String()
		}
		if o.Weight > 0 {
			c.nodes.offers = append(c.nodes.offers, offer{Offer: o, node: id, record: len(c.records), floor: uint64(floor), spare: uint64(spare)})
		}
	}
}

// relieve has one cgroup give on each node that is short, drawn by weight from
// those that have offered, and turns its record into that wish. While a request
// for the node is under way no other is made.
func (c *Core) relieve(host *memcg.HostSample) {
	if len(c.nodes.offers) == 0 {
		return
	}
	for id := range c.nodes.levels.Short().All {
		if c.isGiving(id) {
			continue
		}
		c.nodes.among, c.nodes.at = c.nodes.among[:0], c.nodes.at[:0]
		for i := range c.nodes.offers {
			if o := &c.nodes.offers[i]; o.node == id && c.records[o.record].Want == 0 {
				c.nodes.among, c.nodes.at = append(c.nodes.among, o.Offer), append(c.nodes.at, i)
			}
		}
		grant, ok := c.nodes.relief.Draw(c.nodes.among, c.nodes.levels.Lacks(id), c.nodes.from)
		if !ok {
			continue
		}
		o := &c.nodes.offers[c.nodes.at[grant.Drawing.Item]]
		cg, r := c.cgroups[grant.Cgroup], &c.records[o.record]
		cg.placing.draw = telemetry.Draw{
			Node: id, Short: true, Weight: grant.Weight, Total: grant.Drawing.Total(),
			Ticket: grant.Drawing.Ticket, Tickets: grant.Drawing.Tickets(), Entries: len(grant.Drawing.Entries()),
		}
		r.Draw, r.NodeRule = &cg.placing.draw, grant.Rule
		r.Rule, r.Want, r.Swappiness, r.OlderThan = "node-short", min(grant.Bytes, o.spare), grant.Swappiness, 0
		r.Floor = o.floor
		r.Clipped, r.Held = "", ""
		r.Because = append(r.Because[:len(r.Because):len(r.Because)],
			memcg.Term{Name: "the node lacks", Value: float64(c.nodes.levels.Lacks(id)), Unit: "bytes", Known: true},
			memcg.Term{Name: "it could give there", Value: float64(grant.Most), Unit: "bytes", Known: true})
		c.clamp(host, cg, r)
	}
}

// isGiving reports whether a request for a short node's sake is under way there.
func (c *Core) isGiving(node memcg.NodeID) bool {
	for id, n := range c.nodes.giving {
		if n == node {
			if _, busy := c.inFlight[id]; busy {
				return true
			}
			delete(c.nodes.giving, id)
		}
	}
	return false
}

// gives notes that a request handed out is for a short node's sake.
func (c *Core) gives(r *telemetry.Record) {
	if r.Draw == nil || !r.Draw.Short {
		return
	}
	if c.nodes.giving == nil {
		c.nodes.giving = make(map[memcg.ID]memcg.NodeID)
	}
	c.nodes.giving[r.Cgroup] = r.Draw.Node
}
