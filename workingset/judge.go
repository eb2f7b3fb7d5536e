package workingset

import "math/bits"

const (
	// thrashCost is the share of time refaults of one type must cost before
	// they are called thrash: 1 %, ten times the default cost target, so that
	// what the squeeze brings back on its own never looks like thrash.
	thrashCost = 0.01
	// thrashSamples of the last thrashWindow samples must cost that much. One
	// sample is a burst; two with a gap between them are still a loop, since
	// the multi-gen LRU leaves gaps.
	thrashSamples = 2
	thrashWindow  = 4
	// thrashSpan is the least time, in seconds, that counts as a sample here:
	// early wakes within one burst are still one burst. (A burst across the
	// border of two samples counts as two; its episode is bounded like any.)
	thrashSpan = 0.5
	// cheaper is how much less one side must cost before it pays for the
	// other. Trading between near equals moves pages both ways.
	cheaper = 4

	// atLimit is how near to its limit a cgroup counts as being at it. Charges
	// come in batches and reclaim in chunks: 3 % is what lending uses too.
	atLimit = 0.03
	// futile is the part of memory.current above the floor below which
	// reclaim cannot help a throttled cgroup, and tight the part below which a
	// limit is too small for what must stay and a little cache.
	futile = 0.05
	tight  = 0.10
	// stopped is the share of time all tasks must stall to be called
	// throttled, and fruitless the part of scanned pages stolen below which
	// reclaim is spinning (case c38: 88 % and 3 %).
	stopped   = 0.20
	fruitless = 0.10

	// passing is the part of the resident lists that must be evicted a second,
	// and once the part of evictions that comes back at most, for a stream that
	// is read once and never again.
	passing = 0.01
	once    = 0.10
	// growing is the part of memory.current newly charged a second: 12 % a
	// minute, where a squeeze of 0.5 % every 5 s would only get in the way.
	growing = 0.002
	// still is the part of memory.current charged, or evicted by the kernel,
	// a second below which nothing is going on.
	still = 0.0001
)

// countCostly notes, for each type, whether the sample's refaults cost enough to
// be thrash. Samples shorter than thrashSpan are put together.
func (st *State) countCostly(seconds float64, costs [types]float64) {
	st.span += seconds
	for t := range types {
		st.sides[t].spanCost += costs[t]
	}
	if st.span < thrashSpan {
		return
	}
	for t := range types {
		m := &st.sides[t]
		m.costly <<= 1
		if m.spanCost >= thrashCost*1e6*st.span {
			m.costly |= 1
		}
		m.spanCost = 0
	}
	st.span = 0
}

// hurts reports whether refaults of a type cost too much, over several samples.
// One is enough where it brought the whole set back: that is a loop and not a
// burst, and a loop that is read once in a while has no two such samples in a
// row.
func (m *memory) hurts(s *Side) bool {
	often := bits.OnesCount8(m.costly&(1<<thrashWindow-1)) >= thrashSamples
	return (often || m.turned && m.costly&1 == 1) && s.Cost.above(thrashCost)
}

// verdict judges, and remembers what the next judgement must know.
func (st *State) verdict(s *Signals, v *view) Verdict {
	now := st.judge(s, v)
	st.streams = now == Streaming
	return now
}

// judge gives the verdict. The first that holds is it:
//
//	idle        no process is in it (found before anything else)
//	unknown     counters are missing (found before anything else)
//	throttled   memory.high events rise, all tasks stall >= 20 % of the time, and
//	            less than 5 % of memory is above the floor or less than 10 % of
//	            what the kernel scans can be taken
//	limit-bound at its limit, refaults cost >= 1 % of time, and less than 10 %
//	            of memory is above the floor, or both sides thrash within a
//	            factor 4 of each other
//	streaming   file refaults cost >= 1 % of time and more than anon's, and
//	            D > WS, or an episode showed that moving anon does not help; or,
//	            at its limit, 1 % of the lists passes a second, not for anon, and
//	            less than 10 % of that comes back, or it was streaming before
//	file-thrash the same cost, and D <= WS, or D is unknown and worth finding out
//	anon-thrash anon refaults cost >= 1 % of time
//	growing     0.2 % of memory newly charged a second
//	idle        no refault cost to speak of, a tenth of the pressure target at
//	            most, and hardly anything charged or evicted
//	fits        everything else
func (st *State) judge(s *Signals, v *view) Verdict {
	room := s.Reclaimable.or(0) + v.pinned()
	fileHurts, anonHurts := st.sides[file].hurts(&s.File), st.sides[anon].hurts(&s.Anon)
	costAnon, costFile := s.Anon.Cost.or(0), s.File.Cost.or(0)

	if s.HighRises && s.PressureFull.above(stopped) &&
		(room < futile*v.current || s.Efficiency.Known() && !s.Efficiency.above(fruitless)) {
		return Throttled
	}
	if s.AtLimit && (fileHurts || anonHurts) {
		near := costAnon*cheaper > costFile && costFile*cheaper > costAnon
		if room < tight*v.current || fileHurts && anonHurts && near {
			return LimitBound
		}
	}
	switch {
	case fileHurts && costFile >= costAnon:
		if st.episode.failed(KindMoveAnon) || s.File.Distance.Known() && !s.File.InReach {
			return Streaming
		}
		return FileThrash
	case anonHurts:
		return AnonThrash
	case s.AtLimit && v.passes(s) && (st.flows.returning(file) < once || st.streams):
		return Streaming
	case s.AllocRate.above(growing * v.current):
		return Growing
	case st.quiet(s, v):
		return Idle
	}
	return Fits
}

// passes reports whether file flows through: evicted at some speed while
// something fills the memory again, and that is not anon. Where nothing fills
// it, the evictions are the agent's own or the squeeze of a limit.
func (v *view) passes(s *Signals) bool {
	flow := max(v.d.evict[file]/v.d.seconds, s.File.Evictions.or(0)) * v.page
	fills := max(s.FillRate.or(0), s.AllocRate.or(0))
	return min(flow, fills) >= passing*v.lists.total() && 2*s.AnonGrowth.or(0) < flow
}

func (st *State) quiet(s *Signals, v *view) bool {
	p := &v.policy.Squeeze
	evicts := s.KernelEvicts.or(s.Clock.or(0)) * v.page
	return !s.Pressure.above(p.PressureTarget/10) && !s.CostSmooth.above(p.CostTarget/10) &&
		!s.AllocRate.above(still*v.current) && evicts < still*v.current
}
