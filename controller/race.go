package controller

import (
	"time"

	"github.com/memagent/memagent/workingset"
)

const (
	// raceLost is how many requests in a row must leave less than a quarter of
	// the headroom free before the race with the cgroup's own charges counts as
	// lost: then the kernel reclaims at the limit all the same, and the agent
	// only takes CPU time beside it. Ten are a second or two.
	raceLost = 10
	// raceRest is how long the limit is then left to the kernel; it doubles up
	// to raceMost for as long as every new try is lost as well.
	raceRest = 10 * time.Second
	raceMost = 5 * time.Minute

	// speedOver is over how many requests what they free a second is averaged,
	// and speedKept how long that is believed: where it is too little no more
	// are made, and only another try can tell that it is enough.
	speedOver = 4
	speedKept = 30 * time.Second
)

// speed is what requests free while they run.
type speed struct {
	rate float64 // bytes a second
	at   time.Time
}

// note books bytes that a request freed in the time it took.
func (s *speed) note(now time.Time, bytes uint64, took time.Duration) {
	if bytes == 0 || took <= 0 {
		return
	}
	rate := float64(bytes) / took.Seconds()
	if known := s.of(now); known > 0 {
		rate = known + (rate-known)/speedOver
	}
	s.rate, s.at = rate, now
}

// of returns the speed in bytes a second, 0 where it is not known any more.
func (s *speed) of(now time.Time) float64 {
	if now.Sub(s.at) > speedKept {
		return 0
	}
	return s.rate
}

// race keeps whether requests gain on a cgroup that is charged all the time.
type race struct {
	behind int // requests in a row that left hardly any headroom
	until  time.Time
	rest   time.Duration
}

// ran books what is seen of memory.current, in bytes, after a request.
func (r *race) ran(now time.Time, current uint64, h *workingset.Hold) {
	if !h.Optional || h.Limit <= h.Above {
		*r = race{until: r.until, rest: r.rest}
		return
	}
	if left := h.Limit - min(current, h.Limit); left >= (h.Limit-h.Above)/4 {
		*r = race{}
		return
	}
	if r.behind++; r.behind < raceLost {
		return
	}
	r.behind, r.rest = 0, min(max(raceRest, 2*r.rest), raceMost)
	r.until = now.Add(r.rest)
}

// lost reports whether the limit is left to the kernel for now.
func (r *race) lost(now time.Time, h *workingset.Hold) bool { return h.Optional && now.Before(r.until) }
