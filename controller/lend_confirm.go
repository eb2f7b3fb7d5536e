package controller

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/workingset"
)

// A need is lent for when two samples in a row show it, since one may be a burst. The
// first is a tick's, and until the next tick a loop loses as much as it reads in one. So
// the second is taken within the tick, and another one where that made the loan grow and
// it is used up again.
//
// Nothing is listened to for that. The first sample has told already, and a cgroup that
// meets its limit all the time would be heard of a hundred times a second.

const (
	// confirmLeast is how many refaults in one sample tell anything: the law's figure
	// too. confirmSpan is how many must be expected of an early one, twice as many, so
	// that it does not say "none" for being short.
	confirmLeast = 64
	confirmSpan  = 2 * confirmLeast
	// confirmRest is for how many intervals no early sample is taken after one that led
	// to no loan: the next two samples are whole ones, as if there had been none. It
	// doubles with each in a row, confirmMost times: to 64, five minutes at the default
	// interval.
	confirmRest = 2
	confirmMost = 5
)

// confirming is when the sample is due that is to confirm a need.
type confirming struct {
	at     time.Time // zero: none is due
	costly bool      // the last sample's refaults cost enough to lend for
	vain   uint8     // early samples in a row that led to no loan
	rest   time.Time // none is taken before
}

// see takes in a sample, whether it made a loan grow and whether one could grow
// further, and returns when to take the next; ok is false where that is for the tick.
// What is looked for is a need that begins, and one of which the first sample saw so
// little that the loan is used up again. One that lasts without a loan has been looked
// at.
//
// An early sample may show nothing though there is need: the multi-gen LRU counts no
// refaults for a second now and then, and the kernel's sums lag by 64 updates a CPU.
// The next samples then begin anew.
func (f *confirming) see(v *lendSight, raises, could bool, nextTick time.Time) (at time.Time, ok bool) {
	early := !f.at.IsZero() && !v.now.Before(f.at)
	begins := !f.costly
	f.at = time.Time{}
	f.costly = v.came >= confirmLeast && v.costNow >= lendCost
	switch {
	case raises && f.costly:
		f.vain, f.rest = 0, time.Time{}
	case early:
		f.rest = v.now.Add(confirmRest * v.interval << f.vain)
		f.vain = min(f.vain+1, confirmMost)
	}
	if news := begins && !early || raises && early; !news || !f.costly || !could {
		return at, false
	}
	part := v.interval / earlySamples // in whole ones, so that cgroups are woken for together
	enough := v.seconds * confirmSpan / v.came
	at = v.now.Add(part * max(1, time.Duration(math.Ceil(enough/part.Seconds()))))
	// What it leaves of the tick must not be too short either.
	if at.Before(f.rest) || at.After(nextTick.Add(-part)) {
		return at, false
	}
	f.at = at
	return at, true
}

// confirmSoon has a cgroup looked at again within the tick where a need begins and
// memory.high could go up. One that is kept below its limit is looked at by its fill.
func (c *Core) confirmSoon(cg *cgroup, v *lendSight, m *lendMove, raises bool) {
	l := &cg.loan
	if l.confirm == nil {
		if v.came < confirmLeast {
			return
		}
		l.confirm = &confirming{}
	}
	_, most := l.most(v)
	if raises {
		most -= min(most, m.high-v.high)
	}
	could := l.back == keeps && m.held == "" && most >= lendLeast && !v.now.Before(l.until) && l.atHigh(v) &&
		v.verdict != workingset.Throttled && !c.keepsBelow(cg) && (raises || c.setHeld(v.now, cg, memcg.KnobHigh) == "")
	if at, ok := l.confirm.see(v, raises, could, c.nodes.seenAt.Add(v.interval)); ok {
		c.wake(cg, at, true)
	}
}
