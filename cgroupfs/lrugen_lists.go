package cgroupfs

import (
	"cmp"
	"slices"

	"github.com/memagent/memagent/memcg"
)

// lruvec is one list that a request may take from: one cgroup's on one node.
type lruvec struct {
	cgroup memcg.ID
	id     uint64 // the cgroup's in lru_gen
	node   memcg.NodeID
	last   uint64 // the youngest generation there is
	seq    uint64 // the youngest generation that may go
	give          // pages in seq and in older ones
	// late is what could go but for being in too young a generation: one of the
	// two youngest, from which the kernel never evicts, or one that is not the
	// oldest where that is needed.
	late  give
	asked uint64 // pages that were asked of it
}

// give is how much a list can give, in pages.
type give struct{ anon, file uint64 }

func (g *give) add(gen memcg.Generation) { g.anon, g.file = g.anon+gen.AnonPages, g.file+gen.FilePages }

// pages returns how many pages a swappiness lets go.
func (g give) pages(swappiness int) uint64 {
	switch swappiness {
	case 0:
		return g.file
	case memcg.SwappinessMax:
		return g.anon
	}
	return g.anon + g.file
}

// look finds the lists that a request may take from, in this tick's reading or
// in a fresh one: lists of the cgroup and of those below it, on the nodes that
// are named if any are.
func (e *eviction) look(fresh bool) error {
	fs := e.t.fs
	l := &fs.lru
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := fs.readLRUGen(fresh); err != nil {
		return err
	}
	e.vecs, e.there = e.vecs[:0], false
	since := fs.now().Sub(l.read)
	first, last, _ := l.subtree(e.r.Cgroup)
	for i := first; i < last; i++ {
		kernelID, gens := l.entry(i)
		for list := range lists(gens) {
			if !e.r.Nodes.Empty() && !e.r.Nodes.Has(list[0].Node) {
				continue
			}
			e.there = true
			v := lruvec{cgroup: l.ids[i], id: kernelID, node: list[0].Node, last: list[len(list)-1].Seq}
			for _, g := range list {
				if g.Age+since < e.r.OlderThan {
					break
				}
				if !g.Evictable {
					v.late.add(g)
					continue
				}
				if e.mixes() && v.pages(anonFirst) > 0 {
					v.late.add(g)
					continue
				}
				v.seq = g.Seq
				v.add(g)
			}
			if v.pages(e.counts)+v.late.pages(e.counts) > 0 {
				e.vecs = append(e.vecs, v)
			}
		}
	}
	slices.SortStableFunc(e.vecs, func(a, b lruvec) int { return cmp.Compare(b.pages(e.counts), a.pages(e.counts)) })
	return nil
}

// lists yields the generations of one node after the other.
func lists(gens []memcg.Generation) func(yield func([]memcg.Generation) bool) {
	return func(yield func([]memcg.Generation) bool) {
		for len(gens) > 0 {
			n := 1
			for n < len(gens) && gens[n].Node == gens[0].Node {
				n++
			}
			if !yield(gens[:n]) {
				return
			}
			gens = gens[n:]
		}
	}
}
