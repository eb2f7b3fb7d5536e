package controller

import (
	"time"

	"github.com/memagent/memagent/workingset"
)

// Lending raises memory.high above what its operator has set, the base, while a
// cgroup reads again and again what it lost for want of it and the host has
// memory that nobody needs; and takes that back before anybody else does need
// it. This file decides for one cgroup, from values alone.
//
// How much is lent is what has left and comes back (workingset.Signals.Missed),
// with a little more, since a loop that lacks its last page thrashes as a whole.
// It is taken back in steps: memory.high goes to just above what is in use, so
// that nothing grows; what is above the base is reclaimed; memory.high follows.
// The workload never meets a limit at speed, and the write of a lower limit finds
// nothing to reclaim.

const (
	// lendMargin is what is lent beyond what is missed: an eighth, for what is
	// lost while the write is on its way, for page tables and slab that come
	// with pages, and because what is out is an estimate.
	lendMargin = 1.0 / 8
	// lendProbe is what is lent, of memory.current, where most of what is evicted
	// comes back and what is out is not known: an agent that has just started.
	// At a quarter a tick, eight ticks make six times as much.
	lendProbe = 1.0 / 4
	// lendCost is the share of time that refaults must cost for memory to be
	// lent: half of what is called thrash, since it costs nobody anything.
	lendCost = 0.005
	// lendAt is how near to memory.high a cgroup must be, as part of it: charges
	// come in batches and reclaim in chunks. The verdicts use 3 % too.
	lendAt = 0.97
	// lendLeast is the least that is lent or taken at once, 1 MiB: less is not
	// worth a write of the journal.
	lendLeast = 1 << 20
	// lendAbove is how far above memory.current a lowered memory.high stays, of
	// memory.current: so that the write finds nothing to reclaim.
	lendAbove = 1.0 / 64
	// lendBelow is how far below the base memory.current is taken before
	// memory.high goes back to it, of the base.
	lendBelow = 1.0 / 32

	// lendSettle is how long a cgroup that has used up all it can have is watched
	// before the loan is judged, and lendEffect the fall of its refaults that
	// must have come of it; with less it is taken back.
	lendSettle = 10 * time.Second
	lendEffect = 0.10
	// lendSpan is the least time, in seconds, of a sample whose refaults tell a
	// rate, be they ever so few; of a shorter one with less than confirmLeast the
	// smoothed rate is taken.
	lendSpan = 0.5
	// lendCool is how long nothing is lent after a loan without effect; it
	// doubles with each, up to lendCoolMost.
	lendCool     = time.Minute
	lendCoolMost = 30 * time.Minute
)

// giveBack is why a loan is being taken back.
type giveBack uint8

const (
	keeps      giveBack = iota
	backShort           // the host or a node is short
	backIdle            // the borrower does not use it
	backFutile          // it changed nothing
)

var giveBackNames = [...]string{"", "recall-short", "recall-idle", "recall-futile"}

// loan is what one cgroup has been lent. Its zero value is none.
//
// Invariants: high is 0 or above base; it is never set below base, nor below
// memory.current, nor above the ceiling.
type loan struct {
	base uint64 // the operator's memory.high, bytes; 0 where there is no limit
	high uint64 // ours, bytes; 0 while memory.high is the base
	// asked is the last value of ours that was asked for, in bytes.
	asked uint64

	before float64 // refaults a second when it was lent
	grown  bool    // some of it for anon that grew, which no fall of refaults can show
	full   time.Time
	spent  float64 // refaults since full
	judged bool

	unused time.Time // since when part of it has been left
	peak   uint64    // the highest memory.current since then
	idle   time.Time // since when the borrower has been idle
	wait   time.Duration

	back     giveBack
	rest     time.Time // no step of taking back before
	stuck    int
	lastSeen uint64 // memory.current at the last step
	cost     recallCost

	cool  time.Duration
	until time.Time // nothing is lent before

	confirm *confirming // nil until refaults were seen
	met     bool        // memory.high was met up to the last sample, which did not raise it
}

// recallCost is what taking back has cost so far.
type recallCost struct {
	bytes, swapped uint64
	took           time.Duration
}

// lendSight is what is known of a cgroup at a sample.
type lendSight struct {
	now                time.Time
	seconds            float64 // since the last sample
	current, high, max uint64  // bytes; unlimited where there is no limit
	floor              uint64  // bytes
	ceiling            uint64  // bytes, unlimited where none is set
	pool               uint64  // bytes that the host could lend it
	keptBelow          uint64  // where headroom begins, 0 where none is kept
	page               uint64
	pending            bool // a write to memory.high has not come back

	verdict     workingset.Verdict
	highRises   bool
	missed      float64 // bytes
	refaults    float64 // a second
	came        float64 // refaults since the last sample
	cost        float64 // share of time, the larger of now and smoothed
	costNow     float64 // the same since the last sample
	comesBack   bool    // most of what is evicted does
	idleVerdict bool

	// growth is of anon that the limit costs, bytes a second; 0 where the policy does
	// not lend for it.
	growth   float64
	interval time.Duration // of ticks
}

const unlimited = 1<<63 - 1

// lendMove is what follows.
type lendMove struct {
	rule    string // in kebab-case, "" where nothing follows
	high    uint64 // memory.high to set, 0 for none
	restore bool   // to the base
	reclaim uint64 // bytes
	held    string // why no more is lent, "" where nothing is asked for
}

// lent is what is lent, in bytes.
func (l *loan) lent() uint64 {
	if l.high <= l.base {
		return 0
	}
	return l.high - l.base
}

