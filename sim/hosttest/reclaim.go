package hosttest

import (
	"context"
	"errors"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// kinds an ordinary Reclaim may end with: all was done, or less was there.
func endedWell(t *testing.T, o memcg.Outcome) {
	t.Helper()
	if o.Err != nil {
		wantKind(t, "Reclaim", o.Err, memcg.ErrPartial)
	}
}

// written checks that the outcome tells all writes that the host counts.
func (b *Bench) written(t *testing.T, r memcg.Reclaim) memcg.Outcome {
	t.Helper()
	before := b.Host.Writes()
	o := b.Host.Reclaim(t.Context(), r)
	if o.Request != r {
		t.Errorf("the outcome is of request %+v, want %+v", o.Request, r)
	}
	if n := b.Host.Writes() - before; n != uint64(o.Writes) {
		t.Errorf("the outcome has %d writes, the host counts %d", o.Writes, n)
	}
	if o.Asked > r.Bytes {
		t.Errorf("%d bytes were handed to the kernel, %d asked for", o.Asked, r.Bytes)
	}
	return o
}

func lessThanAPage(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	for _, bytes := range []uint64{0, 1, 4095} {
		if o := b.Host.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: bytes}); o.Writes != 0 || o.Asked != 0 {
			t.Errorf("%d bytes: %d writes for %d bytes; want nothing done", bytes, o.Writes, o.Asked)
		}
	}
}

func reclaimJudged(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	before := b.sample(t, id)
	o := b.written(t, memcg.Reclaim{Cgroup: id, Bytes: 2 << 20})
	endedWell(t, o)
	after := b.sample(t, id)
	if o.Writes == 0 {
		t.Error("nothing was written")
	}
	if taken := value(t, "Reclaimed", o.Reclaimed); o.Err == nil && taken < 2<<20 {
		t.Errorf("%d bytes were reclaimed without an error, 2 MiB asked for", taken)
	}
	shrunk := value(t, "Shrunk", o.Shrunk)
	if o.Err == nil && shrunk == 0 {
		t.Error("memory.current did not fall")
	}
	if was, is := value(t, "memory.current", before.Current), value(t, "memory.current", after.Current); is > was {
		t.Errorf("memory.current went from %d to %d", was, is)
	}
}

func reclaimFloor(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	current := value(t, "memory.current", b.sample(t, id).Current)
	if o := b.Host.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 2 << 20, Floor: 2 * current}); o.Writes != 0 || o.Asked != 0 {
		t.Errorf("%d writes for %d bytes below the floor", o.Writes, o.Asked)
	}
}

func reclaimCut(t *testing.T, b Bench) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := b.Host.Reclaim(ctx, memcg.Reclaim{Cgroup: b.find(t, b.Busy), Bytes: 2 << 20})
	if o.Err == nil || o.Writes != 0 {
		t.Errorf("%d writes after ctx had ended, error %v", o.Writes, o.Err)
	}
}

func reclaimGone(t *testing.T, b Bench) {
	b.Make(t, b.Fresh)
	id := b.find(t, b.Fresh)
	b.sample(t, id)
	b.Remove(t, b.Fresh)
	o := b.Host.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 2 << 20})
	wantKind(t, "Reclaim from a removed cgroup", o.Err, memcg.ErrGone)
	if v, ok := o.Reclaimed.Get(); ok && v > 0 {
		t.Errorf("%d bytes were reclaimed from a removed cgroup", v)
	}
}

func reclaimFileOnly(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	r := memcg.Reclaim{Cgroup: id, Bytes: 1 << 20, Swappiness: memcg.SwappinessOf(0)}
	o := b.written(t, r)
	if !b.Swappiness {
		wantKind(t, "Reclaim with a swappiness", o.Err, memcg.ErrUnsupported)
		if v, ok := o.Reclaimed.Get(); ok && v > 0 {
			t.Errorf("%d bytes were reclaimed by a request that was refused", v)
		}
		return
	}
	endedWell(t, o)
	if v, ok := o.SwapOut.Get(); ok && v != 0 {
		t.Errorf("%d bytes were swapped out with swappiness 0", v)
	}
}

