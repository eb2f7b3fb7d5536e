package controller

import (
	"math"
	"slices"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

const (
	// glanceLeast is the shortest pause between two glances at the
	// memory.current of a cgroup that is about to meet its limit: one pread that
	// flushes nothing, some microseconds, a hundred times a second at most.
	glanceLeast = 10 * time.Millisecond
	// wakeLeast is the shortest pause between two samples of a cgroup, and until
	// it is looked at again after a request had to wait: a sample costs a flush
	// of the kernel's counters.
	wakeLeast = 50 * time.Millisecond
	// earlySamples is how many samples an interval may be cut into by limits
	// that are met: enough to find a thrash within a tick.
	earlySamples = 4
	// guardLook is the shortest pause between two samples of a cgroup whose swap
	// is guarded while it meets its limit all the time: a stream needs the CPU
	// that they take, and anon that grows shows in half a second.
	guardLook = 500 * time.Millisecond
	// fillHalfLife is how fast a cgroup's filling is forgotten when it pauses:
	// allocation comes in bursts, and one quiet look must not put the next one
	// off to the tick. Two seconds outlast the pauses of a busy task and cost
	// at most a few glances after it has ended.
	fillHalfLife = 2 * time.Second
	// fillWindow is the least time that a rate is measured over.
	fillWindow = 100 * time.Millisecond
	// fillPart is the part of the headroom that may be filled before a request
	// asks for it: of the 0.1 s that it is to last, a quarter is more than two
	// glances apart, and the larger part is left for one that comes late.
	fillPart = 0.25
	// fillReach is how far ahead a request between two samples reaches: what is
	// charged while one write is under way.
	fillReach = 50 * time.Millisecond
)

// Look is how closely a cgroup is to be looked at between two ticks.
type Look uint8

// Looks.
const (
	NoLook Look = iota
	Glance      // at memory.current alone
	Sample      // at everything
)

// filling keeps how fast a cgroup is charged, by what is seen of memory.current
// and what requests have taken meanwhile.
type filling struct {
	rate   float64   // bytes a second, the highest of late, fading
	latest float64   // bytes, at the last look
	seen   time.Time // the last look

	from  float64 // bytes, at the look that the next rate is measured from
	taken float64 // bytes that requests took since
	at    time.Time
}

// faded is what a rate counts for after a time: see fillHalfLife.
func faded(rate float64, elapsed time.Duration) float64 {
	return rate * math.Exp2(-elapsed.Seconds()/fillHalfLife.Seconds())
}

// see books a look at memory.current. known is the rate of a whole sample in
// bytes a second, 0 where there is none. While a request is in flight, part of
// what it takes has shown and nothing is booked yet: such a look tells no rate,
// nor does one right after another, of which a single batch of readahead would
// make a flood.
func (f *filling) see(now time.Time, current, known float64, busy bool) {
	f.latest, f.seen = current, now
	elapsed := now.Sub(f.at)
	if !f.at.IsZero() && (busy || elapsed < fillWindow) {
		f.rate = max(f.rate, known)
		return
	}
	if !f.at.IsZero() {
		f.rate = faded(f.rate, elapsed)
		known = max(known, (current-f.from+f.taken)/elapsed.Seconds())
	}
	f.rate = max(f.rate, known)
	f.from, f.taken, f.at = current, 0, now
}

// nextLook returns when to look at a cgroup again before the next tick, zero if
// that will do: a cgroup that is kept below its limit must not fill the rest
// of the way unseen, or the kernel reclaims in its own way. It is left alone for
// half the time until headroom is missing, and until a part of that is filled: a
// request for so much costs hardly more than one for the first page of it, and the
// rest is there to reclaim in.
func (c *Core) nextLook(now time.Time, cg *cgroup) time.Time {
	if !c.keepsBelow(cg) || cg.hold.Above == 0 || cg.fill.rate <= 0 || cg.race().lost(now, &cg.hold) {
		return time.Time{}
	}
	if _, busy := c.inFlight[cg.id]; busy {
		return time.Time{} // CameBack wakes
	}
	headroom := float64(cg.hold.Limit - cg.hold.Above)
	left := (max(float64(cg.hold.Above)-cg.fill.latest, 0)/2 + headroom*fillPart) / cg.fill.rate
	if left >= c.cfg.Interval.Seconds() {
		return time.Time{}
	}
	return now.Add(max(time.Duration(left*float64(time.Second)), glanceLeast))
}

// sawAfter books what a request has left, once.
func (cg *cgroup) sawAfter(now time.Time, current uint64) {
	if cg.ran {
		cg.ran = false
		cg.race().ran(now, current, cg.ranFor, &cg.hold)
	}
}

// glance decides on memory.current alone, by the hold that the last sample has
// left. ok is false when nothing follows.
func (c *Core) glance(now time.Time, host *memcg.HostSample, ob Observation) (r telemetry.Record, ok bool) {
	cg, known := c.cgroups[ob.ID]
	current, read := ob.Current.Get()
	if !known || ob.Err != nil || !read {
		if known {
			cg.wakeAt = time.Time{} // the tick will find out
		}
		return r, false
	}
	_, busy := c.inFlight[cg.id]
	cg.fill.see(now, float64(current), 0, busy)
	cg.sawAfter(now, current)
	cg.wakeAt = c.nextLook(now, cg)
	if cg.hold.Above == 0 || current <= cg.hold.Above || cg.race().lost(now, &cg.hold) {
		return r, false
	}
	ahead := uint64(cg.fill.rate * fillReach.Seconds())
	r = telemetry.Record{
		Time: now, Tick: c.tick, Cgroup: cg.id, Policy: cg.policy.Name, Mode: c.modeOf(cg), Glance: true,
		Law: cg.law.Law.String(), Verdict: cg.verdict.String(), Rule: "headroom", Current: ob.Current, Done: cg.done,
		Want: min(current-cg.hold.Above+ahead, current-min(cg.hold.Floor, current)), Swappiness: cg.hold.Swappiness, Floor: cg.hold.Floor,
	}
	cg.who.tell(&r)
	c.placeGlance(now, cg, &r)
	c.clamp(host, cg, &r)
	return r, r.Want > 0
}

// dropHeld drops what glances wanted and could not have: they come so often that
// the log would tell nothing else. Such a cgroup is looked at again soon.
func (c *Core) dropHeld(now time.Time) {
	c.records = slices.DeleteFunc(c.records, func(r telemetry.Record) bool {
		if !r.Glance {
			return false
		}
		cg, ok := c.cgroups[r.Cgroup]
		switch {
		case ok && r.Acted:
			cg.done = nil // told in this record
		case ok && !cg.wakeAt.IsZero():
			cg.wakeAt = now.Add(wakeLeast)
		}
		return !r.Acted
	})
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

// Woken tells how a cgroup wants to be looked at now.
func (c *Core) Woken(id memcg.ID, now time.Time) Look {
	cg, ok := c.cgroups[id]
	switch {
	case !ok || cg.wakeAt.IsZero() || cg.wakeAt.After(now):
		return NoLook
	case cg.closely:
		return Sample
	}
	return Glance
}

// Unheard returns the cgroups whose memory.events the loop should listen to and
// was not asked to before: those that are kept below a limit, those whose swap may be
// guarded, and those that are lent to as their anon grows.
func (c *Core) Unheard() (list []memcg.ID) {
	for _, id := range c.watched {
		cg := c.cgroups[id]
		if !cg.listened && (c.keepsBelow(cg) || cg.law.SwapGuard && c.modeOf(cg) == telemetry.Enforce || c.lendsGrowth(cg)) {
			cg.listened = true
			list = append(list, id)
		}
	}
	return list
}

// Heard notes that a cgroup met a limit, so that it is looked at soon. Where the
// limit is left to the kernel, that it is met is no news. One whose swap is
// guarded is looked at in full, a few times an interval: its anon may be growing,
// and then the guard must go. So is one of which it is not known yet what comes
// back; once that is known, glances do until the tick.
func (c *Core) Heard(id memcg.ID, now time.Time) {
	c.tape.heard(id, now)
	cg, ok := c.cgroups[id]
	switch {
	case !ok:
	case cg.guard.held:
		at := cg.sampledAt.Add(max(c.cfg.Interval/earlySamples, guardLook))
		if at.Before(now) {
			at = now
		}
		c.wake(cg, at, true)
	case !c.keepsBelow(cg):
		c.metGrowing(cg, now)
	case cg.hold.Above > 0 && !cg.race().lost(now, &cg.hold):
		known := cg.verdict == workingset.AnonThrash || cg.verdict == workingset.Streaming
		c.wake(cg, now, !known && now.Sub(cg.sampledAt) >= c.cfg.Interval/earlySamples)
	}
}

// wake has a cgroup looked at as soon as may be.
func (c *Core) wake(cg *cgroup, at time.Time, closely bool) {
	least := cg.fill.seen.Add(glanceLeast)
	if closely {
		least = cg.sampledAt.Add(wakeLeast)
	}
	if at.Before(least) {
		at = least
	}
	cg.closely = cg.closely || closely
	if cg.wakeAt.IsZero() || at.Before(cg.wakeAt) {
		cg.wakeAt = at
	}
}

// CameBack notes that a result has arrived and waits to be booked, so that its
// cgroup is looked at soon where more is to follow: a request that waited for
// aging, or the next one of a cgroup that fills up while it is kept below its
// limit.
func (c *Core) CameBack(r Result, now time.Time) {
	c.tape.cameBack(&r, now)
	id := r.Reclaim.Cgroup
	if r.Setting.Knob != "" {
		id = r.Setting.Cgroup
	}
	cg, ok := c.cgroups[id]
	switch {
	case !ok:
	case cg.loan.back != keeps:
		c.nextStep(cg, now)
	case r.Setting.Knob != "":
	case r.Age && cg.agings > 0:
		c.wake(cg, now, true)
	case c.keepsBelow(cg) && cg.hold.Above > 0 && cg.fill.rate > 0:
		cg.ran, cg.ranFor = true, r.Outcome.Took
		c.wake(cg, now, false)
	}
}

// keepsBelow reports whether a cgroup is kept below its limit by requests.
func (c *Core) keepsBelow(cg *cgroup) bool {
	return cg.law.Headroom.On && c.modeOf(cg) == telemetry.Enforce && cg.held == ""
}
