package workingset

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
)

// This file is mm/workingset.c as far as sums allow it.
//
// The seed takes the clock at eviction, keeps it in the shadow, and subtracts
// it from the clock at refault:
//
//	refault_distance = (refault - eviction) & EVICTION_MASK
//
// Userspace has no shadows. It has the number of pages that are out (E - R,
// summed up) and the rate R at which they return. By Little's law the mean time
// out of those that return is at most out/R; the clock advances by
//
//	D = clock x out/R
//
// in that time, and that is the mean refault distance. It is an upper bound:
// out also holds pages that never return.

const (
	// halfLife is the time in which half of what is out and shows no sign of
	// coming back is given up. The kernel gives shadows up by count, under
	// pressure; 10 minutes is longer than the re-access interval of anything
	// that is worth memory on a busy host. Longer reads more as out of reach.
	halfLife = 10 * time.Minute
	// returningLife is how much more slowly a set fades that comes back as
	// fast as it leaves: a loop stays out for as long as it runs and must not
	// fade into reach, but refaults the kernel failed to count must fade at
	// some time. Six times, an hour.
	returningLife = 6
	// outCap bounds the non-resident set, in sizes of the resident lists. WS is
	// at most one such size, so four are far out of reach whatever the clock.
	outCap = 4
	// inheritedLife is how long an unbelievable start keeps the distance
	// unknown: two half-lives leave a quarter of it.
	inheritedLife = 2 * halfLife
)

// lists are the sizes of the four evictable lists, in bytes.
type lists struct {
	inactive, active [types]float64
}

func listsOf(st *memcg.Stats) (l lists, ok bool) {
	for t, keys := range [types][2]memcg.Stat{
		anon: {memcg.StatInactiveAnon, memcg.StatActiveAnon},
		file: {memcg.StatInactiveFile, memcg.StatActiveFile},
	} {
		in, ok1 := st.Get(keys[0]).Get()
		ac, ok2 := st.Get(keys[1]).Get()
		if !ok1 || !ok2 {
			return lists{}, false
		}
		l.inactive[t], l.active[t] = float64(in), float64(ac)
	}
	return l, true
}

func (l *lists) size(t int) float64 { return l.inactive[t] + l.active[t] }
func (l *lists) total() float64     { return l.size(anon) + l.size(file) }

// workingset is the memory that could have been traded for a page of type t,
// in bytes: in the seed the active list of the page's own type, in kernels
// since 5.9 what workingset_test_recent adds up:
//
//	file: active file + (swap? active anon + inactive anon)
//	anon: active file + inactive file + (swap? active anon)
func (l *lists) workingset(t int, swap bool) float64 {
	ws := l.active[file]
	if t == anon {
		ws += l.inactive[file]
	}
	if swap {
		ws += l.active[anon]
		if t == file {
			ws += l.inactive[anon]
		}
	}
	return ws
}

// begin gives the non-resident set its start: what was evicted in the
// cgroup's whole life and has not come back. For a young cgroup that is exact;
// for an old one it holds years of dropped cache. More than the resident lists
// hold is not believed: the distance stays unknown for a while, and only an
// experiment can tell.
func (m *memory) begin(evicted, refaulted, resident float64) {
	m.out = max(0, evicted-refaulted)
	if m.out > resident {
		m.out, m.inherited = resident, inheritedLife
	}
	m.gone = m.out
}

const (
	// turnedShare is the part of what is out that one sample must bring back for
	// the whole set to have come round: all of it, but for what staleness of
	// the counters can hide.
	turnedShare = 0.9
	// turnedLately is the part of what is out that must have been evicted within
	// the smoothing time before, as that fades: a set that comes round within
	// some 14 s has 1/4 left. What left long ago and is read once, a nightly
	// job, is no loop yet.
	turnedLately = 0.25
)

// turns reports whether a sample brings back at once all that was out, and
// that had left lately. It looks at what was known before the sample.
func (m *memory) turns(refaults, evictedLately float64) bool {
	return m.out > 0 && refaults >= turnedShare*m.out && evictedLately >= turnedLately*m.out
}

// advance carries the non-resident set over one sample:
//
//	out += E - R, fading
//
// never below 0, never above cap. What returns proves itself and fades slowly.
// The step is the exact solution for constant rates, so that the result does
// not depend on the interval.
func (m *memory) advance(d *deltas, t int, returning, most float64) {
	k := math.Ln2 / halfLife.Seconds() * (1 - returning*(1-1.0/returningLife))
	fade := math.Exp(-k * d.seconds)
	gain := (d.evict[t] - d.refault[t]) / d.seconds
	m.out = min(max(0, m.out*fade+gain*(1-fade)/k), most)
	m.gone = max(0, m.gone*fade+gain*(1-fade)/k)
	m.backNow, m.backThen = backNow(d.evict[t], d.refault[t]), m.backNow
	m.inherited = max(0, m.inherited-time.Duration(d.seconds*float64(time.Second)))
}

// backNow is refaults over evictions within one sample, at most 1. Fewer than
// priceSamples refaults are chance.
func backNow(evicted, refaulted float64) float64 {
	if refaulted < priceSamples {
		return 0
	}
	return min(1, refaulted/max(evicted, 1))
}

// missed is how many pages more of a type would have spared what comes back:
// what has left, as far as it returns. The smoothed part is too small in the
// first seconds in which a set comes round, that of two samples too small while
// the multi-gen LRU counts no refaults; the larger counts. Two, since a burst of
// readahead that was evicted before it was read makes one (7.3).
func (m *memory) missed(f *flows, t int) float64 {
	back := max(f.returning(t), min(m.backNow, m.backThen))
	if m.turned {
		back = 1
	}
	return m.gone * back
}

// distance returns D in bytes. It is unknown while nothing has come back, and
// while what is out was inherited.
func (m *memory) distance(f *flows, t int, page float64) Figure {
	if f.refault[t] < 1 || m.inherited > 0 {
		return Figure{}
	}
	return FigureOf(f.clock * m.out / f.refault[t] * page)
}

// fillSide computes the refault figures of one type from what is remembered.
//
//	need = out x min(1, R/E) where D <= WS, else 0
//
// R/E looks back over the smoothing time, in which the set's first eviction
// has no refault yet; where the whole set has just come round it is 1.
//
// Need is the answer to the objection in seed 003: a set that cannot fit
// whatever is given up needs nothing.
func (st *State) fillSide(s *Side, t int, l *lists, swap bool, page float64) {
	m := &st.sides[t]
	s.Evictions = st.flows.rate(st.flows.evict[t])
	s.Refaults = st.flows.rate(st.flows.refault[t])
	s.Out = FigureOf(m.out * page)
	s.WorkingSet = FigureOf(l.workingset(t, swap))
	s.Distance = m.distance(&st.flows, t, page)
	if cost, ok := st.flows.rate(st.flows.cost[t]).Get(); ok {
		s.Cost = FigureOf(cost / 1e6)
	}
	if rate, ok := s.Refaults.Get(); ok && s.Distance.Known() {
		s.TimeOut = FigureOf(m.out / rate)
	}
	d, known := s.Distance.Get()
	if !known {
		return
	}
	s.InReach = d <= s.WorkingSet.or(0)
	s.Need = FigureOf(0)
	if s.InReach {
		returning := st.flows.returning(t)
		if m.turned {
			returning = 1
		}
		s.Need = FigureOf(m.out * returning * page)
	}
}
