package workingset

import (
	"github.com/memagent/memagent/memcg"
)

// view is one sample as every rule sees it: read, subtracted, and with its
// bounds.
type view struct {
	sample  *memcg.Sample
	policy  *Policy
	in      *Input
	page    float64 // bytes
	current float64 // bytes
	keep    float64 // the floor, bytes
	floor   floor
	lists   lists
	d       deltas
	swap    bool // some anon may still be swapped out
	class   memcg.SwapClass
	hold    Hold // by the verdict; none where holds is false
	holds   bool
}

// look reads a sample and remembers it. It returns the rule that ends the
// decision early, "" if there is none: a delta that does not exist is never
// taken for 0, and the sample is a beginning instead.
func (st *State) look(v *view, s *Signals) (rule string) {
	based := st.based
	st.based = false
	if rule := v.read(); rule != "" {
		return rule
	}
	s.Floor = FigureOf(v.keep)
	s.Reclaimable = FigureOf(max(0, v.current-v.keep))
	s.SwapRoom = FigureOf(float64(v.floor.room))

	now := countersOf(v.sample)
	old := st.base
	if !now.complete() {
		return "missing-counters"
	}
	st.base, st.based = now, true
	switch {
	case !based:
		st.start(&now, v)
		return "first-sample"
	case v.in.Elapsed <= 0:
		return "no-time"
	}
	var ok bool
	if v.d, ok = now.since(&old, v.in.Own, v.in.ClassicLRU, v.page); !ok {
		st.forget(&now, v)
		return "counter-reset"
	}
	v.d.seconds = v.in.Elapsed.Seconds()
	return ""
}

// read fills the view from the sample alone.
func (v *view) read() (rule string) {
	h := v.in.Host
	switch {
	case v.sample == nil:
		return "missing-sample"
	case h == nil || h.PageSize == 0:
		return "missing-host"
	case !v.policy.Swappiness.valid():
		return "bad-policy"
	case !v.sample.Stat.Valid():
		return "invalid-counters"
	}
	if total, ok := h.MemTotal.Get(); ok && total == 0 {
		return "invalid-host"
	}
	v.page, v.class = float64(h.PageSize), h.Swap
	f, why, ok := floorOf(v.sample, h, v.policy)
	switch {
	case !ok && why == memcg.Invalid:
		return "invalid-counters"
	case !ok:
		return "missing-counters"
	}
	current, _ := v.sample.Current.Get()
	v.floor, v.current, v.keep = f, float64(current), float64(f.bytes)
	if v.lists, ok = listsOf(&v.sample.Stat); !ok {
		return "missing-counters"
	}
	// Under a guard of our own the cgroup's room is 0 by our doing; whether
	// anon could be traded is then the host's to say.
	v.swap = f.room > 0 || v.in.GuardHeld && f.hostRoom > 0
	return ""
}

// complete reports whether every counter that a decision needs was printed.
// Kernels before 5.9 do not tell anon refaults from file (case c01): what is
// swapped there comes back unseen, so nothing is decided.
func (c *counters) complete() bool {
	return c.steal.Known() && c.refault[anon].Known() && c.refault[file].Known() &&
		(c.swapOut.Known() || c.swapUsed.Known() || c.swapUsed.State() == memcg.Unsupported)
}

// start gives the non-resident sets their start, once.
func (st *State) start(now *counters, v *view) {
	if st.begun {
		return
	}
	st.begun = true
	zero := newborn(now)
	life, ok := now.since(&zero, Own{}, false, v.page)
	if !ok {
		return
	}
	resident := v.lists.total() / v.page
	for t := range types {
		st.sides[t].begin(life.evict[t], life.refault[t], resident)
	}
	st.boundAnon(v)
}

// forget drops what was derived from counters that have been reset. Holds and
// cool-downs stay: they err on the side of leaving alone.
func (st *State) forget(now *counters, v *view) {
	st.flows, st.sides, st.begun = flows{}, [types]memory{}, false
	st.start(now, v)
}

