package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// clamp holds a wish back for reasons that the law does not know: the mode,
// rights, what the kernel takes, a request still in flight.
func (c *Core) clamp(host *memcg.HostSample, cg *cgroup, r *telemetry.Record) {
	if page := host.PageSize; page > 0 {
		r.Want -= r.Want % page
	}
	if r.Want == 0 {
		return
	}
	_, busy := c.inFlight[cg.id]
	switch {
	case cg.held != "": // in either mode, so that observing says what enforcing would leave alone
		r.Held = cg.held
	case r.Mode == telemetry.Observe:
		r.Held = telemetry.HeldByMode
	case r.Held != "":
	case busy:
		r.Held = "the request before is still in flight"
	case c.setting[cg.id]:
		r.Held = "a write to one of its files is still in flight"
	default:
		c.fitSwappiness(cg, r)
	}
}

// fitSwappiness fits the wished swappiness to what the kernel takes. "0" is a
// promise never to swap: where it cannot be passed the request is held, never
// degraded to a bare number (case c30).
func (c *Core) fitSwappiness(cg *cgroup, r *telemetry.Record) {
	v, ok := r.Swappiness.Get()
	if !ok || c.swappiness != unsupported || r.Draw != nil { // a node's lists take any
		return
	}
	if v == 0 {
		r.Held = "this kernel's memory.reclaim takes no swappiness, and without it the request might swap"
		return
	}
	r.Swappiness = memcg.Swappiness{}
	c.notify.Warn("swappiness "+cg.id.Path, nil, "reclaiming with the host's own swappiness: this kernel's memory.reclaim takes none")
}

// handOut gives the free workers to the wishes of this tick, within the swap
// budgets. Whose turn is first moves on from tick to tick, so that with few
// workers or little budget nobody starves.
func (c *Core) handOut(now time.Time, host *memcg.HostSample, slots int) {
	n := len(c.records)
	if n == 0 {
		return
	}
	defer func() { c.handOutAging(slots) }()
	first := c.turn % n
	for i := range n {
		r := &c.records[(first+i)%n]
		if r.Err != nil || r.Want == 0 || r.Held != "" {
			continue
		}
		if slots <= 0 {
			r.Held = "all workers are busy"
			continue
		}
		cg, handed := c.cgroups[r.Cgroup], len(c.requests)
		r.Swappiness = c.side(host, cg, r)
		if c.ageFirst(now, host, cg, r) {
			slots -= len(c.requests) - handed
			continue
		}
		if v, _ := r.Swappiness.Get(); v > 0 {
			cg.agings = 0
		}
		reserve := c.fitSwapBudgets(now, host, cg, r)
		if r.Held != "" {
			continue
		}
		slots--
		c.turn = first + i + 1
		r.Acted, cg.wakeAt = true, time.Time{} // CameBack wakes
		c.inFlight[r.Cgroup] = reserve
		c.requests = append(c.requests, Request{Reclaim: memcg.Reclaim{
			Cgroup:     r.Cgroup,
			Bytes:      r.Want,
			Swappiness: r.Swappiness,
			Floor:      r.Floor,
			OlderThan:  r.OlderThan,
			Nodes:      on(r),
		}})
		c.gives(r)
	}
}

// fitSwapBudgets makes a request no larger than what the cgroup and the host
// may still write to swap, and reserves as much. A request that cannot swap
// is not bound and reserves nothing.
func (c *Core) fitSwapBudgets(now time.Time, host *memcg.HostSample, cg *cgroup, r *telemetry.Record) (reserved uint64) {
	if v, ok := r.Swappiness.Get(); ok && v == 0 || !swapWritable(host) || c.cannotSayZero(cg) && cg.guard.held {
		return 0
	}
	budgets := [...]struct {
		*budget
		name string
	}{{&cg.swap, "swap write budget of the cgroup"}, {&c.swap, "swap write budget of the host"}}
	for _, b := range budgets {
		left, limited := b.left(now)
		if !limited || left >= r.Want {
			continue
		}
		if left < host.PageSize || host.PageSize == 0 {
			r.Held = "the " + b.name + " is spent"
			return 0
		}
		r.Want, r.Clipped = left-left%host.PageSize, b.name
	}
	for _, b := range budgets {
		b.reserve(r.Want)
	}
	return r.Want
}

// swapWritable reports whether reclaim could write to swap at all. What is not
// known counts as yes, so that a budget binds.
func swapWritable(host *memcg.HostSample) bool {
	total, ok := host.SwapTotal.Get()
	return !ok || total > 0
}
