package controller

import (
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// Anon that grows into a limit is swapped out before anybody has missed it, and comes
// back once at the least. A policy may have memory lent for it all the same
// (high.anon_growth): as it grows, in steps that stay ahead of it, from the same pool
// and up to the same ceiling as what is lent for need.

const (
	// growthLooks is for how many intervals of growth memory is lent at a time, from
	// one interval before the limit: the next step is due an interval before the one
	// before is used up.
	growthLooks = 2
	// growthLeast and growthMost bound a step, as parts of memory.high. A growth that
	// meets its limit is no faster than reclaim there, so that its rate tells too
	// little; one that begins tells too much.
	growthLeast = 1.0 / 16
	growthMost  = 1.0 / 2
	// anonGoes is the swapping, in pages a second, above which anon counts as being
	// swapped out: the swap guard's too.
	anonGoes = 1
	// growthOver is the rate, in bytes a second, below which nothing grows any more.
	growthOver = 4096
)

// anonSize is how much anon a cgroup has, in memory or swapped out, and how fast that
// grows: the highest rate of late, fading as that of filling does, since a pause of a
// moment must not have it swapped out.
type anonSize struct {
	bytes memcg.Field // at the look that the next rate is measured from
	at    time.Time
	rate  float64 // bytes a second
}

// see takes in a sample. Pages in the swap cache are in both.
func (a *anonSize) see(now time.Time, s *memcg.Sample) {
	elapsed := now.Sub(a.at)
	if elapsed < fillWindow {
		return
	}
	size := s.Stat.Get(memcg.StatAnon)
	if swap, ok := s.SwapCurrent.Get(); ok && size.Known() {
		anon, _ := size.Get()
		both, _ := s.Stat.Get(memcg.StatSwapcached).Get()
		size = memcg.Value(anon + swap - min(both, anon+swap))
	}
	if !a.at.IsZero() {
		a.rate = faded(a.rate, elapsed)
	}
	if grown, ok := size.Since(a.bytes); ok {
		a.rate = max(a.rate, float64(grown)/elapsed.Seconds())
	}
	if a.bytes, a.at = size, now; a.rate < growthOver {
		a.rate = 0
	}
}

// growing completes a sight with how fast anon grows, where the policy lends for
// that and the limit costs it anon: anon is being swapped out, or hardly any file is
// left to go in its place.
func (v *lendSight) growing(p *config.High, size *anonSize, s *memcg.Sample, g *workingset.Signals) {
	if !p.AnonGrowth {
		return
	}
	goes, _ := g.Anon.Evictions.Get()
	file, known := s.Stat.Get(memcg.StatFile).Get()
	ahead := growthLooks * v.interval.Seconds()
	if goes > anonGoes || known && float64(file) <= max(size.rate*ahead, lendLeast) {
		v.growth = size.rate
	}
}

// grow lends what anon grows by, before it meets the limit.
func (l *loan) grow(v *lendSight) lendMove {
	line, gap := float64(v.high), 0.0
	if v.keptBelow > 0 && v.keptBelow < v.high {
		line, gap = float64(v.keptBelow), float64(v.high-v.keptBelow)
	}
	step := v.growth * v.interval.Seconds()
	at := float64(v.current)
	inHeadroom := l.grown && gap > 0 && at > line && v.growth > 0 // where the last of it ended
	if growthLooks*step < lendLeast && !inHeadroom || at+step < line {
		return lendMove{}
	}
	if v.max <= v.high {
		if at+step < float64(v.max) {
			return lendMove{}
		}
		return lendMove{held: heldByMax}
	}
	room, most := l.most(v)
	if most < lendLeast {
		if at < lendAt*line {
			return lendMove{} // it may stop before
		}
		return lendMove{held: heldBecause(room, v.pool)}
	}
	high := float64(v.high)
	grant := min(max(at+growthLooks*step+gap-high, growthLeast*high, lendLeast), growthMost*high)
	if l.lent() == 0 {
		l.before = v.refaults
	}
	l.grown, l.full = true, time.Time{}
	return lendMove{rule: "lend-growth", high: down(v.high+min(uint64(max(grant, lendLeast)), most), v.page)}
}

// nextGrowth returns when anon that grows will be half way to a memory.high; ok is
// false where that is not before the next tick.
func (v *lendSight) nextGrowth(high uint64) (at time.Time, ok bool) {
	half := float64(high-min(v.current, high)) / 2
	if v.growth <= 0 || half >= v.growth*v.interval.Seconds() {
		return at, false
	}
	wait := time.Duration(half / v.growth * float64(time.Second))
	return v.now.Add(max(wait, v.interval/earlySamples)), true
}

// followGrowth has a cgroup whose anon grows looked at in time for its next step,
// and takes nothing from it between two samples meanwhile: headroom would swap out
// what memory is lent for. That its limit is met is still heard of.
func (c *Core) followGrowth(cg *cgroup, v *lendSight, m *lendMove) {
	ahead := growthLooks * v.growth * v.interval.Seconds()
	if ahead < lendLeast || m.held != "" || cg.loan.back != keeps {
		return
	}
	cg.hold, cg.wakeAt = workingset.Hold{Above: unlimited}, time.Time{}
	if at, ok := v.nextGrowth(max(m.high, v.high)); ok {
		c.wake(cg, at, true)
	}
}

// lendsGrowth reports whether a cgroup may be lent to as its anon grows.
func (c *Core) lendsGrowth(cg *cgroup) bool {
	return cg.policy.High.AnonGrowth && c.modeOf(cg) == telemetry.Enforce && cg.held == ""
}

// metGrowing has a cgroup sampled soon that met its memory.high: its anon may have begun
// to grow since the last sample, or faster than that saw. It is no news of one that was
// meeting it then or gives a loan back, nor just before the tick.
func (c *Core) metGrowing(cg *cgroup, now time.Time) {
	part := c.cfg.Interval / earlySamples
	at := cg.sampledAt.Add(part)
	if at.Before(now) {
		at = now
	}
	news := !cg.loan.met && cg.loan.back == keeps
	if news && c.lendsGrowth(cg) && !at.After(c.nodes.seenAt.Add(c.cfg.Interval-part)) {
		c.wake(cg, at, true)
	}
}
