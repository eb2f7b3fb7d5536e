package report

import "time"

// spans is into how many spans of time a recording is cut at most; at least half
// as many are used. A plot has about as many points as a screen shows.
const spans = 480

// clock cuts time into spans of equal width, which doubles whenever they no
// longer reach.
type clock struct {
	start time.Time
	last  time.Time
	width time.Duration
	folds int // how often the width has doubled
}

// leastSpan is the width at first: no interval is shorter.
const leastSpan = time.Second

// span returns the number of the span that holds at.
func (c *clock) span(at time.Time) int {
	if c.width == 0 {
		c.start, c.width = at, leastSpan
	}
	if at.After(c.last) {
		c.last = at
	}
	for at.Sub(c.start) >= spans*c.width {
		c.width *= 2
		c.folds++
	}
	return max(int(at.Sub(c.start)/c.width), 0)
}

// widen doubles the width until a span is about as long as the time from one of
// so many readings to the next: narrower ones would be gaps between dashes.
func (c *clock) widen(readings int) {
	if readings < 2 {
		return
	}
	const nearly = 0.95 // readings come a little early or late
	apart := time.Duration(nearly * float64(c.last.Sub(c.start)) / float64(readings-1))
	for c.width < apart {
		c.width *= 2
		c.folds++
	}
}

// used returns how many spans there are.
func (c *clock) used() int {
	if c.width == 0 {
		return 0
	}
	return int(c.last.Sub(c.start)/c.width) + 1
}

// at returns the beginning of a span.
func (c *clock) at(i int) time.Time { return c.start.Add(time.Duration(i) * c.width) }

// series is one figure over time. Its spans follow its clock: those of a series
// that is not written to for a while are folded when it is.
type series struct {
	sum   [spans]float64
	count [spans]float64
	folds int
	total float64
}

// fold makes two spans into one for as often as the clock did.
func (s *series) fold(c *clock) {
	for ; s.folds < c.folds; s.folds++ {
		for i := range spans {
			var sum, count float64
			if 2*i < spans {
				sum, count = s.sum[2*i]+s.sum[2*i+1], s.count[2*i]+s.count[2*i+1]
			}
			s.sum[i], s.count[i] = sum, count
		}
	}
}

// add takes in a value with a weight: 1 for one of several readings, seconds for
// a rate.
func (s *series) add(c *clock, i int, value, weight float64) {
	s.fold(c)
	s.sum[i] += value
	s.count[i] += weight
	s.total += value
}

// values returns the mean of each span; known is false where nothing was read.
func (s *series) values(c *clock) (v []float64, known []bool) {
	if s == nil {
		return make([]float64, c.used()), make([]bool, c.used())
	}
	s.fold(c)
	for i := range c.used() {
		ok := s.count[i] > 0
		mean := 0.0
		if ok {
			mean = s.sum[i] / s.count[i]
		}
		v, known = append(v, mean), append(known, ok)
	}
	return v, known
}
