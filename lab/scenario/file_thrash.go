package scenario

import (
	"fmt"
	"math"
	"time"

	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The file-thrash scenario: a file that is read again and again would fit beside idle anon, if a
// third of that anon were in swap. Kernels go on reading it from the disk instead.
const (
	thrashRefaults = 0.25 // of off's refaults, in all
	thrashAfter    = 100  // pages that may refault after the move
	thrashSeen     = 2    // ticks from the first refaults to the verdict
	thrashMoved    = 1.5  // of the shortfall
	thrashAnonBack = 50   // pages of anon that may refault
	thrashPass     = 0.5  // of off's pass time
	// thrashes is the part of the file that must refault in a pass for the pass to be thrash.
	thrashes = 0.1
	// noticed is the part of the file whose refaults begin the clock for the verdict.
	noticed = 0.01
)

var fileThrash = idleAnon{
	name:       "file-thrash",
	about:      "a file that is read in a loop would fit if idle anon made room, and it does",
	topology:   oneNode,
	file:       80 * mib,
	short:      16,
	long:       40,
	swappiness: "{auto: {base: 60, min: 0, max: 200}}",
	yardstick:  32 * mib,
	suite:      true,
	checks:     checkFileThrash,
}.scenario()

// judged puts when the agent saw the thrash, and when it first acted, into a run.
func judged(run *result.Run, decisions []guest.Decision, start time.Time) {
	since := func(d guest.Decision) float64 { return float64(d.Heard.Sub(start).Milliseconds()) }
	set := func(name string, v float64) {
		if _, ok := run.Facts[name]; !ok {
			run.Facts[name] = v
		}
	}
	for _, d := range decisions {
		moves := d.Rule == "move-anon" || d.Rule == "move-anon-trial"
		if moves || d.Verdict == "file-thrash" {
			set("detected_ms", since(d))
		}
		if moves && d.Acted {
			set("moved_ms", since(d))
		}
	}
}

// fileRefaults is the number of file refaults up to a moment, in pages.
func fileRefaults(r result.Run, atMS float64) float64 {
	var n uint64
	for _, p := range r.Series {
		if float64(p.AtMS) > atMS {
			break
		}
		n = p.RefaultFile
	}
	return float64(n)
}

// refaultsOf is the number of file refaults of a pass: until the next one begins, since counters
// come late.
func refaultsOf(r result.Run, pass int) float64 {
	end := math.Inf(1)
	if pass+1 < len(r.PassAtMS) {
		end = r.PassAtMS[pass+1]
	}
	return fileRefaults(r, end) - fileRefaults(r, r.PassAtMS[pass])
}

// settledMS is when the move has settled: what was out at that time must be read once more, in the
// first pass that begins after the move; with the next the file is whole. NaN: there was no move,
// or no such pass.
func settledMS(r result.Run) float64 {
	moved, ok := r.Facts["moved_ms"]
	if !ok {
		return math.NaN()
	}
	for n, at := range r.PassAtMS {
		if at >= moved && n+1 < len(r.PassAtMS) {
			return r.PassAtMS[n+1]
		}
	}
	return math.NaN()
}

func checkFileThrash(runs []result.Run) []result.Check {
	const filePages = 80 * mib / page
	all := func(r result.Run) float64 { return float64(r.Counters.RefaultFile) }
	after := func(r result.Run) float64 {
		settled := settledMS(r)
		if math.IsNaN(settled) {
			return settled
		}
		return all(r) - fileRefaults(r, settled)
	}
	seen := func(r result.Run) float64 {
		for _, p := range r.Series {
			if float64(p.RefaultFile) >= noticed*filePages {
				return (fact("detected_ms")(r) - float64(p.AtMS)) / float64(idleTick.Milliseconds())
			}
		}
		return math.NaN()
	}
	moved := func(r result.Run) float64 {
		if _, ok := r.Facts["moved_ms"]; !ok {
			return math.NaN() // what was swapped is the kernel's doing
		}
		return fact("swapped_bytes")(r) / fact("shortfall_bytes")(r)
	}
	back := func(r result.Run) float64 { return float64(r.Counters.RefaultAnon) }
	return []result.Check{
		share("file refaults", runs, all, thrashRefaults, "pages, the aim is 0.05"),
		most("file refaults after the move", runs, after, thrashAfter,
			"pages, from the second pass on that began after it"),
		most("detection", runs, seen, thrashSeen, "ticks after the first pages came back"),
		most("anon moved", runs, moved, thrashMoved, "of what the file lacked"),
		most("anon refaults", runs, back, thrashAnonBack, "pages"),
		passesBesideThrash(runs, filePages),
	}
}

// passesBesideThrash compares the passes after the move has settled with those of the same number without the
// agent, of which only those count in which the file thrashed.
func passesBesideThrash(runs []result.Run, filePages float64) result.Check {
	const name = "pass time"
	on, off := result.Of(runs, "on"), result.Of(runs, "off")
	if len(on) == 0 || len(off) == 0 {
		return result.Skip(name, needsBoth)
	}
	times, unit := result.PassTimes(runs)
	first := 0 // the first pass that all runs with the agent began when it had settled
	var with, without, withMS, withoutMS []float64
	for _, r := range on {
		from := settledMS(r)
		n := 0
		for n < len(r.PassAtMS) && !(r.PassAtMS[n] >= from) {
			n++
		}
		first = max(first, n)
	}
	for _, r := range on {
		with = append(with, times(r)[min(first, len(r.PassMS)):]...)
		withMS = append(withMS, r.PassMS[min(first, len(r.PassMS)):]...)
	}
	for _, r := range off {
		of := times(r)
		for n := first; n < len(r.PassAtMS); n++ {
			if refaultsOf(r, n) >= thrashes*filePages {
				without, withoutMS = append(without, of[n]), append(withoutMS, r.PassMS[n])
			}
		}
	}
	switch {
	case len(with) == 0:
		return result.AtMost(name, math.NaN(), thrashPass, " of off; no pass began after the move")
	case len(without) == 0:
		return result.Skip(name, fmt.Sprintf("without the agent nothing thrashed any more from pass %d on", first+1))
	}
	return result.AtMost(name, result.Median(with)/result.Median(without), thrashPass, fmt.Sprintf(
		" of off, by medians in %s: %.0f ms in %d passes against %.0f ms in the %d that thrashed, from pass %d on",
		unit, result.Median(withMS), len(with), result.Median(withoutMS), len(without), first+1))
}

// files are the data disk of scenarios that read one file.
func files(size int64) []disk.File { return []disk.File{{Name: "file", Size: size}} }
