package sim

import (
	"context"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// smallHost has some CPUs and one cgroup, /app, that may use most of it.
func smallHost(t *testing.T, cpus int, swap SwapConfig) *Host {
	t.Helper()
	h := New(Config{
		Nodes: []NodeConfig{{Bytes: 64 * mib}}, Kernel: Kernel612, Swap: swap, CPUs: cpus, Seed: 1, Fail: t.Errorf,
	})
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(16 * mib)})
	return h
}

// everyMicrosecond is the rate of a workload that touches a page in one.
const everyMicrosecond = PageSize * 1_000_000

func TestThreadsShareTheProcessors(t *testing.T) {
	for _, c := range []struct {
		name          string
		cpus, threads int
		want          float64 // touches a microsecond
	}{
		{"one thread on a CPU of its own", 1, 1, 1},
		{"eight threads on one CPU are as fast as one", 1, 8, 1},
		{"eight threads on two CPUs are as fast as two", 2, 8, 2},
		{"eight threads on eight CPUs", 8, 8, 8},
		{"two threads on eight CPUs", 8, 2, 2},
		{"eight threads with a CPU for everybody", 0, 8, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := smallHost(t, c.cpus, SwapConfig{})
			j := h.Start("/app", Zipf{Bytes: mib, Exponent: 0.5, Threads: c.threads, Rate: everyMicrosecond})
			h.Run(100 * time.Millisecond)
			if got := float64(j.Stats().Touches) / 100_000; got < 0.99*c.want || got > 1.01*c.want {
				t.Errorf("%.3f touches a microsecond, want %.0f", got, c.want)
			}
		})
	}
}

func TestWorkloadsShareAProcessorEvenly(t *testing.T) {
	h := smallHost(t, 1, SwapConfig{})
	a := h.Start("/app", Touch{Bytes: mib, Rate: everyMicrosecond})
	b := h.Start("/app", Touch{Bytes: mib, Rate: everyMicrosecond})
	h.Run(100 * time.Millisecond)
	if x, y := a.Stats().Touches, b.Stats().Touches; min(x, y) < 49_000 || x+y < 99_000 {
		t.Errorf("%d and %d touches, want 50,000 each", x, y)
	}
}

func TestAWaitForADeviceLeavesTheProcessorToOthers(t *testing.T) {
	for _, c := range []struct {
		name        string
		class       memcg.SwapClass
		least, most float64 // of the touches of a thread that waits for nobody
	}{
		{"decompression does not", memcg.SwapZram, 0, 0.2},
		{"a device does", memcg.SwapSSD, 0.9, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := smallHost(t, 1, SwapConfig{Bytes: 64 * mib, Class: c.class, Price: 100 * time.Microsecond})
			h.Start("/app", Touch{Bytes: 32 * mib, Rate: everyMicrosecond})
			h.Run(time.Second) // it loops over twice its limit by now
			other := h.Start("/", Touch{Bytes: mib, Rate: everyMicrosecond})
			h.Run(time.Second)
			if got := float64(other.Stats().Touches) / 1e6; got < c.least || got > c.most {
				t.Errorf("%.2f of its touches, want %.2f to %.2f", got, c.least, c.most)
			}
		})
	}
}

func TestReclaimOnRequestTakesAProcessorForAsLongAsItTook(t *testing.T) {
	for _, c := range []struct {
		name string
		cpus int
		lost float64 // of the time it took
	}{{"the only one", 1, 1}, {"one of two", 2, 0}, {"there is one for everybody", 0, 0}} {
		t.Run(c.name, func(t *testing.T) {
			h := smallHost(t, c.cpus, SwapConfig{Bytes: 64 * mib, WritePrice: 10 * time.Microsecond})
			h.Start("/app", Idle{Anon: 8 * mib})
			h.Run(time.Second)
			j := h.Start("/", Touch{Bytes: mib, Rate: everyMicrosecond})
			o := h.Reclaim(context.Background(), memcg.Reclaim{Cgroup: idOf(t, h, "/app"), Bytes: 4 * mib})
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			swapped, _ := o.SwapOut.Get()
			if least := time.Duration(swapped/PageSize) * 10 * time.Microsecond; o.Took < least {
				t.Errorf("took %v, want at least the %v of compressing", o.Took, least)
			}
			h.Run(100 * time.Millisecond)
			lost := 100*time.Millisecond - time.Duration(j.Stats().Touches)*time.Microsecond
			if want := time.Duration(c.lost * float64(o.Took)); lost < want-time.Millisecond || lost > want+time.Millisecond {
				t.Errorf("the workload lost %v to a request of %v, want %v", lost, o.Took, want)
			}
		})
	}
}

func TestTheHostSaysThatItsListsAreClassic(t *testing.T) {
	var s memcg.HostSample
	if err := smallHost(t, 0, SwapConfig{}).HostSample(&s); err != nil || !s.ClassicLRU() {
		t.Errorf("classic %v, %v", s.ClassicLRU(), err)
	}
}
