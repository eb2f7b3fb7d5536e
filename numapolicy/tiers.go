package numapolicy

import "github.com/memagent/memagent/memcg"

// fast returns the nodes that may be picked: those with memory and a CPU, and
// those with memory that the operator named. A node without a CPU is a slower
// tier or has a special purpose, and memory is not the agent's to place there.
func (n *Nodes) fast(named memcg.NodeMask) memcg.NodeMask {
	return n.memory.Without(n.memory.Without(n.cpu).Without(named))
}

// Outside returns how many bytes of the cgroup's anon and file lie on nodes
// outside of the given set. It is absent where memory.numa_stat is, or a size
// in it: what cannot be read has not been found to be inside.
func Outside(s *memcg.Sample, allowed memcg.NodeMask) memcg.Field {
	if s.NodesState != memcg.Present {
		return memcg.Absent(s.NodesState)
	}
	sum := memcg.Value(0)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !allowed.Has(n.ID) {
			sum = memcg.Sum(sum, n.Get(memcg.NodeAnon), n.Get(memcg.NodeFile))
		}
	}
	return sum
}

// spillSlack is how many bytes outside of the allowed nodes may grow before
// that counts: per-node figures lag by up to 64 pages for each CPU (the
// threshold of memcg_rstat flushes in mm/memcontrol.c), 32 MiB on 128 CPUs.
// More would hide a slow leak of pages; less would stop on noise.
const spillSlack = 32 << 20

// spill watches whether memory goes to nodes that the cgroup may not use.
// Kernels up to 6.12 ignore cpuset.mems when they demote (case c60), later ones
// may still do so for pages that are shared.
type spill struct {
	base    uint64 // the least bytes seen outside
	based   bool
	stopped bool
}

// look takes in one sample and reports whether reclaim must stop: memory
// outside has grown since it was least, and has not gone back since.
func (s *spill) look(outside memcg.Field) bool {
	bytes, ok := outside.Get()
	if !ok {
		return s.stopped
	}
	if !s.based || bytes < s.base {
		s.base, s.based = bytes, true
	}
	switch over := bytes - s.base; {
	case over > spillSlack:
		s.stopped = true
	case over <= spillSlack/2:
		s.stopped = false
	}
	return s.stopped
}
