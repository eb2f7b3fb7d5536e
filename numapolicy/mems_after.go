package numapolicy

import "github.com/memagent/memagent/memcg"

// CheckMems judges a write of cpuset.mems by what cpuset.mems.effective reads
// afterwards. A set that the kernel accepted and did not grant is taken back
// (case c48): the plan then writes before, the value before the write, at once
// and whatever the interval between changes.
func CheckMems(wrote, effective, before memcg.NodeMask) MemsPlan {
	if effective == wrote {
		return MemsPlan{Rule: "granted"}
	}
	return MemsPlan{Set: true, Mems: before, Inherit: before.Empty(), Rule: "not-granted"}
}

// RestoreMems gives a cgroup back the value that was found. Where that was
// empty, the first attempt writes an empty value. Kernels up to 6.12 refuse that
// with ENOSPC while a process is in the cgroup (case c46); called again with
// refused true, the plan is the parent's effective set, which grants the same
// nodes until the parent's set changes.
func RestoreMems(original, parent memcg.NodeMask, refused bool) MemsPlan {
	switch {
	case !original.Empty():
		return MemsPlan{Set: true, Mems: original, Rule: "restore"}
	case !refused:
		return MemsPlan{Set: true, Inherit: true, Rule: "restore-inherits"}
	case parent.Empty():
		return MemsPlan{Rule: "parent-unknown"}
	}
	return MemsPlan{Set: true, Mems: parent, Rule: "restore-as-parent"}
}

// Migrated tells how far a change has moved memory off the nodes that were
// left, in bytes of anon there before and after. Page cache is not counted: what
// no process maps, and what is shared, stays behind, and is no reason to try
// again (case c49). Both are absent where a size is.
func Migrated(before, after *memcg.Sample, left memcg.NodeMask) (was, still memcg.Field) {
	return anonOn(before, left), anonOn(after, left)
}

func anonOn(s *memcg.Sample, nodes memcg.NodeMask) memcg.Field {
	if s.NodesState != memcg.Present {
		return memcg.Absent(s.NodesState)
	}
	sum := memcg.Value(0)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; nodes.Has(n.ID) {
			sum = memcg.Sum(sum, n.Get(memcg.NodeAnon))
		}
	}
	return sum
}
