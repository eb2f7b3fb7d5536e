package sim

import (
	"fmt"
	"syscall"
	"time"

	"github.com/memagent/memagent/memcg"
)

// via is what a request would be carried out with on a real host. A request
// for nodes goes through lru_gen there. The simulated kernels have no
// generations: what is at the tail of inactive lists goes instead.
func via(r memcg.Reclaim) string {
	if r.Nodes.Empty() {
		return memcg.ViaReclaim
	}
	return memcg.ViaLRUGen
}

// admitNodes refuses a request for nodes on a host that cannot keep to them.
func (h *Host) admitNodes(r memcg.Reclaim) error {
	if h.cfg.NoNodeReclaim {
		return fmt.Errorf("sim: reclaim from %s on nodes %v: neither lru_gen nor DAMON is to be had: %w", r.Cgroup.Path, r.Nodes, memcg.ErrUnsupported)
	}
	return nil
}

// evictFrom is one command that takes from some nodes alone, with any
// swappiness whatever memory.reclaim takes: 1 is 0, and 200 is anon first. It
// asks in small batches, so that little goes beyond what was asked for.
func (h *Host) evictFrom(on memcg.NodeMask) func(c *cgroup, pages uint64, swappiness int) (time.Duration, error) {
	var nodes []int
	for i := range h.nodes {
		if on.Has(h.nodes[i].id) {
			nodes = append(nodes, i)
		}
	}
	return func(c *cgroup, pages uint64, swappiness int) (took time.Duration, err error) {
		rounds := []int{swappiness}
		switch swappiness {
		case 1:
			rounds[0] = 0
		case 200:
			rounds = []int{maxSwappiness, 200}
		}
		var done uint64
		for _, s := range rounds {
			for vain := 0; done < pages && vain <= maxRetries; {
				got := h.shrink(request{target: c, nodes: nodes, goal: min(pages-done, batch), swappiness: s, by: proactive})
				took += h.toil(got)
				if done += got.reclaimed; got.reclaimed == 0 {
					vain++
				}
			}
		}
		if done < pages {
			return took, fmt.Errorf("sim: reclaim from %s on nodes %v: %w: %w", c.id.Path, on, memcg.ErrPartial, syscall.EAGAIN)
		}
		return took, nil
	}
}

// nodesOf reads memory.numa_stat for a request that names nodes, nil for any
// other.
func (h *Host) nodesOf(c *cgroup, r memcg.Reclaim) []memcg.NodeStats {
	if r.Nodes.Empty() {
		return nil
	}
	nodes, _ := h.sampleNodes(c, nil)
	return nodes
}

// judgeNodes tells by node what is gone since an earlier reading, nil where
// there is none.
func (h *Host) judgeNodes(c *cgroup, before []memcg.NodeStats) (out []memcg.NodeOutcome) {
	if before == nil {
		return nil
	}
	after, _ := h.sampleNodes(c, nil)
	for i := range after {
		b, a := &before[i], &after[i]
		fall := func(k memcg.NodeStat) memcg.Field {
			d, ok := b.Get(k).Change(a.Get(k))
			if !ok {
				return memcg.Absent(a.Get(k).State())
			}
			return memcg.Value(uint64(max(d, 0)))
		}
		n := memcg.NodeOutcome{Node: a.ID, Anon: fall(memcg.NodeAnon), File: fall(memcg.NodeFile)}
		if d, ok := a.Get(memcg.NodeSteal).Since(b.Get(memcg.NodeSteal)); ok {
			n.Reclaimed = memcg.Value(d * PageSize)
		} else {
			n.Reclaimed = memcg.Absent(a.Get(memcg.NodeSteal).State())
		}
		out = append(out, n)
	}
	return out
}
