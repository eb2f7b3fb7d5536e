package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/sim/hosttest"
)

// The simulated host has the knobs that the journal asks for, and the suite
// tests those, neither more nor less.
var (
	_ journal.Knobs  = (*sim.Host)(nil)
	_ journal.Knobs  = hosttest.Knobs(nil)
	_ hosttest.Knobs = journal.Knobs(nil)
)

func TestSimulatedKnobsConform(t *testing.T) {
	for _, kernel := range []sim.Kernel{sim.Kernel61, sim.Kernel612, sim.Kernel73} {
		t.Run(kernel.Name, func(t *testing.T) {
			hosttest.RunKnobs(t, func(t *testing.T) hosttest.KnobBench {
				h := busy(t, sim.Config{Kernel: kernel})
				observer := busy(t, sim.Config{Kernel: kernel, ReadOnly: true})
				return hosttest.KnobBench{
					Knobs: h, Observer: observer,
					Bench: hosttest.Bench{
						Host: h, Busy: "/app/worker", Fresh: "/app/fresh",
						Make:   func(_ testing.TB, path string) { h.Cgroup(path, sim.Limits{}) },
						Remove: func(_ testing.TB, path string) { h.Remove(path) },
					},
				}
			})
		})
	}
}

func idOf(t *testing.T, h *sim.Host, path string) memcg.ID {
	t.Helper()
	ids, err := h.Cgroups(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if id.Path == path {
			return id
		}
	}
	t.Fatalf("no %s", path)
	return memcg.ID{}
}

func TestC43LoweringHighReclaimsAtOnceUntilTheKernelNeedNot(t *testing.T) {
	for _, tt := range []struct {
		kernel sim.Kernel
		at     bool
	}{{sim.Kernel61, true}, {sim.Kernel612, true}, {sim.Kernel73, false}} {
		t.Run(tt.kernel.Name, func(t *testing.T) {
			h := busy(t, sim.Config{Kernel: tt.kernel})
			id := idOf(t, h, "/app/worker")
			if err := h.WriteKnob(t.Context(), id, memcg.KnobHigh, "8388608"); err != nil {
				t.Fatal(err)
			}
			var s memcg.Sample
			if err := h.Sample(id, &s); err != nil {
				t.Fatal(err)
			}
			if now, _ := s.Current.Get(); (now <= 8*mib) != tt.at {
				t.Errorf("memory.current is %d after memory.high of 8 MiB", now)
			}
		})
	}
}

func TestNarrowingMemsMovesAnonAndLeavesTheCache(t *testing.T) {
	h := busy(t, sim.Config{Kernel: sim.Kernel612})
	id := idOf(t, h, "/app/worker")
	var before, after memcg.Sample
	if err := errors.Join(h.Sample(id, &before), h.WriteKnob(t.Context(), id, memcg.KnobMems, "2"), h.Sample(id, &after)); err != nil {
		t.Fatal(err)
	}
	on := func(s *memcg.Sample, id memcg.NodeID, k memcg.NodeStat) uint64 {
		n, ok := s.Node(id)
		if !ok {
			t.Fatalf("no node %d", id)
		}
		v, _ := n.Get(k).Get()
		return v
	}
	if all, now := on(&before, 0, memcg.NodeAnon)+on(&before, 2, memcg.NodeAnon), on(&after, 2, memcg.NodeAnon); now != all || on(&after, 0, memcg.NodeAnon) != 0 {
		t.Errorf("%d of %d bytes of anon are on node 2", now, all)
	}
	if was, now := on(&before, 0, memcg.NodeFile), on(&after, 0, memcg.NodeFile); was == 0 || now != was {
		t.Errorf("the cache on node 0 went from %d to %d", was, now)
	}
	if before.Current != after.Current {
		t.Errorf("memory.current went from %v to %v", before.Current, after.Current)
	}
}

func TestKnobsCanBeMadeToFail(t *testing.T) {
	h := busy(t, sim.Config{Kernel: sim.Kernel612, Self: "/app/fresh/agent"})
	id := idOf(t, h, "/app/worker")
	h.Inject(sim.Fault{Op: sim.OpReadKnob, Path: id.Path, Nth: 1, Err: memcg.ErrDenied},
		sim.Fault{Op: sim.OpWriteKnob, Path: id.Path, Nth: 1, Err: memcg.ErrDenied})
	if _, err := h.ReadKnob(id, memcg.KnobHigh); !errors.Is(err, memcg.ErrDenied) {
		t.Errorf("ReadKnob: %v", err)
	}
	if err := h.WriteKnob(t.Context(), id, memcg.KnobHigh, "4096"); !errors.Is(err, memcg.ErrDenied) {
		t.Errorf("WriteKnob: %v", err)
	}
	if v, err := h.ReadKnob(id, memcg.KnobHigh); err != nil || v != "max" {
		t.Errorf("a write that failed left %q, %v", v, err)
	}
	if err := h.WriteKnob(t.Context(), idOf(t, h, "/app"), memcg.KnobHigh, "max"); !errors.Is(err, memcg.ErrDenied) {
		t.Errorf("above the agent's own cgroup: %v", err)
	}
	if unmet := h.Unmet(); len(unmet) != 0 {
		t.Errorf("unmet: %v", unmet)
	}
}

// TestAKeeperOnASimulatedHost walks the whole way: lend, die, start, undo.
func TestAKeeperOnASimulatedHost(t *testing.T) {
	h := busy(t, sim.Config{Kernel: sim.Kernel612})
	id := idOf(t, h, "/app/worker")
	dir := t.TempDir()
	start := func() (*journal.Store, *journal.Keeper) {
		s, err := journal.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		k, err := journal.NewKeeper(s, h, journal.Options{Boot: "boot", PageSize: sim.PageSize, Now: func() time.Time { return time.Unix(0, 0).Add(h.Now()) }})
		if err != nil {
			t.Fatal(err)
		}
		return s, k
	}
	s, k := start()
	for knob, value := range map[memcg.Knob]string{memcg.KnobHigh: "12582913", memcg.KnobSwapMax: "4096", memcg.KnobMems: "0"} {
		if r, err := k.Set(t.Context(), id, knob, value, "test"); err != nil || r.Outcome != journal.Written {
			t.Errorf("%s: %+v, %v", knob, r, err)
		}
	}
	if _, err := k.Set(t.Context(), id, memcg.KnobMems, "0-1", "test"); !errors.Is(err, journal.ErrNotGranted) {
		t.Errorf("a node that there is not: %v", err)
	}
	s.Close()
	s, k = start()
	defer s.Close()
	how := map[memcg.Knob]journal.How{}
	r := k.Recover(context.Background())
	for _, u := range r.Undone {
		how[u.Knob] = u.How
	}
	if r.Err != nil || how[memcg.KnobHigh] != journal.Restored || how[memcg.KnobSwapMax] != journal.Restored || how[memcg.KnobMems] != journal.StoodIn {
		t.Errorf("%+v", r)
	}
	var sample memcg.Sample
	if err := h.Sample(id, &sample); err != nil || !sample.High.IsMax() || !sample.SwapMax.IsMax() || sample.MemsEffective != memcg.NodesOf(0, 2) {
		t.Errorf("%v, %v, %v, %v", sample.High, sample.SwapMax, sample.MemsEffective, err)
	}
}