// used is the part of a loan that is in use, at a memory.current.
func (l *loan) used(current uint64) uint64 {
	if current <= l.base {
		return 0
	}
	return min(current-l.base, l.lent())
}

// decide takes in a sample and says what follows.
func (l *loan) decide(v *lendSight) lendMove {
	if !v.pending && v.high == l.asked && l.asked > l.base {
		l.high = l.asked // whatever became of the write, it holds
	}
	if !v.pending && (l.high == 0 || v.high != l.high) {
		// Somebody else's value, or the operator's own after it was put back.
		// What was known of the old one is void.
		l.end()
		if l.base = v.high; v.high >= unlimited {
			l.base = 0
		}
	}
	l.note(v)
	switch {
	case v.pending:
		return lendMove{}
	case v.high >= unlimited:
		return lendMove{held: "memory.high is max: there is no limit to lend above"}
	case l.base == 0:
		return lendMove{held: "memory.high is 0: its operator wants it emptied"}
	case v.verdict == workingset.Throttled:
		return l.rescue(v)
	case l.back != keeps:
		return l.takeBack(v)
	}
	m := l.lend(v)
	if m.rule == "" {
		if g := l.grow(v); g.rule != "" || m.held == "" {
			m = g
		}
	}
	if m.rule != "" || m.held != "" {
		return m
	}
	return l.trim(v)
}

// end forgets a loan that is over.
func (l *loan) end() {
	*l = loan{base: l.base, cool: l.cool, until: l.until, wait: l.wait, confirm: l.confirm}
}

// note carries what is watched of a borrower over a sample.
func (l *loan) note(v *lendSight) {
	if l.lent() == 0 {
		return
	}
	if !v.idleVerdict {
		l.idle = time.Time{}
	} else if l.idle.IsZero() {
		l.idle = v.now
	}
	if left := l.high - min(v.current, l.high); left < max(l.lent()/16, lendLeast) {
		l.unused = time.Time{}
	} else if l.unused.IsZero() {
		l.unused, l.peak = v.now, v.current
	}
	l.peak = max(l.peak, v.current)
	if l.atHigh(v) {
		l.spent += v.refaults * v.seconds
	} else {
		l.full = time.Time{}
	}
}

// atHigh reports whether memory.high is what binds.
func (l *loan) atHigh(v *lendSight) bool {
	if v.max <= v.high {
		return false
	}
	at := lendAt * float64(v.high)
	if v.keptBelow > 0 {
		at = min(at, lendAt*float64(v.keptBelow))
	}
	if v.highRises { // bursts; but not the last events of a limit just raised
		at -= (1 - lendAt) * float64(v.high)
	}
	return float64(v.current) >= at
}

// lend lends what is missed, as far as it goes.
func (l *loan) lend(v *lendSight) lendMove {
	need := v.missed * (1 + lendMargin)
	if v.comesBack {
		need = max(need, lendProbe*float64(v.current))
	}
	if v.cost < lendCost || need < lendLeast {
		return lendMove{}
	}
	if room := float64(v.high - min(v.current, v.high)); !l.atHigh(v) && l.lent() > 0 && v.missed > room {
		need -= room // the loan was made on less than what is known now
	} else if !l.atHigh(v) {
		if v.max <= v.high && float64(v.current) >= lendAt*float64(v.max) {
			return lendMove{held: heldByMax}
		}
		return lendMove{}
	}
	if v.now.Before(l.until) {
		return lendMove{held: "the last loan changed nothing"}
	}
	room, most := l.most(v)
	switch {
	case most < lendLeast:
		return l.judge(v, heldBecause(room, v.pool))
	case v.verdict == workingset.Streaming && need > float64(most) && v.missed > float64(most):
		return l.judge(v, "what it reads in turn would not fit: "+heldBecause(room, v.pool))
	}
	grant := min(uint64(min(need, unlimited/2)), most)
	if l.lent() == 0 {
		l.before = v.refaults
	}
	l.full, l.spent, l.judged = time.Time{}, 0, false
	return lendMove{rule: "lend", high: down(v.high+grant, v.page)}
}

// most returns the room below the ceiling and memory.max, and how much of that the host
// has to lend now, both in bytes.
func (l *loan) most(v *lendSight) (room, most uint64) {
	room = min(v.ceiling, v.max)
	room -= min(room, v.high)
	return room, min(room, v.pool)
}

const heldByMax = "memory.max binds, which is not lent above"

func heldBecause(room, pool uint64) string {
	if room < pool {
		return "the ceiling is reached"
	}
	return "the host has no more than its reserve"
}

// judge watches a loan that cannot grow: one that changed nothing is taken back.
func (l *loan) judge(v *lendSight, held string) lendMove {
	if l.lent() == 0 || l.judged || l.grown {
		return lendMove{held: held}
	}
	if l.full.IsZero() {
		l.full, l.spent = v.now, 0
		return lendMove{held: held}
	}
	seconds := v.now.Sub(l.full).Seconds()
	if seconds < lendSettle.Seconds() {
		return lendMove{held: held}
	}
	if l.spent/seconds < (1-lendEffect)*l.before {
		l.judged, l.cool = true, 0
		return lendMove{held: held}
	}
	l.cool = min(max(lendCool, 2*l.cool), lendCoolMost)
	l.until = v.now.Add(l.cool)
	l.recall(backFutile)
	return l.takeBack(v)
}

// wrote takes in that memory.high is ours now, or the base again.
func (l *loan) wrote(high uint64) {
	if high <= l.base {
		l.end()
		return
	}
	l.high = high
}

// down rounds down to whole pages.
func down(n, page uint64) uint64 {
	if page == 0 {
		return n
	}
	return n - n%page
}
