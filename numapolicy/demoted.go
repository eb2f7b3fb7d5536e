package numapolicy

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// owedFor is how long what was moved to slower nodes stands for what was asked for.
// After that a request is a new one, for memory that has become cold since. Longer
// takes from slow nodes what nobody has asked for lately; shorter forgets it while a
// large request, in several parts, is still on its way.
const owedFor = time.Minute

// owed is what requests have moved to slower nodes instead of freeing it. Kernels
// count such pages as reclaimed, so a request seems to be carried out and memory.current
// has not fallen: the same is wanted again at the next look, moves other and warmer
// pages, and again (135 MiB were moved for 64). Plain reclaim takes from all nodes in
// proportion and cannot be told to go on where the pages are now; a request by node can.
type owed struct {
	bytes   uint64
	age     time.Duration // since the last of it was moved
	slow    []onSlow
	page    float64
	entries []Entry[memcg.NodeID] // reused
	draws   Lottery[memcg.NodeID]
}

// onSlow is what lies on a slow node, in bytes.
type onSlow struct {
	id         memcg.NodeID
	anon, file uint64
}

// gives returns what a request with a swappiness could take.
func (n *onSlow) gives(swappiness int) (bytes uint64) {
	if swappiness > 0 {
		bytes = n.anon
	}
	if swappiness < memcg.SwappinessMax {
		bytes = addSaturated(bytes, n.file)
	}
	return bytes
}

// look takes in what lies on slow nodes.
func (w *owed) look(in *Input, page float64) {
	if w.age += max(in.Elapsed, 0); w.age >= owedFor {
		w.bytes = 0
	}
	w.slow, w.page = w.slow[:0], page
	slow, there := in.Nodes.slow().Without(in.Nodes.short), uint64(0)
	for i := range in.Sample.Nodes {
		n := &in.Sample.Nodes[i]
		if !slow.Has(n.ID) {
			continue
		}
		lies := onSlow{id: n.ID}
		lies.file, _ = n.Get(memcg.NodeFile).Get()
		if in.swapHasRoom(page) {
			lies.anon, _ = n.Get(memcg.NodeAnon).Get()
		}
		w.slow = append(w.slow, lies)
		there = addSaturated(there, addSaturated(lies.anon, lies.file))
	}
	// A kernel may have taken some of it from there for the same request.
	w.bytes = min(w.bytes, there)
}

// slow returns the nodes with memory that have no CPU.
func (n *Nodes) slow() memcg.NodeMask { return n.memory.Without(n.cpu) }

// Moved takes in what came of a request of the cgroup that was made to free memory,
// and not for a short node's sake. It reports whether that was for what an earlier one
// had moved: as much of that as the kernel was asked for is done with, whether it was
// to be had or not, and all of it where the kernel could not be asked.
func (st *State) Moved(o *memcg.Outcome) (taken bool) {
	w := &st.owed
	if asked := o.Request.Nodes; !asked.Empty() && asked.Without(w.nodes()).Empty() {
		done := o.Asked
		if done == 0 {
			done = o.Request.Bytes
		}
		w.bytes -= min(w.bytes, done)
		return true
	}
	if moved, ok := o.Demoted.Get(); ok && moved > 0 {
		w.bytes, w.age = addSaturated(w.bytes, moved), 0
	}
	return false
}

func (w *owed) nodes() (m memcg.NodeMask) {
	for i := range w.slow {
		m.Add(w.slow[i].id)
	}
	return m
}

// Instead returns d, or where requests have lately moved memory to slower nodes that
// is still there, the decision to take so much of it there. asked is the swappiness
// of the request. These nodes need no name: what was moved there was to be freed, no
// more of them is taken than that, and plain reclaim takes from them as well. A short
// node is spared, as everywhere. The host must be able to reclaim by node.
func (st *State) Instead(d Decision, asked memcg.Swappiness, from Source) Decision {
	w, s := &st.owed, swappinessOf(asked)
	if w.bytes == 0 || from == nil || d.Reach == Nowhere {
		return d
	}
	w.entries = w.entries[:0]
	for i := range w.slow {
		n := &w.slow[i]
		w.entries = append(w.entries, Entry[memcg.NodeID]{Item: n.id, Weight: uint64(float64(n.gives(s)) / w.page)})
	}
	w.draws.Build(w.entries)
	drawing, ok := w.draws.Draw(from)
	if !ok {
		return d
	}
	d.Reach, d.Rule, d.Demoted = OneNode, "demoted", true
	d.Nodes, d.Drawing = memcg.NodesOf(drawing.Item), drawing
	d.FileOnly, d.Swappiness = false, asked
	for i := range w.slow {
		if n := &w.slow[i]; n.id == drawing.Item {
			d.Most = min(w.bytes, n.gives(s))
		}
	}
	return d
}
