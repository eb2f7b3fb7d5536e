package controller

import (
	"time"

	"github.com/memagent/memagent/workingset"
)

const (
	// raceLost is how many requests in a row must leave less than a quarter of
	// the headroom free before the race with the cgroup's own charges counts as
	// lost: then the kernel reclaims at the limit all the same, and the agent
	// only takes CPU time beside it. Twenty are some seconds.
	raceLost = 20
	// raceLong is how long such requests may take in all: where pages have to be
	// written out, one of a few MiB may take a second.
	raceLong = 2 * time.Second
	// raceRest is how long the limit is then left to the kernel; it doubles up
	// to raceMost for as long as every new try is lost as well.
	raceRest = 10 * time.Second
	raceMost = 5 * time.Minute
)

// race keeps whether requests gain on a cgroup that is charged all the time.
type race struct {
	behind int           // requests in a row that left hardly any headroom
	spent  time.Duration // what they took
	until  time.Time
	rest   time.Duration
}

// ran books what is seen of memory.current, in bytes, after a request that took
// so long.
func (r *race) ran(now time.Time, current uint64, took time.Duration, h *workingset.Hold) {
	if !h.Optional || h.Limit <= h.Above {
		*r = race{until: r.until, rest: r.rest}
		return
	}
	if left := h.Limit - min(current, h.Limit); left >= (h.Limit-h.Above)/4 {
		*r = race{}
		return
	}
	r.behind++
	if r.spent += took; r.behind < raceLost && r.spent < raceLong {
		return
	}
	r.behind, r.spent, r.rest = 0, 0, min(max(raceRest, 2*r.rest), raceMost)
	r.until = now.Add(r.rest)
}

// lost reports whether the limit is left to the kernel for now.
func (r *race) lost(now time.Time, h *workingset.Hold) bool { return h.Optional && now.Before(r.until) }

// race is the one that a cgroup is in by its verdict. What grows has to be
// written out as it is taken; of what comes back swap often has a copy still, and
// taking that is several times as fast. So one may be won where the other is lost.
func (cg *cgroup) race() *race {
	if cg.races == nil {
		cg.races = new([2]race)
	}
	if cg.verdict == workingset.Growing {
		return &cg.races[0]
	}
	return &cg.races[1]
}
