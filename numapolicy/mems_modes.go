package numapolicy

import "github.com/memagent/memagent/memcg"

// compactMargin is how much more than the working set a smaller set of nodes
// must hold before it is chosen, in percent; a larger set is chosen only when
// the present one does not hold the working set itself. Between the two nothing
// changes. More margin leaves memory spread; less grows out of the set again.
const compactMargin = 125

// target returns the set that the mode wants, or a plan that says why there is
// none.
func (in *MemsInput) target() (memcg.NodeMask, MemsPlan) {
	switch in.Mode {
	case MemsAvoidShort:
		return in.withoutShort(in.found())
	case MemsSpread:
		return in.withoutShort(in.Parent)
	case MemsCompact:
		return in.compact()
	}
	return memcg.NodeMask{}, MemsPlan{Rule: "unknown-mode"}
}

// withoutShort keeps what the cgroup has of the base, without nodes that have
// been short for a while or have nothing left but anon, and adds those of the base
// that have had room well above their marks for a while.
func (in *MemsInput) withoutShort(base memcg.NodeMask) (memcg.NodeMask, MemsPlan) {
	has := in.Sample.MemsEffective.And(base)
	target := has.Without(in.Nodes.shortFor(leaveAfter)).Without(in.Nodes.exhausted())
	for id := range in.returns(base.And(in.usable()).Without(has)).All {
		target.Add(id)
	}
	// A set of slow nodes alone, which the cgroup had only among others, is
	// no place to send it.
	if target.And(in.usable()).Empty() && !has.And(in.usable()).Empty() {
		return memcg.NodeMask{}, MemsPlan{Rule: "every-node-short", Widen: in.widen()}
	}
	return target, MemsPlan{}
}

// compact looks for the fewest nodes, near each other, that hold the working
// set.
func (in *MemsInput) compact() (memcg.NodeMask, MemsPlan) {
	need, ok := in.WorkingSet.Get()
	if !ok {
		return memcg.NodeMask{}, MemsPlan{Rule: "working-set-unknown"}
	}
	holds, ok := in.holds(in.Sample.MemsEffective)
	if !ok {
		return memcg.NodeMask{}, MemsPlan{Rule: "no-figures"}
	}
	margin := float64(need) * compactMargin / 100
	best, rule := in.nearest(in.found().And(in.usable()), margin)
	switch {
	case rule != "":
		return memcg.NodeMask{}, MemsPlan{Rule: rule}
	case best.Empty() && holds < float64(need):
		return memcg.NodeMask{}, MemsPlan{Rule: "nowhere-fits", Widen: in.widen()}
	case best.Empty() || holds >= float64(need) && best.Len() >= in.Sample.MemsEffective.Len():
		return memcg.NodeMask{}, MemsPlan{Rule: "compact-already"}
	}
	return best, MemsPlan{}
}

// capacity is how many bytes of the cgroup a node holds or could hold before it
// would be at its high mark. ok is false where what lies there is not known.
func (in *MemsInput) capacity(id memcg.NodeID) (bytes float64, ok bool) {
	if l := in.Nodes.level(id); l == nil || !l.known {
		return 0, false
	}
	size, ok := lies(in.Sample, id)
	return float64(size) + float64(in.Nodes.spare(id)), ok
}

// lies returns the bytes of anon and file of the cgroup on a node, 0 where
// memory.numa_stat does not list it. ok is false where a size is absent.
func lies(s *memcg.Sample, id memcg.NodeID) (bytes uint64, ok bool) {
	n, listed := s.Node(id)
	if !listed {
		return 0, true
	}
	return memcg.Sum(n.Get(memcg.NodeAnon), n.Get(memcg.NodeFile)).Get()
}

// holds is the capacity of a set of nodes.
func (in *MemsInput) holds(set memcg.NodeMask) (bytes float64, ok bool) {
	for id := range set.All {
		c, known := in.capacity(id)
		if !known {
			return 0, false
		}
		bytes += c
	}
	return bytes, true
}

// nearest returns the set with the fewest nodes out of from that holds need
// bytes: from every node on, the nearest ones are added until it does. Among
// sets of the same number the one of the smallest distance from its first node
// wins, then the one that holds most of the cgroup now, then the lowest first
// id. It is empty where no set holds so much; rule says why none can be found.
func (in *MemsInput) nearest(from memcg.NodeMask, need float64) (best memcg.NodeMask, rule string) {
	bestFar, bestHas := 0, -1.0
	for start := range from.All {
		set, far, has, held := memcg.NodeMask{}, 0, 0.0, 0.0
		for next, ok := start, true; ok; next, ok = in.nextNearest(start, from.Without(set)) {
			c, known := in.capacity(next)
			if !known {
				return memcg.NodeMask{}, "no-figures"
			}
			size, _ := lies(in.Sample, next)
			if next != start {
				d, known := distance(in.Host, start, next)
				if !known {
					return memcg.NodeMask{}, "distances-unknown"
				}
				far += d
			}
			set.Add(next)
			held, has = held+c, has+float64(size)
			if held >= need {
				break
			}
			if !best.Empty() && set.Len() >= best.Len() {
				break
			}
		}
		if held < need {
			continue
		}
		fewer, same := best.Empty() || set.Len() < best.Len(), set.Len() == best.Len()
		if fewer || same && (far < bestFar || far == bestFar && has > bestHas) {
			best, bestFar, bestHas = set, far, has
		}
	}
	return best, ""
}

// nextNearest returns the node out of from that is nearest to start; the lowest
// id wins a tie, and a node of unknown distance comes last.
func (in *MemsInput) nextNearest(start memcg.NodeID, from memcg.NodeMask) (next memcg.NodeID, ok bool) {
	best := 0
	for id := range from.All {
		d, known := distance(in.Host, start, id)
		if !known {
			d = 1 << 30
		}
		if !ok || d < best {
			next, best, ok = id, d, true
		}
	}
	return next, ok
}

// distance is the kernel's distance from one node to another, 10 for itself.
// The columns of a row are the online nodes, and not ids.
func distance(h *memcg.HostSample, from, to memcg.NodeID) (d int, ok bool) {
	row, column := -1, -1
	for i := range h.Nodes {
		if h.Nodes[i].ID == from {
			row = i
		}
		if h.Nodes[i].ID == to {
			column = i
		}
	}
	if row < 0 || column < 0 || len(h.Nodes[row].Distance) != len(h.Nodes) {
		return 0, false
	}
	return h.Nodes[row].Distance[column], true
}
