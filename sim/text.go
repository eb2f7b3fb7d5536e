package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/memagent/memagent/memcg"
)

// String returns the whole state as text: the host, its nodes, and every
// cgroup with its limits, lists, balance, events and workloads. Two hosts that
// were given the same calls print the same.
func (h *Host) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "kernel %s  time %v  writes %d\n", h.kernel.Name, h.now, h.writes)
	fmt.Fprintf(&b, "swap %s  %d of %d pages\n", h.swapClass, h.swapUsed, h.swapTotal)
	for i := range h.nodes {
		n := &h.nodes[i]
		fmt.Fprintf(&b, "node %d  %d of %d pages free  low %d  high %d\n", n.id, n.free, n.total, n.low, n.high)
	}
	for _, c := range h.root().subtree(nil) {
		h.describe(&b, c)
	}
	for _, f := range h.faults {
		if !f.met {
			fmt.Fprintf(&b, "fault %v\n", f.Fault)
		}
	}
	return b.String()
}

func (h *Host) describe(b *strings.Builder, c *cgroup) {
	fmt.Fprintf(b, "%s  inode %d  usage %d  swap %d  high %s  max %s  swap.max %s  mems %s\n", c.id.Path, c.id.Inode,
		c.usage, c.swap, pagesText(c.limits.High), pagesText(c.limits.Max), pagesText(c.limits.SwapMax), c.allowed)
	for i := range c.vecs {
		v := &c.vecs[i]
		if *v == (vec{}) {
			continue
		}
		fmt.Fprintf(b, "  N%d", h.nodes[i].id)
		for l, name := range listNames {
			if v.size[l] > 0 {
				fmt.Fprintf(b, "  %s %d", name, v.size[l])
				if own := v.lists[l].n; own != v.size[l] {
					fmt.Fprintf(b, " (own %d)", own)
				}
			}
		}
		fmt.Fprintf(b, "  age %d  cost %d/%d\n", v.age, v.cost[anonKind], v.cost[fileKind])
	}
	if s := h.counted(c); s != "" {
		fmt.Fprintf(b, "  %s\n", s)
	}
	for _, j := range c.jobs {
		state := ""
		if j.finished {
			state = "  finished"
		}
		fmt.Fprintf(b, "  job %d  %s  touches %d  refaults %d  passes %d%s\n", j.order, j.name,
			j.stats.Touches, j.stats.Refaults, j.stats.Passes, state)
	}
}

func (h *Host) counted(c *cgroup) string {
	var parts []string
	add := func(name string, n uint64) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, n))
		}
	}
	for k, name := range counterNames {
		add(name, c.sum(counter(k)))
	}
	for e, name := range eventNames {
		add("events."+name, c.events[e])
	}
	add("swap.max", c.swapEvents[swapMax])
	add("swap.fail", c.swapEvents[swapFail])
	if d := c.some.at(h.now); d > 0 {
		parts = append(parts, "some "+d.Truncate(time.Microsecond).String())
	}
	return strings.Join(parts, "  ")
}

var eventNames = [numEvents]string{"low", "high", "max", "oom", "oom_kill"}

var counterNames = [numCounters]string{
	"refault_anon", "refault_file", "activate_anon", "activate_file", "restore_anon", "restore_file",
	"scan_kswapd", "scan_direct", "scan_proactive", "steal_kswapd", "steal_direct", "steal_proactive",
	"refill", "pgactivate", "pgdeactivate", "fault", "majfault", "swapin", "swapout",
}

func pagesText(l memcg.Limit) string {
	if b, ok := l.Bytes(); ok {
		return strconv.FormatUint(b/PageSize, 10)
	}
	return shown(l).String()
}

// size prints bytes in the largest unit that divides them.
func size(bytes uint64) string {
	for _, u := range []struct {
		name string
		n    uint64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.n && bytes%u.n == 0 {
			return strconv.FormatUint(bytes/u.n, 10) + u.name
		}
	}
	return strconv.FormatUint(bytes, 10) + "B"
}
