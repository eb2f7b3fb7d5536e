package controller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

// ticketed draws one ticket after the other.
type ticketed struct{ n uint64 }

func (d *ticketed) Uint64N(n uint64) uint64 {
	d.n += 0x9E3779B97F4A7C15
	return d.n >> 32 * n >> 32
}

// twoNodes is a host with two nodes of 256 MiB and swap in memory.
func twoNodes() *sim.Host {
	return sim.New(sim.Config{
		Nodes:  []sim.NodeConfig{{ID: 0, Bytes: 256 * mib}, {ID: 1, Bytes: 256 * mib}},
		Swap:   sim.SwapConfig{Bytes: 512 * mib, Class: memcg.SwapZram},
		Kernel: sim.Kernel612, Seed: 1,
	})
}

// kept is a trace that keeps draws, which are valid for one call only.
type kept struct{ *trace }

func (k kept) Record(r *telemetry.Record) {
	one := *r
	if one.Draw != nil {
		draw := *one.Draw
		one.Draw = &draw
	}
	k.trace.Record(&one)
}

// steered runs a loop with a journal at a host for a while.
func steered(t *testing.T, h *sim.Host, policies string, during func()) *trace {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte("interval: 1s\n"+policies))
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keeper, err := journal.NewKeeper(store, h, journal.Options{Boot: "boot", PageSize: sim.PageSize})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace{}
	loop := controller.Loop{
		Core: controller.NewCore(cfg, telemetry.Enforce, "", &silence{}, time.Now()),
		Host: h, Interval: cfg.Interval, Sink: kept{tr}, Notify: &silence{}, Keeper: keeper,
	}
	loop.Core.DrawFrom(&ticketed{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	during()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return tr
}

func sampleOf(t *testing.T, h *sim.Host, id memcg.ID) *memcg.Sample {
	t.Helper()
	var s memcg.Sample
	if err := h.Sample(id, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func onNode(t *testing.T, s *memcg.Sample, id memcg.NodeID, k memcg.NodeStat) uint64 {
	t.Helper()
	n, ok := s.Node(id)
	if !ok {
		t.Fatalf("no node %d", id)
	}
	v, _ := n.Get(k).Get()
	return v
}

// One node holds anon alone, the other cold cache beside anon. What is asked for
// comes from the cache. The simulated kernels are classic and spare anon as long
// as there is much cache; the multi-gen LRU, which does not, is the lab's.
func TestNodeImbalanceTakesNoAnonFromTheWrongNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := twoNodes()
		id := h.Cgroup("/app", sim.Limits{})
		h.Start("/app", sim.Idle{Anon: 96 * mib, Rate: 256 * mib}, 0)
		h.Start("/app", sim.Idle{Anon: 48 * mib, Rate: 256 * mib}, 1)
		h.Run(2 * time.Second)
		h.Start("/app", sim.Idle{File: 190 * mib, Rate: 256 * mib}, 1)
		h.Run(8 * time.Second) // from disk
		before := sampleOf(t, h, id)
		current, _ := before.Current.Get()
		h.SetLimits("/app", sim.Limits{Max: memcg.LimitOf(current + 16*mib)})
		headroom := fmt.Sprintf("%.4f%%", 100*112*mib/float64(current+16*mib))
		tr := steered(t, h, `
host:
  swap: {write_budget: 1GiB/s}
policies:
  - name: app
    match: [{path: /app}]
    squeeze: off
    swappiness: 60
    headroom: `+headroom+`
    numa: {reclaim: lottery}
`, func() { pass(h, 30*time.Second) })
		after := sampleOf(t, h, id)
		if wrong := onNode(t, before, 0, memcg.NodeAnon) - onNode(t, after, 0, memcg.NodeAnon); wrong != 0 {
			t.Errorf("%d KiB of anon taken from node 0", wrong/1024)
		}
		now, _ := after.Current.Get()
		if freed := current - now; freed < 94*mib || freed > 98*mib {
			t.Errorf("%d MiB freed, want 96", freed/mib)
		}
		drawn := 0
		for _, r := range tr.of("/app") {
			if r.Acted && r.Draw != nil && r.Draw.Node == 1 {
				drawn++
			} else if r.Acted {
				t.Errorf("asked for memory of other nodes: %s", r.Describe())
			}
		}
		if drawn == 0 {
			t.Error("no node was drawn")
		}
	})
}

