package hosttest

import (
	"context"
	"path"
	"testing"

	"github.com/memagent/memagent/memcg"
)

func parentsFirst(t *testing.T, b Bench) {
	seen := map[string]bool{"/": true}
	for _, id := range b.list(t) {
		switch {
		case id.Path == "/":
			t.Error("the root is listed")
		case seen[id.Path]:
			t.Errorf("%s is listed twice", id.Path)
		case !seen[path.Dir(id.Path)]:
			t.Errorf("%s comes before its parent", id.Path)
		case id.Inode == 0:
			t.Errorf("%s has no inode", id.Path)
		}
		seen[id.Path] = true
	}
	if !seen[b.Busy] {
		t.Errorf("%s is not listed", b.Busy)
	}
}

func listAppends(t *testing.T, b Bench) {
	marker := memcg.ID{Path: "/was/there", Inode: 1}
	ids, err := b.Host.Cgroups([]memcg.ID{marker})
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) < 2 || ids[0] != marker {
		t.Errorf("Cgroups did not append to %v: %v", marker, ids)
	}
}

func sampleIsComplete(t *testing.T, b Bench) {
	s := b.sample(t, b.find(t, b.Busy))
	for k := range memcg.NumStats {
		if st := s.Stat.Get(k).State(); st != memcg.Present && st != memcg.Unsupported {
			t.Errorf("%v is %v", k, st)
		}
	}
	if v := value(t, "memory.current", s.Current); v < 4<<20 {
		t.Errorf("memory.current is %d, the suite needs 4 MiB", v)
	}
	if v := value(t, "populated", s.Populated); v != 1 {
		t.Errorf("populated is %d", v)
	}
	for name, l := range map[string]memcg.Limit{"min": s.Min, "low": s.Low, "high": s.High, "max": s.Max} {
		if l.State() != memcg.Present {
			t.Errorf("memory.%s is %v", name, l)
		}
	}
	if s.NodesState == memcg.Missing || s.MemsState == memcg.Missing {
		t.Errorf("numa_stat %v, cpuset %v: neither was read", s.NodesState, s.MemsState)
	}
	if s.NodesState == memcg.Present {
		last := memcg.NodeID(-1)
		for i := range s.Nodes {
			if s.Nodes[i].ID <= last {
				t.Errorf("node %d comes after node %d", s.Nodes[i].ID, last)
			}
			last = s.Nodes[i].ID
		}
	}
}

func currentAlone(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	bytes, err := b.Host.Current(id)
	if err != nil {
		t.Fatal(err)
	}
	s := b.sample(t, id)
	// Its other tasks may charge or free a little between the two.
	const slack = 4 << 20
	if v := value(t, "memory.current", s.Current); bytes > v+slack || v > bytes+slack {
		t.Errorf("memory.current alone is %d, in a sample it is %d", bytes, v)
	}
}

func sampleOverwrites(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	fresh := b.sample(t, id)
	var used memcg.Sample
	used.Stat.SetAll(memcg.Invalid)
	used.Current, used.Populated = memcg.Absent(memcg.Invalid), memcg.Value(99)
	used.SwapRoom = memcg.NoLimitFile(memcg.Invalid)
	used.Mems = memcg.NodesOf(1000)
	for range 3 {
		n := memcg.NodeStats{ID: 999}
		n.SetAll(memcg.Invalid)
		used.Nodes = append(used.Nodes, n)
	}
	if err := b.Host.Sample(id, &used); err != nil {
		t.Fatal(err)
	}
	for k := range memcg.NumStats {
		if got, want := used.Stat.Get(k).State(), fresh.Stat.Get(k).State(); got != want {
			t.Errorf("%v is %v in a used sample, %v in a fresh one", k, got, want)
		}
	}
	if used.Mems != fresh.Mems || used.Populated != fresh.Populated || used.SwapRoom.State() != fresh.SwapRoom.State() ||
		used.Current.State() != fresh.Current.State() || len(used.Nodes) != len(fresh.Nodes) {
		t.Errorf("a used sample reads differently:\n%+v\n%+v", used, *fresh)
	}
	for i := range used.Nodes {
		if used.Nodes[i].ID != fresh.Nodes[i].ID {
			t.Errorf("node %d where a fresh sample has node %d", used.Nodes[i].ID, fresh.Nodes[i].ID)
		}
	}
}

func countersGrow(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	before := b.sample(t, id)
	b.Host.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 1 << 20})
	after := b.sample(t, id)
	for k := memcg.StatRefault; k < memcg.NumStats; k++ {
		if before.Stat.Get(k).Known() {
			if _, ok := after.Stat.Since(&before.Stat, k); !ok {
				t.Errorf("%v went from %v to %v", k, before.Stat.Get(k), after.Stat.Get(k))
			}
		}
	}
}

func removedIsGone(t *testing.T, b Bench) {
	b.Make(t, b.Fresh)
	id := b.find(t, b.Fresh)
	b.sample(t, id)
	b.Remove(t, b.Fresh)
	var s memcg.Sample
	wantKind(t, "Sample of a removed cgroup", b.Host.Sample(id, &s), memcg.ErrGone)
	_, err := b.Host.Current(id)
	wantKind(t, "Current of a removed cgroup", err, memcg.ErrGone)
	for _, other := range b.list(t) {
		if other == id {
			t.Errorf("%s is still listed", id)
		}
	}
	b.Host.Forget(id)
}

func pathComesBack(t *testing.T, b Bench) {
	b.Make(t, b.Fresh)
	old := b.find(t, b.Fresh)
	b.sample(t, old)
	b.Remove(t, b.Fresh)
	b.Make(t, b.Fresh)
	defer b.Remove(t, b.Fresh)
	again := b.find(t, b.Fresh)
	if again.Inode == old.Inode {
		t.Fatalf("%s came back with the same inode %d", b.Fresh, old.Inode)
	}
	var s memcg.Sample
	wantKind(t, "Sample of the cgroup that was there before", b.Host.Sample(old, &s), memcg.ErrGone)
	b.sample(t, again)
}

func forgetAndSample(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	b.sample(t, id)
	b.Host.Forget(id)
	b.Host.Forget(id)
	b.sample(t, id)
}

func hostSample(t *testing.T, b Bench) {
	var h memcg.HostSample
	if err := b.Host.HostSample(&h); err != nil {
		t.Fatal(err)
	}
	if h.PageSize == 0 || h.PageSize&(h.PageSize-1) != 0 {
		t.Errorf("page size %d", h.PageSize)
	}
	if value(t, "MemTotal", h.MemTotal) == 0 {
		t.Error("MemTotal is 0")
	}
	if free, all := value(t, "SwapFree", h.SwapFree), value(t, "SwapTotal", h.SwapTotal); free > all {
		t.Errorf("%d bytes of swap are free, of %d", free, all)
	}
	last, memory := memcg.NodeID(-1), false
	for _, n := range h.Nodes {
		if n.ID <= last {
			t.Errorf("node %d comes after node %d", n.ID, last)
		}
		last, memory = n.ID, memory || n.HasMemory
		if len(n.Distance) != 0 && len(n.Distance) != len(h.Nodes) {
			t.Errorf("node %d has %d distances on a host of %d nodes", n.ID, len(n.Distance), len(h.Nodes))
		}
	}
	if len(h.Nodes) > 0 && !memory {
		t.Error("no node has memory")
	}
}

func watchHears(t *testing.T, b Bench) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ch, err := b.Host.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.Make(t, b.Fresh)
	defer b.Remove(t, b.Fresh)
	select {
	case <-ch:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		t.Errorf("no signal within %v of a new cgroup", patience)
	}
}
