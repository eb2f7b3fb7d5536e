package sim_test

import (
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
)

// A program accesses its memory at random under a limit of 16 MiB, on a host
// with one CPU, which decompresses what comes back from swap. Figures are
// 100,000 accesses a second.
func ExampleZipf() {
	const mib = 1 << 20
	for _, skew := range []float64{0.1, 0.7, 1.3} {
		fmt.Printf("parameter %.1f:", skew)
		for _, size := range []uint64{8, 20, 24, 32} {
			h := sim.New(sim.Config{
				Nodes: []sim.NodeConfig{{Bytes: 64 * mib}}, Kernel: sim.Kernel612, CPUs: 1, Seed: 1,
				Swap: sim.SwapConfig{Bytes: 64 * mib, Class: memcg.SwapZram, WritePrice: 10 * time.Microsecond},
			})
			h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(16 * mib)})
			j := h.Start("/app", sim.Zipf{Bytes: size * mib, Exponent: skew, Rate: sim.PageSize * 1_000_000})
			h.Run(time.Second)
			before := j.Stats().Touches
			h.Run(time.Second)
			fmt.Printf("  %2d MiB %4.1f", size, float64(j.Stats().Touches-before)/100_000)
		}
		fmt.Println()
	}
	// Output:
	// parameter 0.1:   8 MiB 10.0  20 MiB  1.8  24 MiB  1.2  32 MiB  0.9
	// parameter 0.7:   8 MiB 10.0  20 MiB  3.2  24 MiB  2.1  32 MiB  1.4
	// parameter 1.3:   8 MiB 10.0  20 MiB  8.6  24 MiB  7.8  32 MiB  6.8
}
