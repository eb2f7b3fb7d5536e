package sim

import (
	"math"
	"time"
)

// maxRetries is how often reclaim may free nothing before the kernel gives up
// (MAX_RECLAIM_RETRIES).
const maxRetries = 16

// charge makes room for one page of j below every memory.max on the way to the
// root, at its expense. It returns false when j was killed.
func (h *Host) charge(j *Job) bool {
	vain := 0
	for {
		over := j.group
		for over != nil && over.usage+1 <= limitPages(over.limits.Max) {
			over = over.parent
		}
		if over == nil {
			return true
		}
		over.note(eventMax)
		got := h.shrinkAll(over, batch, direct)
		h.paid(j, got)
		if got.reclaimed > 0 {
			continue
		}
		if vain++; vain <= maxRetries {
			continue
		}
		vain = 0
		if !h.kill(over, j) || j.ended {
			return false
		}
	}
}

// shrinkAll reclaims from a subtree on every node.
func (h *Host) shrinkAll(c *cgroup, goal uint64, by reclaimer) progress {
	return h.shrink(request{target: c, nodes: h.everyNode, goal: goal, swappiness: h.swappiness, by: by})
}

// paid charges a reclaim to the workload that had to do it.
func (h *Host) paid(j *Job, p progress) {
	d := h.toil(p)
	j.work += d
	h.stall(j, d)
}

// toil is how long a reclaim keeps the one busy who does it.
func (h *Host) toil(p progress) time.Duration {
	return time.Duration(p.scanned)*scanPrice + time.Duration(p.reclaimed)*stealPrice + time.Duration(p.written)*h.writePrice
}

// chargeBatch is how many pages are charged at a time, so how often a workload
// meets memory.high (MEMCG_CHARGE_BATCH).
const chargeBatch = 64

// overHigh is the brake: a workload that grows over a memory.high reclaims,
// and where that does not help, waits.
func (h *Host) overHigh(j *Job) {
	if j.group.overage() == 0 {
		return
	}
	if j.over++; j.over < chargeBatch {
		return
	}
	j.over = 0
	for vain := 0; ; {
		var freed uint64
		for c := j.group; c != nil; c = c.parent {
			if c.usage > limitPages(c.limits.High) {
				c.note(eventHigh)
				got := h.shrinkAll(c, chargeBatch, direct)
				h.paid(j, got)
				freed += got.reclaimed
			}
		}
		d := penalty(j.group.overage())
		if d == 0 {
			return
		}
		if freed > 0 {
			continue
		}
		if vain++; vain <= maxRetries {
			continue
		}
		h.stall(j, d)
		return
	}
}

// overage returns how far the worst of c and its ancestors is over its
// memory.high, as a part of it; 0 when none is.
func (c *cgroup) overage() float64 {
	worst := 0.0
	for ; c != nil; c = c.parent {
		if high := limitPages(c.limits.High); c.usage > high {
			worst = max(worst, float64(c.usage-high)/float64(max(high, 1)))
		}
	}
	return worst
}

// Bounds of the wait at memory.high (mem_cgroup_handle_over_high).
const (
	longestPenalty  = 2 * time.Second
	shortestPenalty = 10 * time.Millisecond
)

// penalty returns how long a batch of pages waits that is this far over
// memory.high: 64 r^2 seconds within the bounds.
func penalty(over float64) time.Duration {
	s := math.Min(64*over*over, longestPenalty.Seconds())
	d := time.Duration(s * float64(time.Second))
	if d <= shortestPenalty {
		return 0
	}
	return d
}

// kill is the end of the road: in the subtree of c, the job with the most
// memory is ended, asked for by j. It returns false where there was none.
func (h *Host) kill(c *cgroup, j *Job) bool {
	c.note(eventOOM)
	var victim *Job
	var most uint64
	for _, g := range c.subtree(nil) {
		for _, k := range g.jobs {
			if n := k.residentAnon(); victim == nil || n > most {
				victim, most = k, n
			}
		}
	}
	if victim == nil {
		return false
	}
	if most == 0 {
		victim = j // nothing to gain from anybody else
	}
	victim.group.note(eventOOMKill)
	victim.stats.Killed = true
	h.end(victim)
	return true
}