// A program may use node 0 alone by its operator's word and grows beyond it
// while node 1 has room. The kernel swaps; an agent that may spread it does not
// let it come to that, and puts the operator's word back at the end.
func TestSwapInsanity(t *testing.T) {
	grow := func(mems string) (h *sim.Host, id memcg.ID, tr *trace, mid *memcg.Sample) {
		h = twoNodes()
		id = h.Cgroup("/db", sim.Limits{Mems: memcg.NodesOf(0)})
		h.Start("/db", sim.Grow{Bytes: 64 * mib, Rate: 64 * mib, Hold: time.Hour}, 0)
		tr = steered(t, h, `
policies:
  - name: db
    match: [{path: /db}]
    squeeze: off
    numa: {reclaim: lottery, mems: `+mems+`}
`, func() {
			pass(h, 6*time.Minute)
			h.Start("/db", sim.Grow{Bytes: 250 * mib, Rate: 8 * mib, Hold: time.Hour}, 0)
			pass(h, time.Minute)
			mid = sampleOf(t, h, id)
		})
		return h, id, tr, mid
	}
	synctest.Test(t, func(t *testing.T) {
		_, _, _, mid := grow("keep")
		if swapped, _ := mid.SwapCurrent.Get(); swapped < 32*mib {
			t.Errorf("%d MiB swapped without steering, and there is no insanity to repair", swapped/mib)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h, id, tr, mid := grow("spread")
		if swapped, _ := mid.SwapCurrent.Get(); swapped != 0 {
			t.Errorf("%d MiB swapped; last: %s", swapped/mib, last(tr.of("/db")).Describe())
		}
		if mems, err := h.ReadKnob(id, memcg.KnobMems); err != nil || mems != "0" {
			t.Errorf("at the end cpuset.mems holds %q, %v", mems, err)
		}
	})
}

// The node that a program grows on has nothing but anon to give. With the marks
// that are the defaults it is left before background reclaim begins there, at
// whatever rate the program grows, its memory goes with it, and nothing is
// swapped.
func TestANodeThatFillsUpWithAnonIsLeftBeforeTheKernelReclaims(t *testing.T) {
	for _, rate := range []uint64{2 * mib, 8 * mib, 16 * mib} {
		t.Run(fmt.Sprint(rate/mib, " MiB a second"), func(t *testing.T) { fillUp(t, rate) })
	}
}

func fillUp(t *testing.T, rate uint64) {
	synctest.Test(t, func(t *testing.T) {
		h := twoNodes()
		h.Cgroup("/filler", sim.Limits{Mems: memcg.NodesOf(0)})
		h.Start("/filler", sim.Grow{Bytes: 180 * mib, Rate: 512 * mib, Hold: time.Hour}, 0)
		id := h.Cgroup("/db", sim.Limits{})
		var granted memcg.NodeMask
		var left uint64 // free on node 0 when it was left, above what is kept
		tr := steered(t, h, `
policies:
  - name: db
    match: [{path: /db}]
    squeeze: off
    numa: {reclaim: lottery, mems: avoid-short}
`, func() {
			pass(h, 2*time.Second)
			h.Start("/db", sim.Grow{Bytes: 100 * mib, Rate: rate, Hold: time.Hour}, 0)
			var host memcg.HostSample
			for end := time.Now().Add(time.Minute); time.Now().Before(end); pass(h, 100*time.Millisecond) {
				if granted, _, _ = h.EffectiveMems(id); granted == memcg.NodesOf(1) {
					break
				}
				if err := h.HostSample(&host); err != nil {
					t.Fatal(err)
				}
				free, _ := host.Nodes[0].MemFree.Get()
				reserve, _ := host.Nodes[0].Reserve.Get()
				left = free - min(reserve, free)
			}
			pass(h, 20*time.Second)
		})
		s := sampleOf(t, h, id)
		if granted != memcg.NodesOf(1) || left == 0 || left > 4*rate {
			t.Errorf("it may use %v, %d MiB from where the kernel begins; last: %s", granted, left/mib, last(tr.of("/db")).Describe())
		}
		if swapped, _ := s.SwapCurrent.Get(); swapped != 0 || onNode(t, s, 0, memcg.NodeAnon) != 0 {
			t.Errorf("%d MiB swapped, %d MiB on node 0", swapped/mib, onNode(t, s, 0, memcg.NodeAnon)/mib)
		}
		if mems, err := h.ReadKnob(id, memcg.KnobMems); err != nil || mems != "" && mems != "0-1" {
			t.Errorf("at the end cpuset.mems holds %q, %v", mems, err)
		}
	})
}

// A write of cpuset.mems blocks for as long as the kernel moves memory. The tick
// goes on, nothing else is written to the file meanwhile, what it has moved in the end
// is in the record, and what was set is undone when it has come back.
func TestAMigrationThatBlocksHoldsUpNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := twoNodes()
		h.Cgroup("/filler", sim.Limits{Mems: memcg.NodesOf(0)})
		h.Start("/filler", sim.Grow{Bytes: 210 * mib, Rate: 512 * mib, Hold: time.Hour}, 0)
		id := h.Cgroup("/db", sim.Limits{})
		h.Start("/db", sim.Grow{Bytes: 40 * mib, Rate: 64 * mib, Hold: time.Hour}, 0)
		h.Run(2 * time.Second)
		free := make(chan struct{})
		h.Inject(sim.Fault{Op: sim.OpWriteKnob, Path: "/db", Nth: 1, Block: free})
		tr := steered(t, h, `
host:
  nodes: {low: 10%, high: 12%}
policies:
  - name: db
    match: [{path: /db}]
    squeeze: off
    numa: {mems: avoid-short}
`, func() {
			pass(h, 20*time.Second)
			close(free)
			pass(h, 5*time.Second)
		})
		wrote, ticks, moved := 0, 0, uint64(0)
		for _, r := range tr.of("/db") {
			if moved = max(moved, r.Mems.Moved); r.Mems.Rule == "foreign-value" {
				t.Errorf("its own set is taken for somebody else's: %s", r.Describe())
			}
			if r.Elapsed > 1100*time.Millisecond {
				t.Errorf("a tick came after %v", r.Elapsed)
			}
			if ticks++; r.Mems.Want != "" && r.Mems.Held == "" {
				wrote++
			}
		}
		if wrote != 1 || ticks < 25 {
			t.Errorf("%d writes in %d ticks, want one in 25", wrote, ticks)
		}
		if moved != 40*mib {
			t.Errorf("%d MiB are said to have moved, want 40", moved/mib)
		}
		if mems, err := h.ReadKnob(id, memcg.KnobMems); err != nil || mems != "" && mems != "0-1" {
			t.Errorf("at the end cpuset.mems holds %q, %v", mems, err)
		}
	})
}
