package controller

import "time"

const (
	// lendUnused is how long part of a loan must have been left unused before
	// memory.high is lowered over it.
	lendUnused = time.Minute
	// lendIdle is how long a borrower must have been idle before it is asked
	// whether it still needs what it has: lendIdleShare of it is taken every
	// lendIdlePause, until something is missed. Each time that is so, the next
	// asking waits twice as long, up to lendIdleMost.
	lendIdle      = 2 * time.Minute
	lendIdleMost  = 2 * time.Hour
	lendIdleShare = 1.0 / 8
	lendIdlePause = 10 * time.Second
	// lendIdleCost is the share of time that refaults may cost meanwhile.
	lendIdleCost = 0.001

	// lendRescue is how much a limit of ours that throttles is raised, of
	// memory.current, and lendRescued how long taking back rests then.
	lendRescue  = 1.0 / 8
	lendRescued = 5 * time.Second
	// lendStuck is how many requests in a row may free next to nothing before
	// the rest of a loan counts as memory that does not come back for now.
	// It is then asked for every lendStuckRest only.
	lendStuck     = 3
	lendStuckRest = 10 * time.Second
)

// recall begins to take a loan back.
func (l *loan) recall(why giveBack) {
	if l.back == keeps {
		l.cost = recallCost{}
	}
	l.back, l.stuck, l.lastSeen, l.rest = why, 0, 0, time.Time{}
}

// takeBack is one step of taking a loan back.
func (l *loan) takeBack(v *lendSight) lendMove {
	rule := giveBackNames[l.back]
	switch {
	case l.lent() == 0:
		l.back = keeps
		return lendMove{}
	case v.current <= l.base:
		return lendMove{rule: rule, restore: true}
	case l.back == backIdle && v.cost >= lendIdleCost:
		l.back, l.idle = keeps, time.Time{}
		l.wait = min(max(2*lendIdle, 2*l.wait), lendIdleMost)
		return lendMove{held: "what was taken back is missed"}
	}
	m := lendMove{rule: rule}
	if high := l.lowered(v); high < l.high {
		m.high = high
		return m
	}
	if v.now.Before(l.rest) {
		return lendMove{}
	}
	m.reclaim = v.current - l.base + uint64(lendBelow*float64(l.base))
	if l.back == backIdle {
		m.reclaim = min(m.reclaim, max(uint64(lendIdleShare*float64(l.lent())), lendLeast))
		l.rest = v.now.Add(lendIdlePause)
	}
	m.reclaim = min(m.reclaim, v.current-min(v.current, v.floor))
	if l.lastSeen != 0 && v.current+lendLeast > l.lastSeen {
		l.stuck++
	} else {
		l.stuck = 0
	}
	if l.stuck > lendStuck {
		l.rest = v.now.Add(lendStuckRest)
	}
	l.lastSeen = v.current
	return m
}

// lowered is memory.high as low as it may go now: just above what is in use, and
// not below the base. It stays where it is when that is next to nothing lower.
func (l *loan) lowered(v *lendSight) uint64 {
	above := v.current + max(uint64(lendAbove*float64(v.current)), lendLeast)
	high := max(down(above, v.page), l.base)
	if high+lendLeast > l.high {
		return l.high
	}
	return high
}

// rescue raises a limit of ours that tasks are stopped at, before all else.
func (l *loan) rescue(v *lendSight) lendMove {
	if l.lent() == 0 {
		if m := l.grow(v); m.rule != "" {
			return m
		}
		return lendMove{held: "tasks are stopped at a memory.high that is not ours"}
	}
	l.rest = v.now.Add(lendRescued)
	high := min(max(l.high, v.current)+max(uint64(lendRescue*float64(v.current)), lendLeast), v.ceiling)
	if high = down(high, v.page); high <= l.high {
		return lendMove{held: "the ceiling is reached"}
	}
	return lendMove{rule: "rescue", high: high}
}

// trim takes back what a borrower has no use for.
func (l *loan) trim(v *lendSight) lendMove {
	if l.lent() == 0 {
		return lendMove{}
	}
	if !l.idle.IsZero() && v.now.Sub(l.idle) >= max(lendIdle, l.wait) {
		l.recall(backIdle)
		return l.takeBack(v)
	}
	if l.unused.IsZero() || v.now.Sub(l.unused) < lendUnused {
		return lendMove{}
	}
	peak := *v
	peak.current = l.peak
	if l.grown && v.keptBelow > 0 { // or headroom would take from it at once
		peak.current += v.high - min(v.keptBelow, v.high)
	}
	l.unused = time.Time{}
	switch high := l.lowered(&peak); {
	case high == l.base:
		return lendMove{rule: "trim", restore: true}
	case high < l.high:
		return lendMove{rule: "trim", high: high}
	}
	return lendMove{}
}
