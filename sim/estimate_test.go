package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/workingset"
)

// allowed is the factor within which an estimate of the refault distance from
// sums must stay of the true one, page by page.
const allowed = 1.5

// The estimate divides by smoothed refaults, which start at nothing: it begins
// far too long and errs towards out of reach, where nothing is asked for.
const (
	sideAfter     = 4 * time.Second  // from the first refaults on, until the side is right
	distanceAfter = 15 * time.Second // until the distance is
)

// watched is one second of a cgroup as the law saw it and as it was.
type watched struct {
	at    time.Duration
	seen  workingset.Side
	truth sim.Distances // of the refaults that the estimate looks back on
}

// watchApp samples /app once a second, lets the law judge it, and keeps the
// truth beside it. The law only looks: nothing it asks for is done.
func watchApp(t *testing.T, h *sim.Host, id memcg.ID, seconds int) (trace []watched) {
	t.Helper()
	// The law smooths over 10 s; so does the truth.
	const back = 10
	var st workingset.State
	var s memcg.Sample
	var host memcg.HostSample
	truths := []sim.Truth{h.Truth("/app")}
	for i := range seconds {
		if i > 0 {
			h.Run(time.Second)
		}
		if err := h.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
		if err := h.HostSample(&host); err != nil {
			t.Fatal(err)
		}
		d := workingset.Decide(&st, workingset.Input{
			Sample: &s, Host: &host, Elapsed: time.Second, ClassicLRU: true,
		}, workingset.Policy{Swappiness: workingset.Swappiness{Kind: workingset.Auto, Base: 100, Max: 200}})
		truths = append(truths, h.Truth("/app"))
		earlier := truths[max(0, len(truths)-1-back)]
		trace = append(trace, watched{h.Now(), d.Signals.File, truths[len(truths)-1].Since(earlier).File})
	}
	return trace
}

// after returns the part of a trace that begins some time after the first
// refaults and in which pages come back.
func after(trace []watched, settle time.Duration) (rest []watched) {
	first := time.Duration(-1)
	for _, w := range trace {
		if !w.seen.Distance.Known() || w.truth.Refaults < 1000 {
			continue
		}
		if first < 0 {
			first = w.at
		}
		if w.at >= first+settle {
			rest = append(rest, w)
		}
	}
	return rest
}

// compare holds the settled estimates against the truth.
func compare(t *testing.T, trace []watched) {
	t.Helper()
	settled := after(trace, distanceAfter)
	if len(settled) < 20 {
		t.Fatalf("%d samples to compare, want at least 20", len(settled))
	}
	least, most := math.Inf(1), 0.0
	for _, w := range settled {
		d, _ := w.seen.Distance.Get()
		mean, _ := w.truth.Mean()
		off := d / (mean * sim.PageSize)
		least, most = min(least, off), max(most, off)
		if !(off > 1/allowed && off < allowed) {
			t.Errorf("at %v D is %.1f MiB, truly %.1f MiB (x%.2f)", w.at, d/mib, mean*sim.PageSize/mib, off)
		}
	}
	d, _ := settled[len(settled)-1].seen.Distance.Get()
	mean, _ := settled[len(settled)-1].truth.Mean()
	t.Logf("D is x%.2f to x%.2f of the truth in %d samples; at the end %.1f MiB, truly %.1f MiB",
		least, most, len(settled), d/mib, mean*sim.PageSize/mib)
}

func wantSide(t *testing.T, trace []watched, inReach bool) {
	t.Helper()
	for _, w := range after(trace, sideAfter) {
		if w.seen.InReach != inReach {
			t.Errorf("at %v in reach is %v (D %v, WS %v); truly %d of %d refaults were", w.at, w.seen.InReach,
				w.seen.Distance, w.seen.WorkingSet, w.truth.Recent, w.truth.Refaults)
		}
	}
}

// besideIdleAnon is the lab's file-thrash: 150 MiB of idle anon under a limit
// of 180 MiB, and a file that is read in a loop.
func besideIdleAnon(t *testing.T, kernel sim.Kernel, file uint64) (*sim.Host, memcg.ID) {
	h := sim.New(sim.Config{
		Nodes: []sim.NodeConfig{{Bytes: 512 * mib}}, Kernel: kernel, Swap: sim.SwapConfig{Bytes: 1024 * mib}, Fail: t.Errorf,
		// Slow enough that the thrash lasts for some samples before the kernel
		// settles it, as it does in a guest.
		FilePrice: 400 * time.Microsecond,
	})
	id := h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(180 * mib)})
	h.Start("/app", sim.Idle{Anon: 150 * mib})
	h.Run(2 * time.Second)
	h.Start("/app", sim.FileLoop{Bytes: file})
	return h, id
}

// stuck is a kernel that lets a file loop thrash beside idle anon for as long
// as it likes: it compares with the active file list alone, as kernels before
// 5.9 did, and counts as later ones do.
func stuck() sim.Kernel {
	k := sim.Kernel612
	k.Name, k.DetectAnon = "6.12, stuck", false
	return k
}

func TestEstimatedDistanceOfALoopInReach(t *testing.T) {
	h, id := besideIdleAnon(t, stuck(), 80*mib)
	trace := watchApp(t, h, id, 120)
	compare(t, trace)
	wantSide(t, trace, true)
}

// Kernels from 5.9 on end the thrash by themselves: while they do, the loop
// must be judged in reach.
func TestLoopThatTheKernelSettlesIsInReach(t *testing.T) {
	for _, kernel := range []sim.Kernel{sim.Kernel61, sim.Kernel612, sim.Kernel73} {
		t.Run(kernel.Name, func(t *testing.T) {
			h, id := besideIdleAnon(t, kernel, 80*mib)
			trace := watchApp(t, h, id, 30)
			wantSide(t, trace, true)
			if d := h.Truth("/app").File; d.Refaults == 0 || d.Recent != d.Refaults {
				t.Errorf("truly %d of %d refaults were in reach, want all", d.Recent, d.Refaults)
			}
		})
	}
}

func TestEstimatedDistanceOfAStreamOutOfReach(t *testing.T) {
	for _, kernel := range []sim.Kernel{sim.Kernel61, sim.Kernel612, sim.Kernel73} {
		t.Run(kernel.Name, func(t *testing.T) {
			h, id := besideIdleAnon(t, kernel, 350*mib)
			trace := watchApp(t, h, id, 180)
			compare(t, trace)
			wantSide(t, trace, false)
			if d := h.Truth("/app").File; d.Refaults == 0 || d.Recent != 0 {
				t.Errorf("truly %d of %d refaults were in reach, want none", d.Recent, d.Refaults)
			}
		})
	}
}
