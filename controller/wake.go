package controller

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// wakeLeast is the shortest pause between two looks at a cgroup that fills up:
// a sample costs a flush of the kernel's counters, and 20 of them a second for
// the few cgroups that are about to meet their limit is what that is worth.
const wakeLeast = 50 * time.Millisecond

// fillHalfLife is how fast a cgroup's filling is forgotten when it pauses:
// allocation comes in bursts, and one quiet look must not put the next one off
// to the tick. Two seconds outlast the pauses of a busy task and cost at most
// a few looks after it has ended.
const fillHalfLife = 2 * time.Second

// nextLook returns when to look at a cgroup again before the next tick, zero if
// that will do: a cgroup that is kept below its limit must not fill the rest
// of the way unseen, or the kernel reclaims in its own way. Half the time that
// this takes leaves the other half to reclaim in.
func (c *Core) nextLook(now time.Time, cg *cgroup, s *workingset.Signals, r *telemetry.Record) time.Time {
	if !c.keepsBelow(cg) {
		return time.Time{}
	}
	limit, ok := s.Limit.Get()
	current, known := r.Current.Get()
	if rate, ok := s.FillRate.Get(); ok {
		cg.fill = max(rate, cg.fill*math.Exp2(-r.Elapsed.Seconds()/fillHalfLife.Seconds()))
	}
	if !ok || !known || cg.fill <= 0 {
		return time.Time{}
	}
	left := max(limit-float64(current), 0) / cg.fill / 2
	if left >= c.cfg.Interval.Seconds() {
		return time.Time{}
	}
	return now.Add(max(time.Duration(left*float64(time.Second)), wakeLeast))
}

// NextWake returns the earliest time at which a cgroup wants to be looked at
// before the next tick; ok is false when none does.
func (c *Core) NextWake() (at time.Time, ok bool) {
	for _, cg := range c.cgroups {
		if !cg.wakeAt.IsZero() && (!ok || cg.wakeAt.Before(at)) {
			at, ok = cg.wakeAt, true
		}
	}
	return at, ok
}

// Woken reports whether a cgroup wants to be looked at now.
func (c *Core) Woken(id memcg.ID, now time.Time) bool {
	cg, ok := c.cgroups[id]
	return ok && !cg.wakeAt.IsZero() && !cg.wakeAt.After(now)
}

// Unheard returns the cgroups whose memory.events the loop should listen to and
// was not asked to before: those that are kept below a limit.
func (c *Core) Unheard() (list []memcg.ID) {
	for _, id := range c.watched {
		cg := c.cgroups[id]
		if !cg.listened && c.keepsBelow(cg) {
			cg.listened = true
			list = append(list, id)
		}
	}
	return list
}

// Heard notes that a cgroup met a limit, so that it is looked at soon.
func (c *Core) Heard(id memcg.ID, now time.Time) {
	cg, ok := c.cgroups[id]
	if !ok {
		return
	}
	at := now
	if least := cg.sampledAt.Add(wakeLeast); at.Before(least) {
		at = least
	}
	if cg.wakeAt.IsZero() || at.Before(cg.wakeAt) {
		cg.wakeAt = at
	}
}

// CameBack notes that a result has arrived and waits to be booked, so that its
// cgroup is looked at soon where more is to follow: a request that waited for
// aging, or the next one of a cgroup that fills up while it is kept below its
// limit.
func (c *Core) CameBack(r Result, now time.Time) {
	cg, ok := c.cgroups[r.Reclaim.Cgroup]
	if ok && (r.Age && cg.agings > 0 || c.keepsBelow(cg) && cg.fill > 0) {
		c.Heard(cg.id, now)
	}
}

// keepsBelow reports whether a cgroup is kept below its limit by requests.
func (c *Core) keepsBelow(cg *cgroup) bool {
	return cg.law.Headroom.On && c.modeOf(cg) == telemetry.Enforce && cg.held == ""
}
