package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// considerLoan decides on a cgroup's loan and, where one is taken back, puts its
// reclaim in the place of what the law asked for.
func (c *Core) considerLoan(now time.Time, host *memcg.HostSample, cg *cgroup, s *memcg.Sample, d *workingset.Decision, r *telemetry.Record) {
	if !cg.policy.High.Lend {
		return
	}
	cg.anon.see(now, s)
	v, ok := c.lendSight(now, host, cg, s, d, r)
	if !ok {
		r.Lending.On, r.Lending.Held = true, "memory.high or memory.current could not be read"
		return
	}
	v.growing(&cg.policy.High, &cg.anon, s, &d.Signals)
	m := cg.loan.decide(&v)
	cg.loanCost = v.cost
	c.borrows(cg, &v, s)
	if m.high > 0 || m.restore {
		m.held = c.setHigh(now, cg, &m)
	}
	if m.reclaim > 0 {
		r.Rule, r.Want, r.Clipped, r.Held, r.OlderThan = m.rule, m.reclaim, "", "", 0
		r.Swappiness = c.recallSwappiness(cg)
		r.Floor = max(d.Intent.Floor, cg.loan.base-uint64(lendBelow*float64(cg.loan.base)))
	} else if cg.loan.back != keeps {
		r.Want, r.Rule = 0, giveBackNames[cg.loan.back]
	}
	raises := m.high > v.high && m.held == ""
	if cg.loan.back != keeps || raises {
		cg.hold = workingset.Hold{} // what glances would keep to is void
	}
	moves, keepsBelow := d.Intent.Kind == workingset.KindMoveAnon, d.Intent.Kind == workingset.KindHeadroom
	if m.reclaim == 0 && r.Want > 0 && (raises && (moves || keepsBelow) || moves && c.fills(cg, &v)) {
		r.Held = "memory is lent instead"
	}
	cg.loan.met = v.highRises && !raises
	c.followGrowth(cg, &v, &m)
	c.confirmSoon(cg, &v, &m, raises)
	c.tellOwner(cg, &v, &m)
	r.Lending = cg.lending(&v, &m)
	r.Lent = memcg.Value(cg.loan.lent())
}

// fills reports whether a loan is there and not used up yet.
func (c *Core) fills(cg *cgroup, v *lendSight) bool {
	l := &cg.loan
	return l.back == keeps && l.lent() > 0 && float64(v.current) < lendAt*float64(l.high)
}

// lendSight collects what a loan is decided by; ok is false where a figure that
// it cannot do without is absent.
func (c *Core) lendSight(now time.Time, host *memcg.HostSample, cg *cgroup, s *memcg.Sample, d *workingset.Decision, r *telemetry.Record) (v lendSight, ok bool) {
	current, okC := s.Current.Get()
	if !okC || s.High.State() != memcg.Present || host.PageSize == 0 {
		return v, false
	}
	g := &d.Signals
	v = lendSight{
		now: now, seconds: r.Elapsed.Seconds(), interval: c.cfg.Interval, page: host.PageSize,
		current: current, high: orUnlimited(s.High), max: orUnlimited(s.Max),
		floor: d.Intent.Floor, ceiling: unlimited, keptBelow: d.Hold.Above,
		pending: c.setting[cg.id], verdict: d.Verdict, highRises: g.HighRises,
		idleVerdict: d.Verdict == workingset.Idle,
	}
	total, _ := host.MemTotal.Get()
	if most, set := cg.policy.High.Ceiling.Of(total); set {
		v.ceiling = most
	}
	v.missed, _ = g.Missed.Get()
	v.refaults, _ = g.RefaultRate.Get()
	v.came = v.refaults * v.seconds
	v.costNow, _ = g.Cost.Get()
	smooth, _ := g.CostSmooth.Get()
	v.cost = max(v.costNow, smooth)
	if cg.loan.back == backIdle {
		v.cost = v.costNow
	}
	evicts, _ := g.Anon.Evictions.Get()
	f, _ := g.File.Evictions.Get()
	a, _ := g.Anon.Refaults.Get()
	b, _ := g.File.Refaults.Get()
	if v.seconds < lendSpan && v.came < confirmLeast {
		v.refaults = a + b
	}
	// What comes back while next to nothing leaves is a loan being filled.
	v.comesBack = a+b > 0 && 2*(a+b) > evicts+f && 2*(evicts+f) > a+b
	nodes := memcg.NodeMask{}
	if s.MemsState == memcg.Present {
		nodes = s.MemsEffective
	}
	v.pool = c.till.pool(host, nodes)
	return v, true
}

func orUnlimited(l memcg.Limit) uint64 {
	if b, ok := l.Bytes(); ok {
		return min(b, unlimited)
	}
	return unlimited
}

// borrows keeps the list of borrowers, and what each has where.
func (c *Core) borrows(cg *cgroup, v *lendSight, s *memcg.Sample) {
	l := &cg.loan
	if l.lent() == 0 {
		cg.heldFile, cg.heldIn, cg.heldOn = 0, 0, cg.heldOn[:0]
		return
	}
	file, _ := s.Stat.Get(memcg.StatFile).Get()
	cg.heldIn = l.used(v.current)
	cg.heldFile = min(cg.heldIn, file)
	cg.heldOn = cg.heldOn[:0]
	for i := range s.Nodes {
		if on, ok := s.Nodes[i].Get(memcg.NodeFile).Get(); ok && on > 0 && file > 0 {
			share := float64(on) / float64(file)
			cg.heldOn = append(cg.heldOn, shortNode{s.Nodes[i].ID, uint64(share * float64(cg.heldFile))})
		}
	}
}

