package sim

import (
	"errors"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// twoNodes returns a host on which /app has 64 MiB of anon and of file on each
// of the nodes 0 and 8.
func twoNodes(t *testing.T, cfg Config) (*Host, memcg.ID) {
	cfg.Nodes = []NodeConfig{{ID: 0, Bytes: 256 * mib}, {ID: 8, Bytes: 256 * mib}}
	cfg.Swap, cfg.Seed, cfg.Fail = SwapConfig{Bytes: 1 << 30}, 1, t.Errorf
	h := New(cfg)
	id := h.Cgroup("/app", Limits{})
	for _, n := range []memcg.NodeID{0, 8} {
		settle(t, h, h.Start("/app", Idle{Anon: 64 * mib, File: 64 * mib}, n))
	}
	return h, id
}

func TestARequestForNodesTakesFromTheseAlone(t *testing.T) {
	for _, tc := range []struct {
		name       string
		kernel     Kernel
		swappiness int
		anon, file bool // whether some of it goes
	}{
		{"0 takes file", Kernel612, 0, false, true},
		{"1 takes file", Kernel73, 1, false, true},
		{"200 takes anon first", Kernel612, 200, true, false},
		{"max takes anon, also where memory.reclaim does not know it", Kernel61, memcg.SwappinessMax, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, id := twoNodes(t, Config{Kernel: tc.kernel})
			o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 16 * mib, Swappiness: memcg.SwappinessOf(tc.swappiness), Nodes: memcg.NodesOf(8)})
			if o.Err != nil || o.Via != memcg.ViaLRUGen || len(o.Nodes) != 2 {
				t.Fatalf("outcome %+v", o)
			}
			if n := o.Nodes[0]; n.Anon != memcg.Value(0) || n.File != memcg.Value(0) {
				t.Errorf("node 0 gave %+v", n)
			}
			n := o.Nodes[1]
			anon, _ := n.Anon.Get()
			file, _ := n.File.Get()
			if (anon > 0) != tc.anon || (file > 0) != tc.file || anon+file < 16*mib || anon+file > 16*mib+16*mib/50 {
				t.Errorf("node 8 gave %d of anon and %d of file", anon, file)
			}
			if got, ok := n.Reclaimed.Get(); ok != tc.kernel.NodeScan || ok && got != anon+file {
				t.Errorf("pgsteal of node 8 grew by %v", n.Reclaimed)
			}
			mustHold(t, h)
		})
	}
}

func TestARequestForNodesThatHaveNothingFreesNothing(t *testing.T) {
	h, id := twoNodes(t, Config{Kernel: Kernel612})
	o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, Nodes: memcg.NodesOf(3)})
	if !errors.Is(o.Err, memcg.ErrPartial) || o.Reclaimed != memcg.Value(0) {
		t.Errorf("outcome %+v", o)
	}
}

func TestARequestForNodesIsRefusedWhereNobodyCanKeepToThem(t *testing.T) {
	h, id := twoNodes(t, Config{Kernel: Kernel612, NoNodeReclaim: true})
	o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, Nodes: memcg.NodesOf(8)})
	if !errors.Is(o.Err, memcg.ErrUnsupported) || h.Writes() != 0 || o.Via != "" {
		t.Errorf("%d writes, outcome %+v", h.Writes(), o)
	}
}
