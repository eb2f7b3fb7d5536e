package sim

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

// Whatever is done to a host, every page is on exactly one list, and sizes,
// charges, swap and free memory are what a recount finds.
func TestBooksAddUpAfterAnyOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kernel := rapid.SampledFrom([]Kernel{Kernel56, Kernel61, Kernel612, Kernel73}).Draw(t, "kernel")
		h := New(Config{
			Kernel: kernel, Seed: rapid.Uint64().Draw(t, "seed"),
			Nodes: []NodeConfig{{ID: 0, Bytes: 8 * mib}, {ID: 3, Bytes: 0}, {ID: 8, Bytes: 8 * mib}},
			Swap:  SwapConfig{Bytes: rapid.Uint64Range(0, 8).Draw(t, "swap") * mib},
		})
		paths := []string{"/a", "/a/x", "/a/y", "/b"}
		limit := func(name string) memcg.Limit {
			if n := rapid.Uint64Range(0, 6).Draw(t, name); n > 0 {
				return memcg.LimitOf(n * mib)
			}
			return memcg.Unlimited()
		}
		limits := func() Limits {
			l := Limits{High: limit("high"), Max: limit("max"), SwapMax: limit("swap.max")}
			l.Low = rapid.Uint64Range(0, 2).Draw(t, "low") * mib
			l.Min = rapid.Uint64Range(0, 1).Draw(t, "min") * mib
			l.Mems = rapid.SampledFrom([]memcg.NodeMask{{}, memcg.NodesOf(8), memcg.NodesOf(0, 8)}).Draw(t, "mems")
			return l
		}
		for _, p := range paths {
			h.Cgroup(p, limits())
		}
		var jobs []*Job
		workload := func() Workload {
			bytes := rapid.Uint64Range(1, 1024).Draw(t, "pages") * PageSize
			kind := Kind(rapid.IntRange(0, int(Text)).Draw(t, "kind"))
			return rapid.SampledFrom([]Workload{
				Idle{Anon: bytes, File: bytes}, Touch{Bytes: bytes, Kind: kind, Every: 20 * time.Millisecond},
				FileLoop{Bytes: bytes, Kind: kind}, Stream{}, Zipf{Bytes: bytes, Kind: kind, Exponent: 0.9},
				Grow{Bytes: bytes, Kind: Locked, Hold: 10 * time.Millisecond}, Grow{Bytes: bytes, Kind: kind},
			}).Draw(t, "workload")
		}
		t.Repeat(map[string]func(*rapid.T){
			"start": func(*rapid.T) {
				on := rapid.SampledFrom([][]memcg.NodeID{nil, {0}, {8}, {0, 8}}).Draw(t, "on")
				p := rapid.SampledFrom(paths).Draw(t, "path")
				jobs = append(jobs, h.Start(p, workload(), on...))
			},
			"stop": func(t *rapid.T) {
				if len(jobs) == 0 {
					t.Skip("nothing runs")
				}
				i := rapid.IntRange(0, len(jobs)-1).Draw(t, "job")
				if !jobs[i].ended {
					jobs[i].Stop()
				}
				jobs = append(jobs[:i], jobs[i+1:]...)
			},
			"limit": func(*rapid.T) { h.SetLimits(rapid.SampledFrom(paths).Draw(t, "path"), limits()) },
			"replace": func(*rapid.T) {
				p := rapid.SampledFrom([]string{"/a/x", "/a/y", "/b"}).Draw(t, "path")
				h.Remove(p)
				h.Cgroup(p, limits())
			},
			"reclaim": func(*rapid.T) {
				id := h.byPath[rapid.SampledFrom(paths).Draw(t, "path")].id
				h.Reclaim(context.Background(), memcg.Reclaim{
					Cgroup: id, Bytes: rapid.Uint64Range(0, 2*mib).Draw(t, "bytes"),
					Swappiness: memcg.SwappinessOf(rapid.IntRange(-1, memcg.SwappinessMax).Draw(t, "swappiness")),
				})
			},
			"run": func(*rapid.T) { h.Run(time.Duration(rapid.IntRange(1, 50).Draw(t, "ms")) * time.Millisecond) },
			"":    func(t *rapid.T) { mustHold(t, h) },
		})
	})
}

// A list behaves as a slice does.
func TestListBehavesAsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newArena()
		var l list
		var want []uint32
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
			case op == 0:
				i := a.take()
				a.pushHead(&l, i)
				want = append([]uint32{i}, want...)
			case op == 1:
				i := a.take()
				a.pushTail(&l, i)
				want = append(want, i)
			case len(want) > 0:
				k := rapid.IntRange(0, len(want)-1).Draw(t, "which")
				a.unlink(&l, want[k])
				a.give(want[k])
				want = append(want[:k], want[k+1:]...)
			}
			var got []uint32
			for i := l.head; i != 0; i = a.pages[i].next {
				got = append(got, i)
			}
			if len(got) != len(want) || l.n != uint64(len(want)) {
				t.Fatalf("list %v (length %d), want %v", got, l.n, want)
			}
			for k := range want {
				if got[k] != want[k] {
					t.Fatalf("list %v, want %v", got, want)
				}
			}
		}
	})
}

// The same calls give the same host, to the last counter.
func TestSameCallsGiveTheSameHost(t *testing.T) {
	build := func(seed uint64) string {
		h := New(Config{
			Nodes: []NodeConfig{{ID: 0, Bytes: 24 * mib}, {ID: 1, Bytes: 24 * mib}}, Kernel: Kernel612, Seed: seed,
			Swap: SwapConfig{Bytes: 64 * mib},
		})
		h.Cgroup("/a", Limits{Max: memcg.LimitOf(12 * mib)})
		h.Cgroup("/b", Limits{High: memcg.LimitOf(8 * mib)})
		h.Start("/a", Zipf{Bytes: 24 * mib, Exponent: 0.7})
		h.Start("/a", Zipf{Bytes: 8 * mib, Kind: Mapped, Exponent: 1.1, Rand: rand.New(rand.NewPCG(7, 7))}, 1)
		h.Start("/b", Stream{}, 1)
		h.Start("/b", Touch{Bytes: 4 * mib, Every: 100 * time.Millisecond}, 0, 1)
		for range 20 {
			h.Run(100 * time.Millisecond)
			h.Reclaim(context.Background(), memcg.Reclaim{Cgroup: h.byPath["/a"].id, Bytes: mib})
		}
		return h.String()
	}
	first := build(1)
	if again := build(1); again != first {
		t.Errorf("two hosts with the same seed differ:\n%s\n%s", first, again)
	}
	if other := build(2); other == first {
		t.Error("another seed made no difference")
	}
}