// newborn is what the counters of now read when the cgroup was created.
func newborn(now *counters) (c counters) {
	zero := func(f memcg.Field) memcg.Field {
		if f.Known() {
			return memcg.Value(0)
		}
		return f
	}
	c.steal, c.current, c.swapUsed, c.swapOut = zero(now.steal), zero(now.current), zero(now.swapUsed), zero(now.swapOut)
	c.demoted = zero(now.demoted)
	for t := range types {
		c.refault[t], c.activate[t] = zero(now.refault[t]), zero(now.activate[t])
	}
	return c
}

// boundAnon holds the anon that is out to what swap says is in it.
func (st *State) boundAnon(v *view) {
	if used, ok := v.sample.SwapCurrent.Get(); ok {
		st.sides[anon].out = min(st.sides[anon].out, float64(used)/v.page)
		st.sides[anon].gone = min(st.sides[anon].gone, float64(used)/v.page)
	}
}

// learn carries the state over one sample's deltas.
func (st *State) learn(v *view) {
	d := &v.d
	st.measurePrices(d, v.class)
	costs := st.costs(d, v.class)
	for t := range types {
		st.sides[t].turned = st.sides[t].turns(d.refault[t], st.flows.evict[t])
	}
	st.flows.add(d, costs, v.page)
	most := outCap * v.lists.total() / v.page
	for t := range types {
		st.sides[t].advance(d, t, st.flows.returning(t), most)
	}
	st.countCostly(d.seconds, costs)
	st.squeeze.note(d.seconds, d.some.or(0), costs[anon]+costs[file])
	st.boundAnon(v)
	st.squeeze.wait(v.in.Elapsed)
	st.episode.pass(v)
}

// fill computes the signals from what is remembered and this sample.
func (st *State) fill(s *Signals, v *view) {
	d, f := &v.d, &st.flows
	s.Elapsed = FigureOf(d.seconds)
	perSecond := func(x float64) Figure { return FigureOf(x / d.seconds) }
	if us, ok := d.some.Get(); ok {
		s.Pressure = perSecond(us / 1e6)
	}
	if us, ok := d.full.Get(); ok {
		s.PressureFull = perSecond(us / 1e6)
	}
	costs := st.costs(d, v.class)
	s.Cost = perSecond((costs[anon] + costs[file]) / 1e6)
	s.CostSmooth = FigureOf(f.rate(f.cost[anon]+f.cost[file]).or(0) / 1e6)
	s.Clock = f.rate(f.clock)
	if n, ok := d.kernel.Get(); ok {
		s.KernelEvicts = perSecond(n)
		if scanned, ok := d.kernelScan.Get(); ok && scanned > 0 {
			s.Efficiency = FigureOf(min(1, n/scanned))
		}
	}
	s.KernelEvictsAnon = f.rate(f.kernelAnon)
	s.AllocRate = f.rate(f.alloc)
	s.FillRate = perSecond(d.current + d.stolen*v.page)
	s.AnonGrowth = f.rate(f.anonGrowth)

	st.fillSide(&s.Anon, anon, &v.lists, v.swap, v.page)
	st.fillSide(&s.File, file, &v.lists, v.swap, v.page)
	s.Anon.Price = FigureOf(st.sides[anon].price(anon, v.class))
	s.File.Price = FigureOf(st.sides[file].price(file, v.class))
	short, missed := 0.0, 0.0
	for t := range types {
		short += st.sides[t].out * f.returning(t) * v.page
		missed += st.sides[t].missed(f, t) * v.page
	}
	s.Short, s.Missed = FigureOf(short), FigureOf(missed)
	s.RefaultRate = perSecond(d.refault[anon] + d.refault[file])
	s.HighRises, s.MaxRises = d.highRises, d.maxRises
	if limit, ok := v.sample.High.Min(v.sample.Max).Bytes(); ok {
		s.Limit = FigureOf(float64(limit))
		near := float64(limit)*(1-atLimit) - v.policy.Headroom.want(float64(limit), 0)
		s.AtLimit = v.current >= near || d.highRises || d.maxRises
	}
	s.Swappiness = FigureOf(v.policy.Swappiness.auto(f.rate(f.cost[anon]).or(0), f.rate(f.cost[file]).or(0)))
}
