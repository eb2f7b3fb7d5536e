package numapolicy

import (
	"math"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

// On 16 GiB the low mark is 81.9 MiB and the high mark 163.8 MiB.
func TestANodeIsShortFromItsLowMarkToItsHighMark(t *testing.T) {
	var n Nodes
	for i, c := range []struct {
		free  uint64 // MiB
		short bool
		lacks uint64
	}{
		{free: 500}, {free: 100}, {free: 82}, {free: 81, short: true, lacks: 82}, {free: 120, short: true, lacks: 43},
		{free: 163, short: true, lacks: 0}, {free: 164}, {free: 90}, {free: 0, short: true, lacks: 163},
	} {
		n.Look(cached(hostOf(c.free)), DefaultMarks, time.Second)
		if got := n.Short().Has(0); got != c.short || n.Lacks(0)/mib != c.lacks {
			t.Errorf("step %d, %d MiB free: short %t, lacks %d MiB", i, c.free, got, n.Lacks(0)/mib)
		}
	}
}

func TestAShortNodeFullOfCacheStillHasRoom(t *testing.T) {
	h := hostOf(50, 50)
	h.Nodes[1].InactiveFile = memcg.Value(4 << 30)
	n := nodesOf(h)
	if n.Short() != memcg.NodesOf(0, 1) || n.Room() != memcg.NodesOf(1) {
		t.Errorf("short %v, room %v", n.Short(), n.Room())
	}
	if n.noRoom(memcg.NodesOf(0, 1)) || !n.noRoom(memcg.NodesOf(0)) {
		t.Error("node 1 has room for both, node 0 has none")
	}
}

func TestANodeOfWhichNothingIsReadIsNeitherShortNorHasRoom(t *testing.T) {
	for name, spoil := range map[string]func(*memcg.Node){
		"free memory missing":  func(n *memcg.Node) { n.MemFree = memcg.Absent(memcg.Missing) },
		"free memory no size":  func(n *memcg.Node) { n.MemFree = memcg.Absent(memcg.Invalid) },
		"size of node missing": func(n *memcg.Node) { n.MemTotal = memcg.Absent(memcg.Missing) },
	} {
		h := hostOf(10, 10)
		n := nodesOf(h)
		spoil(&h.Nodes[1])
		n.Look(h, DefaultMarks, time.Second)
		if n.Short() != memcg.NodesOf(0) || n.Room().Has(1) || n.Lacks(1) != 0 || n.spare(1) != 0 {
			t.Errorf("%s: short %v, room %v", name, n.Short(), n.Room())
		}
		if n.noRoom(memcg.NodesOf(0, 1)) {
			t.Errorf("%s: a node that was not read counts as full", name)
		}
	}
}

func TestMarksThatMakeNoSenseMakeNoNodeShort(t *testing.T) {
	for _, m := range []Marks{{}, {Low: 0.5, High: 0.1}, {Low: math.NaN(), High: 0.5}, {Low: 0.1, High: math.Inf(1)}, {Low: -1, High: 0.5}} {
		var n Nodes
		if n.Look(hostOf(0, 0), m, 0); !n.Short().Empty() {
			t.Errorf("%+v: short %v", m, n.Short())
		}
	}
}

func TestNodesComeAndGo(t *testing.T) {
	n := nodesFor(hostOf(10, 10), 3*time.Minute)
	h := hostOf(10, 10, 10)
	h.Nodes = h.Nodes[1:]
	n.Look(h, DefaultMarks, time.Minute)
	if n.Short() != memcg.NodesOf(1, 2) || n.level(1).unchanging != 4*time.Minute || n.level(2).unchanging != 0 {
		t.Errorf("short %v, %+v", n.Short(), n.list)
	}
	if n.Lacks(0) != 0 {
		t.Error("a node that is gone lacks nothing")
	}
}

// Between its marks a node stays what it was.
func TestNoNodeFlipsBetweenItsMarks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var n Nodes
		was, low, high := false, uint64(DefaultMarks.Low*(16<<30)), uint64(DefaultMarks.High*(16<<30))
		for range rapid.IntRange(1, 50).Draw(rt, "readings") {
			free := rapid.Uint64Range(0, 2*high).Draw(rt, "free")
			h := hostOf(0)
			h.Nodes[0].MemFree = memcg.Value(free)
			n.Look(cached(h), DefaultMarks, time.Second)
			is := n.Short().Has(0)
			switch {
			case free < low && !is, free >= high && is, free >= low && free < high && is != was:
				rt.Fatalf("%d bytes free, marks %d and %d: short %t after %t", free, low, high, is, was)
			case (n.Lacks(0) > 0) != is:
				rt.Fatalf("short %t and lacks %d", is, n.Lacks(0))
			}
			was = is
		}
	})
}

func TestLookDoesNotAllocate(t *testing.T) {
	h, n := hostOf(10, 5000, 80, 9000), &Nodes{}
	n.Look(h, DefaultMarks, 0)
	if a := testing.AllocsPerRun(100, func() { n.Look(h, DefaultMarks, time.Second) }); a != 0 {
		t.Errorf("%.0f allocations", a)
	}
}
