package cgroupfs

import "github.com/memagent/memagent/memcg"

// nodes reads memory.numa_stat for a request that names nodes; nil for any
// other, and where there is none or it cannot be read, which is no reason not
// to carry a request out.
func (g *gauge) nodes(of memcg.NodeMask) []memcg.NodeStats {
	if of.Empty() {
		return nil
	}
	b, ok, err := g.file(memoryNumaStat)
	if err != nil || !ok {
		return nil
	}
	nodes, _ := parseNumaStat(b, nil)
	return nodes
}

// judgeNodes compares two readings, node by node of the later one. A node that
// the earlier lacks, because it came online meanwhile, has only absent fields.
func judgeNodes(before, after []memcg.NodeStats, page uint64) (out []memcg.NodeOutcome) {
	if before == nil {
		return nil
	}
	for i := range after {
		a := &after[i]
		var b memcg.NodeStats
		for j := range before {
			if before[j].ID == a.ID {
				b = before[j]
			}
		}
		out = append(out, memcg.NodeOutcome{Node: a.ID,
			Anon:      rise(a.Get(memcg.NodeAnon), b.Get(memcg.NodeAnon)),
			File:      rise(a.Get(memcg.NodeFile), b.Get(memcg.NodeFile)),
			Reclaimed: scaled(growth(b.Get(memcg.NodeSteal), a.Get(memcg.NodeSteal)), page)})
	}
	return out
}
