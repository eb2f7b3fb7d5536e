package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

const mib = 1 << 20

// oneNode returns a host of one node with as much swap as a test may want.
func oneNode(t *testing.T, k Kernel, bytes uint64) *Host {
	t.Helper()
	return New(Config{
		Nodes: []NodeConfig{{Bytes: bytes}}, Kernel: k, Swap: SwapConfig{Bytes: 2 << 30, Class: memcg.SwapZram}, Seed: 1,
		Fail: t.Errorf,
	})
}

// mustHold fails the test when the books of the host do not add up.
func mustHold(t interface {
	Helper()
	Fatalf(string, ...any)
}, h *Host) {
	t.Helper()
	if err := h.audit(); err != nil {
		t.Fatalf("%v\n%v", err, h)
	}
}

// audit recounts everything from the pages themselves.
func (h *Host) audit() error {
	seen := make([]bool, len(h.arena.pages))
	want := map[*cgroup]*tally{}
	for _, c := range h.groups {
		if c != nil {
			want[c] = &tally{size: make([][numLists]uint64, len(h.nodes))}
		}
	}
	free := make([]uint64, len(h.nodes))
	for i := range h.nodes {
		free[i] = h.nodes[i].total
	}
	for _, c := range h.groups {
		if c == nil {
			continue
		}
		for n := range c.vecs {
			for l := range numLists {
				length, err := h.walk(c, n, l, seen)
				if err != nil {
					return err
				}
				free[n] -= length
				for g := c; g != nil; g = g.parent {
					want[g].size[n][l] += length
					want[g].usage += length
				}
			}
		}
	}
	var swapped uint64
	for i := range h.arena.pages {
		p := &h.arena.pages[i]
		if p.flags&resident != 0 && !seen[i] {
			return fmt.Errorf("page %d is resident and on no list", i)
		}
		if p.flags&(resident|out) == resident|out {
			return fmt.Errorf("page %d is both resident and out", i)
		}
		if p.flags&(out|file) == out {
			swapped++
			for g := h.groups[p.owner]; g != nil; g = g.parent {
				want[g].swap++
			}
		}
	}
	for _, i := range h.arena.free {
		if h.arena.pages[i] != (page{}) {
			return fmt.Errorf("free page %d is in use", i)
		}
	}
	if swapped != h.swapUsed || swapped > h.swapTotal {
		return fmt.Errorf("swap: %d pages are out, %d slots of %d used", swapped, h.swapUsed, h.swapTotal)
	}
	for n := range h.nodes {
		if free[n] != h.nodes[n].free {
			return fmt.Errorf("node %d: %d pages are free, the node says %d", h.nodes[n].id, free[n], h.nodes[n].free)
		}
	}
	for c, w := range want {
		if err := w.agree(c); err != nil {
			return err
		}
	}
	return nil
}

type tally struct {
	size        [][numLists]uint64
	usage, swap uint64
}

func (w *tally) agree(c *cgroup) error {
	if w.usage != c.usage || w.swap != c.swap {
		return fmt.Errorf("%s: usage %d, swap %d; its pages are %d and %d", c.id.Path, c.usage, c.swap, w.usage, w.swap)
	}
	for n := range c.vecs {
		if c.vecs[n].size != w.size[n] {
			return fmt.Errorf("%s on node index %d: sizes %v, lists hold %v", c.id.Path, n, c.vecs[n].size, w.size[n])
		}
	}
	return nil
}

func (h *Host) walk(c *cgroup, n int, l lru, seen []bool) (length uint64, err error) {
	ls := &c.vecs[n].lists[l]
	var before uint32
	for i := ls.head; i != 0; i = h.arena.pages[i].next {
		p := &h.arena.pages[i]
		switch {
		case seen[i]:
			return 0, fmt.Errorf("page %d is on two lists or twice on %s of %s", i, listNames[l], c.id.Path)
		case p.prev != before:
			return 0, fmt.Errorf("page %d: its neighbour on %s of %s is %d, not %d", i, listNames[l], c.id.Path, p.prev, before)
		case p.flags&resident == 0 || p.on() != l || p.owner != c.number || int(p.node) != n:
			return 0, fmt.Errorf("page %d (%+v) is on %s of %s, node index %d", i, *p, listNames[l], c.id.Path, n)
		}
		seen[i] = true
		before = i
		length++
	}
	if ls.tail != before || ls.n != length {
		return 0, fmt.Errorf("%s of %s: tail %d, length %d; walked to %d, %d pages", listNames[l], c.id.Path, ls.tail, ls.n, before, length)
	}
	return length, nil
}

// sampled reads a cgroup that must be there.
func sampled(t *testing.T, h *Host, path string) *memcg.Sample {
	t.Helper()
	var s memcg.Sample
	if err := h.Sample(idOf(t, h, path), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func idOf(t *testing.T, h *Host, path string) memcg.ID {
	t.Helper()
	c := h.byPath[path]
	if c == nil {
		t.Fatalf("no cgroup %s", path)
	}
	return c.id
}

func stat(t *testing.T, h *Host, path string, k memcg.Stat) uint64 {
	t.Helper()
	v, ok := sampled(t, h, path).Stat.Get(k).Get()
	if !ok {
		t.Fatalf("%s: %v is absent", path, k)
	}
	return v
}

// settle runs until a job has nothing left to do.
func settle(t *testing.T, h *Host, j *Job) {
	t.Helper()
	for range 10_000 {
		if j.Done() {
			return
		}
		h.Run(time.Second)
	}
	t.Fatalf("%s does not come to an end:\n%v", j.name, h)
}
