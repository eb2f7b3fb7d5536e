package workingset

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
)

// State is what is remembered of one cgroup between samples. It is a plain
// value of fixed size; the zero State knows nothing. A copy is independent,
// except that a Decision's Because points into the State it was made with.
type State struct {
	base  counters // of the previous sample
	based bool     // base may be subtracted from
	begun bool     // out has been given its start

	flows   flows
	sides   [types]memory
	span    float64 // seconds since the last costly bit
	streams bool    // the last verdict was Streaming

	squeeze squeezer
	episode episode

	terms [maxTerms]memcg.Term
}

// memory is what is remembered of one page type.
type memory struct {
	out float64 // pages that left and have not come back; finite, >= 0
	// gone is out without its cap: what a higher limit would have to hold, be it
	// a hundred times what is there now.
	gone float64
	// backNow and backThen are, of the last sample and the one before, how much
	// of what it evicted as many refaults make up; 0 where too few to tell.
	backNow, backThen float64
	// inherited is how long what was out before the first sample, and was too
	// much to be believed, still makes the distance unknown.
	inherited time.Duration
	// measured is the price of a refault by stall as a multiple of the class
	// table's, 0 while it has not been measured.
	measured float64
	// costly has a bit for each of the last samples, newest lowest, set where
	// refaults of this type cost at least thrashCost.
	costly uint8
	// turned is set where the last sample brought back all that was out before
	// it and had left lately: the whole set came round.
	turned bool
	// spanCost is what refaults cost, in microseconds, since the last such bit.
	spanCost float64
}

// flows are sums that fade with smoothing, the time they span among them:
// a sum divided by that time is a rate that does not depend on how often
// samples are taken.
type flows struct {
	seconds        float64
	evict, refault [types]float64
	clock          float64
	cost           [types]float64 // microseconds
	alloc          float64        // bytes that came and stayed, or left for good
	anonGrowth     float64        // bytes
	kernelAnon     float64        // pages
}

// smoothing is the time constant of all smoothed rates. The multi-gen LRU
// counts no refaults for a second or two in the middle of a steady loop, so one
// sample must not decide; 10 s is two samples of the default interval and ten
// of a fast one. Longer would find a thrash later; shorter would lose it in
// such a gap.
const smoothing = 10 * time.Second

// add fades what was and adds one sample's deltas.
func (f *flows) add(d *deltas, costs [types]float64, page float64) {
	keep := math.Exp(-d.seconds / smoothing.Seconds())
	// What happened within the sample has itself faded on average, so that a
	// long and two short intervals weigh the same.
	weigh := (1 - keep) * smoothing.Seconds() / d.seconds
	mix := func(sum *float64, v float64) { *sum = *sum*keep + v*weigh }
	mix(&f.seconds, d.seconds)
	for t := range types {
		mix(&f.evict[t], d.evict[t])
		mix(&f.refault[t], d.refault[t])
		mix(&f.cost[t], costs[t])
	}
	mix(&f.clock, d.clock)
	gone := d.evict[anon] + d.evict[file] - d.refault[anon] - d.refault[file]
	mix(&f.alloc, d.current+gone*page)
	mix(&f.anonGrowth, d.anonGrown(page))
	mix(&f.kernelAnon, d.kernelAnon.or(d.evict[anon]))
}

// rate returns a sum as a rate, unknown before anything was added.
func (f *flows) rate(sum float64) Figure {
	if f.seconds <= 0 {
		return Figure{}
	}
	return FigureOf(sum / f.seconds)
}

// returning is the part of what is evicted that comes back, 0..1.
func (f *flows) returning(t int) float64 {
	switch {
	case f.refault[t] <= 0:
		return 0
	case f.evict[t] <= f.refault[t]:
		return 1
	}
	return f.refault[t] / f.evict[t]
}

// sound reports whether every number in the state is one. A state that is not
// is thrown away whole: one NaN never lives on.
func (st *State) sound() bool {
	sum := st.flows.seconds + st.flows.clock + st.flows.alloc + st.flows.anonGrowth + st.flows.kernelAnon + st.episode.sum() + st.squeeze.seconds + st.squeeze.stall + st.squeeze.cost + st.span
	for t := range types {
		sum += st.flows.evict[t] + st.flows.refault[t] + st.flows.cost[t] + st.sides[t].out + st.sides[t].gone + st.sides[t].measured + st.sides[t].spanCost
	}
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}
