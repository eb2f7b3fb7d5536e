package numapolicy

import "github.com/memagent/memagent/memcg"

// AnonOn returns how many bytes of the cgroup's anon lie on the given nodes: how
// far a change has moved memory off the nodes that were left is told by this,
// before and after. Page cache is not counted: what no process maps, and what is
// shared, stays behind, and is no reason to try again (case c49). It is absent
// where memory.numa_stat is, or a size in it.
func AnonOn(s *memcg.Sample, nodes memcg.NodeMask) memcg.Field {
	return onNodes(s, nodes, memcg.NodeAnon)
}

// LiesOn returns how many bytes of the cgroup's anon and file lie on the given nodes,
// absent as of AnonOn.
func LiesOn(s *memcg.Sample, nodes memcg.NodeMask) memcg.Field {
	return onNodes(s, nodes, memcg.NodeAnon, memcg.NodeFile)
}

// onNodes adds sizes up over nodes.
func onNodes(s *memcg.Sample, nodes memcg.NodeMask, sizes ...memcg.NodeStat) memcg.Field {
	if s.NodesState != memcg.Present {
		return memcg.Absent(s.NodesState)
	}
	sum := memcg.Value(0)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; nodes.Has(n.ID) {
			for _, size := range sizes {
				sum = memcg.Sum(sum, n.Get(size))
			}
		}
	}
	return sum
}

// stayedLeast is how much anon must have been on the nodes that were left for
// its staying to count: figures by node lag by up to 64 pages for each CPU, a
// MiB on four. More leaves what a small cgroup has where it is; less writes a set
// again for a lag.
const stayedLeast = 4 << 20

// Stayed reports whether a change has moved next to nothing off the nodes that
// were left, by AnonOn before and after: more than half is there still. A kernel
// moves from the nodes that the set had when it last gave one to the processes of
// the cgroup (old_mems_allowed in kernel/cgroup/cpuset.c). Where all of them were
// started in the cgroup (CLONE_INTO_CGROUP) it never did, so there is nothing to
// move from, and the first change moves nothing, while the second one does.
func Stayed(was, still memcg.Field) bool {
	before, ok := was.Get()
	after, known := still.Get()
	return ok && known && before >= stayedLeast && after > before/2
}
