package numapolicy

import "github.com/memagent/memagent/memcg"

// room works out how many bytes the kernel would migrate to make target the
// effective set, and whether every node they would go to has room. ok is false
// where a size is not known.
//
// As do_migrate_pages has it (mm/mempolicy.c): where both sets have as many
// nodes, every node keeps its rank and so everything may move; where they do
// not, nodes that are in both stay as they are. The node of rank r goes to the
// node of rank r modulo the number of new nodes.
func (in *MemsInput) room(target memcg.NodeMask) (moves uint64, ok, fits bool) {
	from := in.Sample.MemsEffective
	same := from.Len() == target.Len()
	// Page cache that no process maps stays where it is.
	mapped, known := in.Sample.Stat.Get(memcg.StatFileMapped).Get()
	rank, fits := 0, true
	for to := range target.All {
		var coming uint64
		rank = 0
		for id := range from.All {
			goes := nth(target, rank%target.Len())
			rank++
			if goes != to || id == to || !same && target.Has(id) {
				continue
			}
			size, sized := moveable(in.Sample, id, mapped, known)
			if !sized {
				return 0, false, false
			}
			coming = addSaturated(coming, size)
		}
		moves = addSaturated(moves, coming)
		fits = fits && coming <= in.Nodes.spare(to)
	}
	return moves, true, fits
}

// moveable is the most bytes that a migration moves off one node: its anon, and
// of its file what is mapped anywhere.
func moveable(s *memcg.Sample, id memcg.NodeID, mapped uint64, known bool) (bytes uint64, ok bool) {
	n, listed := s.Node(id)
	if !listed {
		return 0, true
	}
	anon, ok1 := n.Get(memcg.NodeAnon).Get()
	file, ok2 := n.Get(memcg.NodeFile).Get()
	if known {
		file = min(file, mapped)
	}
	return addSaturated(anon, file), ok1 && ok2
}

// nth returns the node of the given rank in a set that has so many.
func nth(set memcg.NodeMask, rank int) memcg.NodeID {
	for id := range set.All {
		if rank == 0 {
			return id
		}
		rank--
	}
	return -1
}
