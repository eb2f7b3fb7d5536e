package controller

import (
	"errors"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// byNodeRest is how long requests name no node after the host could not keep to
// one: what is against it can go away (lru_gen switched on, another user of
// DAMON gone), and asking costs one request that takes nothing.
const byNodeRest = 10 * time.Minute

// nodes is what the core keeps for the node law over all cgroups.
type nodes struct {
	levels numapolicy.Nodes
	seenAt time.Time
	from   numapolicy.Source // nil: nothing is ever drawn
	refuse time.Time         // until then no request names a node

	relief numapolicy.Relief
	offers []offer            // of this step
	among  []numapolicy.Offer // reused: those for one node
	at     []int              // of each of among, the place in offers
	giving map[memcg.ID]memcg.NodeID
}

// placing is what the core keeps for the node law of one cgroup.
type placing struct {
	state numapolicy.State
	last  numapolicy.Decision // of the last sample; its slices are in state
	draw  telemetry.Draw      // of the last request; reused
	time  allowance

	plain, byNode price
	vain          vain
}

// DrawFrom has nodes drawn with numbers from a source. Without one no policy's
// lottery picks any node.
func (c *Core) DrawFrom(s numapolicy.Source) { c.nodes.from = s }

// SeeHost takes in a reading of the host, to be called once for each: by how long
// a node is short between two readings the node law goes. Step gets the same
// reading again, as often as there are steps before the next one.
func (c *Core) SeeHost(now time.Time, h *memcg.HostSample) {
	c.tape.sawHost(h, now)
	var elapsed time.Duration
	if !c.nodes.seenAt.IsZero() {
		elapsed = now.Sub(c.nodes.seenAt)
	}
	c.nodes.seenAt = now
	marks := numapolicy.Marks{Low: float64(c.cfg.Host.Nodes.Low), High: float64(c.cfg.Host.Nodes.High)}
	c.nodes.levels.Look(h, marks, elapsed)
}

// nodePolicy says what the operator configured in the terms of the node law.
func nodePolicy(p *config.Numa) numapolicy.Policy {
	return numapolicy.Policy{
		Lottery:       p.Reclaim == config.NumaReclaimLottery,
		SwapWhenShort: p.SwapWhenShort,
		Named:         memcg.NodesOf(p.Nodes...),
		DemoteOutside: p.Demote,
	}
}

// place has the node law say where the memory that a sample's record wants is to
// come from. It takes in every sample, also where nothing is wanted.
func (c *Core) place(now time.Time, host *memcg.HostSample, cg *cgroup, s *memcg.Sample, d *workingset.Decision, r *telemetry.Record) {
	p := nodePolicy(&cg.policy.Numa)
	if !p.Lottery {
		return
	}
	if cg.placing == nil {
		cg.placing = &placing{}
	}
	in := numapolicy.Input{
		Sample: s, Host: host, Nodes: &c.nodes.levels, Elapsed: r.Elapsed,
		Swappiness: r.Swappiness, AnonPrice: priceOf(&d.Signals.Anon), FilePrice: priceOf(&d.Signals.File),
		ByNode: !now.Before(c.nodes.refuse), Demotion: host.Demotes(), Random: c.nodes.from,
	}
	if r.Want == 0 {
		in.Swappiness = ownSwappiness(&cg.policy.Swappiness, d)
	}
	cg.placing.last = numapolicy.Decide(&cg.placing.state, in, p)
	c.takeFrom(now, cg, r, &cg.placing.last)
	if r.Want == 0 && cg.placing.time.left(now) {
		c.offer(cg, d, r, in, p)
	}
}

// placeGlance is place between two samples: by the weights of the last one, and
// with a draw of its own.
func (c *Core) placeGlance(now time.Time, cg *cgroup, r *telemetry.Record) {
	if cg.placing == nil {
		return
	}
	d := cg.placing.state.Redraw(cg.placing.last, r.Swappiness, c.nodes.from)
	c.takeFrom(now, cg, r, &d)
}

// takeFrom makes a wish one for the node that was drawn, if one was.
func (c *Core) takeFrom(now time.Time, cg *cgroup, r *telemetry.Record, d *numapolicy.Decision) {
	r.NodeRule = d.Rule
	if r.Want == 0 {
		return
	}
	if !now.Before(c.nodes.refuse) {
		instead := cg.placing.state.Instead(*d, r.Swappiness, c.nodes.from)
		d, r.NodeRule = &instead, instead.Rule
	}
	if d.Reach == numapolicy.Nowhere {
		r.Held = whyNowhere[d.Rule]
		return
	}
	if d.Reach == numapolicy.OneNode && !d.Demoted && (!cg.placing.time.left(now) || cg.placing.dear(now)) {
		takeFromAll(r, d)
		return
	}
	if d.Reach == numapolicy.OneNode {
		r.Draw = &cg.placing.draw
		show(r.Draw, d)
		if d.Most < r.Want {
			r.Want, r.Clipped = d.Most, "node"
		}
	}
	if d.FileOnly {
		if v, ok := r.Swappiness.Get(); ok && v >= mostlyAnon {
			r.Held = whyNowhere["short-gives-no-anon"]
			return
		}
		r.Swappiness = memcg.SwappinessOf(0)
	}
}

// whyNowhere says why a request is not made, by the rule that decided.
var whyNowhere = map[string]string{
	"short-gives-no-anon": "it would swap on a node that is short while another has room",
	"demotes-outside":     "the kernel moves what is reclaimed to nodes outside of cpuset.mems",
}

// show writes a draw among nodes as a record has it.
func show(t *telemetry.Draw, d *numapolicy.Decision) {
	entries := d.Drawing.Entries()
	*t = telemetry.Draw{
		Node: d.Drawing.Item, Weight: d.Drawing.Weight, Total: d.Drawing.Total(),
		Ticket: d.Drawing.Ticket, Tickets: d.Drawing.Tickets(), Entries: len(entries),
		Weights: t.Weights[:0],
	}
	for _, e := range entries[:min(len(entries), telemetry.DrawWeights)] {
		t.Weights = append(t.Weights, telemetry.NodeWeight{Node: e.Item, Weight: e.Weight})
	}
}

// on returns the nodes that a wish is for, none where it is for all.
func on(r *telemetry.Record) memcg.NodeMask {
	if r.Draw == nil {
		return memcg.NodeMask{}
	}
	return memcg.NodesOf(r.Draw.Node)
}

// priceOf is what one refault of a side costs, in microseconds, 0 where that is
// not known: then it weighs nothing, on any node.
func priceOf(s *workingset.Side) float64 {
	v, _ := s.Price.Get()
	return v
}

// ownSwappiness is what a policy would have a request pass now.
func ownSwappiness(p *config.Swappiness, d *workingset.Decision) memcg.Swappiness {
	if s, ok := p.Request(); ok {
		return s
	}
	if v, ok := d.Signals.Swappiness.Get(); ok {
		return memcg.SwappinessOf(min(max(int(v), p.Min), p.Max))
	}
	return memcg.SwappinessOf(p.Base)
}

// refusedNodes books a request for a node that the host could not carry out, and
// reports whether the outcome was one: requests then take from every node, and
// nothing is done for a node that is short.
func (c *Core) refusedNodes(now time.Time, o *memcg.Outcome) bool {
	cg, ok := c.cgroups[o.Request.Cgroup]
	_, forShort := c.nodes.giving[o.Request.Cgroup]
	delete(c.nodes.giving, o.Request.Cgroup)
	if ok && cg.placing != nil && (forShort || !cg.placing.state.Moved(o)) {
		cg.placing.paid(now, o, forShort)
	}
	if o.Request.Nodes.Empty() {
		return false
	}
	if ok && cg.placing != nil {
		cg.placing.time.spend(now, o.Took)
	}
	switch {
	case errors.Is(o.Err, memcg.ErrUnsupported), errors.Is(o.Err, memcg.ErrDenied):
		c.nodes.refuse = now.Add(byNodeRest)
		c.notify.Warn("nodes", o.Err, "memory cannot be taken from one node alone here: it is taken from every node in proportion, and nothing is done for nodes that are short")
		return true
	case o.Err == nil || errors.Is(o.Err, memcg.ErrPartial):
		c.notify.Clear("nodes", "memory can be taken from one node alone")
	}
	return false
}
