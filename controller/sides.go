package controller

import (
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// sides carries a swappiness out that wants mostly anon. Kernels read it as a
// hint: asked with 200, 6.12 took half and more from file (docs/architecture.md).
// So requests ask for one side alone, by turns, such that anon gives its share
// of what was taken, s of 200.
type sides struct {
	anon, file float64 // bytes taken of late by such requests
	// rest is how many requests take file before anon is tried again, since it
	// gave next to nothing.
	rest int
}

const (
	// sidesKeep is how much is remembered, in bytes: enough to average over
	// requests, little enough to follow a policy that changes.
	sidesKeep = 64 << 20
	// sidesLeast is the part of an anon request that must have come of it, and
	// sidesRest how many requests take file when it has not.
	sidesLeast = 0.25
	sidesRest  = 4
)

// next returns the swappiness of the next request for v, 0..200: of one side.
func (s *sides) next(v int) memcg.Swappiness {
	if s.rest > 0 {
		s.rest--
		return memcg.SwappinessOf(0)
	}
	if s.anon*float64(200-v) <= s.file*float64(v) {
		return memcg.SwappinessOf(memcg.SwappinessMax)
	}
	return memcg.SwappinessOf(0)
}

// took books an outcome. nothing is true where anon alone was asked for and next
// to none came.
func (s *sides) took(o *memcg.Outcome) (nothing bool) {
	v, _ := o.Request.Swappiness.Get()
	taken, ok1 := o.Reclaimed.Get()
	swapped, ok2 := o.SwapOut.Get()
	if !ok1 || !ok2 {
		return false
	}
	swapped = min(swapped, taken)
	s.anon += float64(swapped)
	s.file += float64(taken - swapped)
	if sum := s.anon + s.file; sum > sidesKeep {
		s.anon, s.file = s.anon*sidesKeep/sum, s.file*sidesKeep/sum
	}
	if nothing = v == memcg.SwappinessMax && float64(swapped) < sidesLeast*float64(o.Request.Bytes); nothing {
		s.rest = sidesRest
	}
	return nothing
}

// side picks one side for a request that wants mostly anon, where there is
// enough of the other to matter and the host can take anon alone. A move of
// anon is for anon alone.
func (c *Core) side(host *memcg.HostSample, cg *cgroup, r *telemetry.Record) memcg.Swappiness {
	v, ok := r.Swappiness.Get()
	switch {
	case !ok || v < mostlyAnon:
	case v == memcg.SwappinessMax:
		if c.noMax {
			return memcg.SwappinessOf(200)
		}
	case c.noMax || c.swappiness == unsupported || !swapWritable(host) || cg.file < r.Want:
	case cg.moves && !r.Glance:
		return memcg.SwappinessOf(memcg.SwappinessMax)
	case r.OlderThan == 0:
		return cg.sides.next(v)
	}
	return r.Swappiness
}