// noNodes reports whether a host cannot keep a request to nodes, and says so as
// it must: nothing is written then.
func noNodes(t *testing.T, o memcg.Outcome) bool {
	t.Helper()
	if !errors.Is(o.Err, memcg.ErrUnsupported) && !errors.Is(o.Err, memcg.ErrDenied) {
		return false
	}
	if o.Writes != 0 || o.Via != "" {
		t.Errorf("%d writes through %q came with %v", o.Writes, o.Via, o.Err)
	}
	return true
}

func reclaimByNode(t *testing.T, b Bench) {
	const ask = 2 << 20
	id := b.find(t, b.Busy)
	before := b.sample(t, id)
	if before.NodesState != memcg.Present {
		t.Skip("memory.numa_stat is " + before.NodesState.String() + ": a host with NUMA has it")
	}
	most, has := memcg.NodeID(0), uint64(0)
	for i := range before.Nodes {
		n := &before.Nodes[i]
		if m := value(t, "anon of a node", n.Get(memcg.NodeAnon)) + value(t, "file of a node", n.Get(memcg.NodeFile)); m > has {
			most, has = n.ID, m
		}
	}
	o := b.written(t, memcg.Reclaim{Cgroup: id, Bytes: ask, Nodes: memcg.NodesOf(most)})
	if noNodes(t, o) {
		return
	}
	endedWell(t, o)
	if o.Via == "" || len(o.Nodes) != len(before.Nodes) {
		t.Errorf("through %q, and %d nodes are told of %d", o.Via, len(o.Nodes), len(before.Nodes))
	}
	// memory.numa_stat may lag by 64 pages a CPU, and a batch may be taken beyond
	// what was asked for.
	const slack = 1 << 20
	for _, n := range o.Nodes {
		gone := value(t, "Anon", n.Anon) + value(t, "File", n.File)
		switch {
		case n.Node != most && gone > slack:
			t.Errorf("%d bytes went from node %d, asked for was node %d", gone, n.Node, most)
		case n.Node == most && o.Err == nil && gone < ask-slack, gone > ask+slack:
			t.Errorf("%d bytes went from node %d, asked for were %d", gone, n.Node, uint64(ask))
		}
	}
}

func reclaimNoNode(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	o := b.written(t, memcg.Reclaim{Cgroup: id, Bytes: 1 << 20, Nodes: memcg.NodesOf(memcg.MaxNode)})
	if noNodes(t, o) {
		return
	}
	wantKind(t, "Reclaim from a node without memory", o.Err, memcg.ErrPartial)
	if n := value(t, "Reclaimed", o.Reclaimed); n != 0 {
		t.Errorf("%d bytes were reclaimed", n)
	}
}

func observerWritesNothing(t *testing.T, b Bench) {
	if b.Observer == nil {
		t.Skip("no host to observe with: set Bench.Observer to the same host opened for observing")
	}
	var s memcg.Sample
	var h memcg.HostSample
	ids, err := b.Observer.Cgroups(nil)
	if err != nil || len(ids) == 0 {
		t.Fatalf("Cgroups: %v, %v", ids, err)
	}
	for _, id := range ids {
		if err := b.Observer.Sample(id, &s); err != nil {
			t.Errorf("Sample(%v): %v", id, err)
		}
	}
	if err := b.Observer.HostSample(&h); err != nil {
		t.Error(err)
	}
	o := b.Observer.Reclaim(t.Context(), memcg.Reclaim{Cgroup: ids[0], Bytes: 1 << 20})
	wantKind(t, "Reclaim by an observer", o.Err, memcg.ErrReadOnly)
	if n := b.Observer.Writes(); n != 0 || o.Writes != 0 {
		t.Errorf("an observer made %d writes, its outcome says %d", n, o.Writes)
	}
}
