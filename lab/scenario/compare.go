package scenario

import (
	"fmt"
	"math"

	"github.com/memagent/memagent/lab/result"
)

// Reasons to skip a check.
const (
	needsOn   = "needs a run with --agent on"
	needsOff  = "needs a run with --agent off"
	needsBoth = "needs runs with --agent off,on"
)

// measure reads one figure of a run. NaN says that the run has none.
type measure func(result.Run) float64

// fact is a measure: one fact of a run, NaN where it was not found out.
func fact(name string) measure {
	return func(r result.Run) float64 {
		if v, ok := r.Facts[name]; ok {
			return v
		}
		return math.NaN()
	}
}

// of is the median of a measure and its spread in words. The median is NaN as soon as one run
// lacks the figure: a run that never came to the point must not make the others look better.
func (f measure) of(runs []result.Run) (median float64, words string) {
	values := result.Each(runs, f)
	for _, v := range values {
		if math.IsNaN(v) {
			return math.NaN(), "nothing"
		}
	}
	low, high := result.Spread(values)
	median = result.Median(values)
	if low == high {
		return median, fmt.Sprintf("%.4g", median)
	}
	return median, fmt.Sprintf("%.4g (%.4g..%.4g)", median, low, high)
}

// share checks that the median with the agent is at most limit times that without.
func share(name string, runs []result.Run, f measure, limit float64, unit string) result.Check {
	on, off := result.Of(runs, "on"), result.Of(runs, "off")
	if len(on) == 0 || len(off) == 0 {
		return result.Skip(name, needsBoth)
	}
	a, with := f.of(on)
	b, without := f.of(off)
	return result.AtMost(name, a/b, limit, fmt.Sprintf(" of off; %s against %s %s", with, without, unit))
}

// most checks that the median with the agent is at most limit.
func most(name string, runs []result.Run, f measure, limit float64, unit string) result.Check {
	on := result.Of(runs, "on")
	if len(on) == 0 {
		return result.Skip(name, needsOn)
	}
	a, words := f.of(on)
	return result.AtMost(name, a, limit, fmt.Sprintf(" %s; got %s", unit, words))
}

// least checks that the median with the agent is at least limit.
func least(name string, runs []result.Run, f measure, limit float64, unit string) result.Check {
	on := result.Of(runs, "on")
	if len(on) == 0 {
		return result.Skip(name, needsOn)
	}
	a, words := f.of(on)
	return result.AtLeast(name, a, limit, fmt.Sprintf(" %s; got %s", unit, words))
}
