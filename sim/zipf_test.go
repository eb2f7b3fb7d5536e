package sim_test

import (
	"flag"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
)

// Memory of half to twice what there is, accessed at random: the experiment of
// "workingset protection/detection on the anonymous LRU list" (J. Kim, 2020),
// here in accesses a second of the virtual clock.

var whole = flag.Bool("whole", false, "measure every cell of the zipf tables instead of some")

// zipfParams are the columns of the table.
var zipfParams = []float64{0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3}

// A page takes 2 us to access, and 82 us more where it has to be swapped in:
// decompressing it, and scanning, compressing and freeing another. Both are
// slow, so that a second has few accesses; what counts is that one is 41 times
// the other.
const (
	zipfAccesses = 500_000 // a second, of a thread that never waits
	zipfSwap     = 40 * time.Microsecond
)

// zipfCase is one cell: a workload under a limit.
type zipfCase struct {
	kernel         sim.Kernel
	limit, size, s float64 // MiB, MiB, parameter
	block          uint64  // bytes
	threads, cpus  int
}

// start makes the host and starts the workload, in /app.
func (c *zipfCase) start(t *testing.T) (*sim.Host, memcg.ID, *sim.Job) {
	bytes := func(mb float64) uint64 { return uint64(mb*mib) / sim.PageSize * sim.PageSize }
	h := sim.New(sim.Config{
		Nodes: []sim.NodeConfig{{Bytes: bytes(2 * c.limit)}}, Kernel: c.kernel, CPUs: c.cpus, Seed: 1,
		Swap: sim.SwapConfig{Bytes: bytes(4 * c.limit), Class: memcg.SwapZram, Price: zipfSwap, WritePrice: zipfSwap},
		Fail: t.Errorf,
	})
	id := h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(bytes(c.limit))})
	j := h.Start("/app", sim.Zipf{
		Bytes: bytes(c.size), Exponent: c.s, Block: c.block, Threads: c.threads, Rate: zipfAccesses * sim.PageSize,
	})
	return h, id, j
}