// setHigh hands out the writing of memory.high, and books what it promises at
// once: the next cgroup of this step finds the pool smaller.
func (c *Core) setHigh(now time.Time, cg *cgroup, m *lendMove) (held string) {
	value := ""
	if !m.restore {
		value = string(memcg.LimitOf(m.high).AppendKernel(nil))
	}
	_, reclaims := c.inFlight[cg.id]
	if raises := !m.restore && m.high > max(cg.loan.high, cg.loan.base); reclaims && !raises {
		return "the request before is still in flight"
	}
	if held = c.set(now, cg, memcg.KnobHigh, value, m.rule); held != "" {
		return held
	}
	if !m.restore {
		cg.loan.asked = m.high
		if was := max(cg.loan.high, cg.loan.base); m.high > was {
			c.till.lent += m.high - was
		}
	}
	return ""
}

// lentOut takes in what became of a write to memory.high.
func (c *Core) lentOut(cg *cgroup, d Result) {
	l := &cg.loan
	high := uint64(0)
	if d.Setting.Value != "" {
		high = l.asked
	}
	switch {
	case d.Setting.Value == "" && d.Err == nil, d.Setting.Value != "" && d.Set.Now == d.Setting.Value:
		l.wrote(high)
	case d.Err == nil:
		l.end() // somebody else's value stands
	}
	c.countBorrower(cg)
}

// countBorrower keeps the list of those who have a loan.
func (c *Core) countBorrower(cg *cgroup) {
	at := -1
	for i, b := range c.borrowers {
		if b == cg {
			at = i
		}
	}
	switch has := cg.loan.lent() > 0; {
	case has && at < 0:
		c.borrowers = append(c.borrowers, cg)
	case !has && at >= 0:
		c.borrowers = append(c.borrowers[:at], c.borrowers[at+1:]...)
	}
}

// recallSwappiness is that of taking a loan back: file first, as far as the
// policy lets it. Where that frees nothing, the loan was used for anon.
func (c *Core) recallSwappiness(cg *cgroup) memcg.Swappiness {
	p := cg.law.Swappiness
	stuck := cg.loan.stuck >= lendStuck
	switch {
	case c.cannotSayZero(cg) && (cg.guard.held || c.swapless):
		return memcg.Swappiness{}
	case p.Kind == workingset.Fixed:
		return memcg.SwappinessOf(p.Value)
	case p.Kind == workingset.Auto && stuck:
		return memcg.SwappinessOf(p.Max)
	case p.Kind == workingset.Auto:
		return memcg.SwappinessOf(p.Min)
	case stuck || c.swappiness == unsupported:
		return memcg.Swappiness{}
	}
	return memcg.SwappinessOf(0)
}

// tellOwner says once what only the operator can change.
func (c *Core) tellOwner(cg *cgroup, v *lendSight, m *lendMove) {
	switch {
	case m.held == heldByMax:
		c.notify.Warn("lend "+cg.id.Path, nil, "it reads again what it lost, at its memory.max of "+telemetry.Bytes(v.max)+", which is never changed here: only its operator can give it more")
	case v.verdict == workingset.Throttled && cg.loan.lent() == 0:
		c.notify.Warn("throttled "+cg.id.Path, nil, "its tasks are stopped at a memory.high of "+telemetry.Bytes(v.high)+" with "+telemetry.Bytes(v.current)+" in use, of which "+telemetry.Bytes(min(v.floor, v.current))+" cannot go: raise it")
	}
}

// lending is how the loan stands, for the record.
func (cg *cgroup) lending(v *lendSight, m *lendMove) telemetry.Lending {
	l := &cg.loan
	return telemetry.Lending{
		On: true, Base: l.base, Lent: l.lent(), Used: l.used(v.current), Rule: m.rule, High: m.high, Held: m.held, Pool: v.pool,
		Before: l.before, Now: v.refaults, Recalled: l.cost.bytes, RecalledToSwap: l.cost.swapped, RecallTook: l.cost.took,
	}
}

// recalled books what a request cost that took a loan back.
func (cg *cgroup) recalled(o *memcg.Outcome) {
	if cg.loan.back == keeps {
		return
	}
	taken, _ := o.Shrunk.Get()
	swapped, _ := o.SwapOut.Get()
	cost := &cg.loan.cost
	cost.bytes, cost.swapped, cost.took = cost.bytes+taken, cost.swapped+swapped, cost.took+o.Took
}

// nextStep has a borrower that gives back looked at again as soon as the step
// before is done: at ticks alone it would take minutes.
func (c *Core) nextStep(cg *cgroup, now time.Time) {
	if l := &cg.loan; l.back != keeps && l.stuck < lendStuck && l.lent() > 0 {
		c.wake(cg, now, true)
	}
}

// Surplus is what is above the base in every cgroup that has a loan: what is to
// be reclaimed before memory.high goes back, so that nobody meets it at speed.
func (c *Core) Surplus() (list []memcg.Reclaim) {
	for _, cg := range c.borrowers {
		if r, ok := c.surplusOf(cg); ok {
			list = append(list, r)
		}
	}
	return list
}

// surplusOf is that of one cgroup; ok is false where it has none.
func (c *Core) surplusOf(cg *cgroup) (r memcg.Reclaim, ok bool) {
	used := cg.loan.used(cg.current)
	if used == 0 {
		return r, false
	}
	below := uint64(lendBelow * float64(cg.loan.base))
	return memcg.Reclaim{Cgroup: cg.id, Bytes: used + below, Swappiness: c.recallSwappiness(cg), Floor: cg.loan.base - below}, true
}
