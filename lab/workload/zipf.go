package workload

import (
	"errors"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// zipfBatch is the number of accesses in a pass. Rates are counted in passes, so that it should be
// short against the time of a measurement, and long against that of a report.
const zipfBatch = 500

// runZipf reads pages of its memory at random, some far more often than others: the i-th most
// popular one with a weight of 1/i^s. With s near 0 all are alike, above 1 few pages get most of it.
// The sequence is the same in every run.
func runZipf(args []string, r *reporter) error {
	fs := flags("zipf")
	bytes := size(64 << 20)
	fs.Var(&bytes, "size", "memory to allocate")
	s := fs.Float64("s", 1, "the zipf parameter, at least 0")
	if err := fs.Parse(args); err != nil {
		return err
	}
	const page = 4096
	if bytes < page || *s < 0 || math.IsNaN(*s) || math.IsInf(*s, 0) {
		return errors.New("--size must be at least a page and --s a number of at least 0")
	}
	mem, err := allocate(int64(bytes))
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	z := newZipf(len(mem)/page, *s)
	// Popular pages lie anywhere in the memory, not side by side.
	where := random.Perm(len(mem) / page)
	r.ready(int64(bytes))
	var sum uint64
	for {
		start := time.Now()
		for range zipfBatch {
			at := where[z.draw(random.Float64())] * page
			sum += touch(mem[at : at+page])
		}
		r.pass(time.Since(start), zipfBatch*page)
		if r.err != nil {
			return r.err
		}
		keep(sum)
	}
}

// zipf is a table of cumulated weights, the last of which is 1.
type zipf []float64

func newZipf(n int, s float64) zipf {
	z := make(zipf, n)
	var sum float64
	for i := range z {
		sum += math.Pow(float64(i+1), -s)
		z[i] = sum
	}
	for i := range z {
		z[i] /= sum
	}
	return z
}

// draw returns the rank for a random number in [0, 1).
func (z zipf) draw(x float64) int {
	return min(sort.Search(len(z), func(i int) bool { return z[i] > x }), len(z)-1)
}
