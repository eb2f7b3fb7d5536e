package result

import "sort"

// Median is the middle of values, the mean of both middles for an even number, and 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := append([]float64(nil), values...)
	sort.Float64s(v)
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// Spread is the smallest and the largest of values, 0 and 0 for none.
func Spread(values []float64) (low, high float64) {
	if len(values) == 0 {
		return 0, 0
	}
	low, high = values[0], values[0]
	for _, v := range values[1:] {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// Of returns the runs made with the agent in one state ("off" or "on").
func Of(runs []Run, agent string) []Run {
	var out []Run
	for _, r := range runs {
		if r.Agent == agent {
			out = append(out, r)
		}
	}
	return out
}

// Each applies f to every run.
func Each(runs []Run, f func(Run) float64) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = f(r)
	}
	return out
}

// Fact returns a function that reads one fact of a run, for Each.
func Fact(name string) func(Run) float64 {
	return func(r Run) float64 { return r.Facts[name] }
}
