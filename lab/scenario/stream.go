package scenario

import "github.com/memagent/memagent/lab/result"

// The stream scenario: a file that cannot fit whatever is done is read beside idle anon. Kernels
// swap all of that anon for it, and gain nothing.
const (
	streamSwapped = 0.037 // of the idle anon, what the seed's patch swapped in its own stream
	streamPass    = 1.05  // of off's pass time
)

var stream = idleAnon{
	name:  "stream",
	about: "a file that never fits is read beside idle anon, which stays",
	// On one node, where anon is never aged for it, a stream costs none; on four it does.
	topology: "quad",
	file:     350 * mib,
	short:    8,
	long:     20,
	// The stream may cost no anon; without one the policy may do as it sees fit.
	swappiness: "{auto: {base: 60, min: 0, max: 200}}",
	// What a disk of 200 MB/s brings in 70 ms. Where requests do not keep up with it, which is so
	// where they share a CPU with the reader, the guard keeps the kernel from swapping.
	headroom: "8%",
	guard:    true,
	checks:   checkStream,
}.scenario()

func checkStream(runs []result.Run) []result.Check {
	swapped := func(r result.Run) float64 { return float64(r.Counters.SwapOut) * page / idleSize }
	// The first pass reads into empty memory.
	pass := func(r result.Run) float64 { return result.Median(r.PassMS[min(1, len(r.PassMS)):]) }
	unit := "of it, by all swap-outs"
	if off := result.Of(runs, "off"); len(off) > 0 {
		_, words := measure(swapped).of(off)
		unit += ", " + words + " without the agent"
	}
	return []result.Check{
		most("idle anon swapped out", runs, swapped, streamSwapped, unit),
		share("pass time", runs, pass, streamPass, "ms"),
	}
}
