package numapolicy

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

// small is a node of 480 MiB of which the kernel keeps 34 free, as a guest with
// transparent huge pages has it, with so much free, in MiB.
func small(free uint64) *memcg.HostSample {
	h := hostOf(free)
	h.Nodes[0].MemTotal, h.Nodes[0].Reserve = memcg.Value(480*mib), memcg.Value(34*mib)
	return h
}

// What the kernel keeps free is where kswapd begins, whatever part of the node
// that is.
func TestANodeIsShortWhereTheKernelBegins(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*memcg.Node)
		marks  Marks
		short  uint64 // MiB of free memory below which it is short
		lacks  uint64 // MiB at 0 free
	}{
		{name: "the kernel's where it is more", marks: DefaultMarks, short: 34, lacks: 36},
		{name: "the operator's where that is more", marks: Marks{Low: 0.125, High: 0.25}, short: 60, lacks: 120},
		{name: "the operator's where the kernel does not tell", change: func(n *memcg.Node) { n.Reserve = memcg.Absent(memcg.Unsupported) },
			marks: Marks{Low: 0.125, High: 0.25}, short: 60, lacks: 120},
		{name: "what the kernel keeps is no more than there is", change: func(n *memcg.Node) { n.Reserve = memcg.Value(1 << 60) },
			marks: DefaultMarks, short: 480, lacks: 482},
	} {
		t.Run(c.name, func(t *testing.T) {
			look := func(free uint64) *Nodes {
				h := small(free)
				if c.change != nil {
					c.change(&h.Nodes[0])
				}
				var n Nodes
				n.Look(h, c.marks, 0)
				return &n
			}
			if n := look(c.short); !n.Short().Empty() {
				t.Errorf("%d MiB free: short", c.short)
			}
			if n := look(c.short - 1); n.Short().Empty() {
				t.Errorf("%d MiB free: not short", c.short-1)
			}
			if got := look(0).Lacks(0) / mib; got != c.lacks {
				t.Errorf("lacks %d MiB, want %d", got, c.lacks)
			}
		})
	}
}

// fill looks at a node that grows by so many MiB in each interval, and returns
// how much was free, in MiB, when it was first said to be exhausted, 0 for never.
func fill(from uint64, step []uint64, interval time.Duration, change func(*memcg.Node)) uint64 {
	var n Nodes
	free := from
	for i := 0; ; i++ {
		h := small(free)
		if change != nil {
			change(&h.Nodes[0])
		}
		n.Look(h, DefaultMarks, interval*time.Duration(min(i, 1)))
		if n.exhausted().Has(0) {
			return free
		}
		s := step[min(i, len(step)-1)]
		if s > free || i > 1000 {
			return 0
		}
		free -= s
	}
}

func TestANodeThatFillsUpIsExhaustedBeforeTheKernelBegins(t *testing.T) {
	for _, c := range []struct {
		name     string
		step     []uint64
		interval time.Duration
		change   func(*memcg.Node)
		want     uint64
	}{
		{name: "three intervals ahead", step: []uint64{8}, interval: time.Second, want: 56},
		{name: "however long an interval is", step: []uint64{8}, interval: 5 * time.Second, want: 56},
		{name: "a slow one later", step: []uint64{1}, interval: time.Second, want: 36},
		{name: "one burst is no trend", step: []uint64{50, 0}, interval: time.Second, want: 0},
		{name: "nor is every other interval", step: []uint64{30, 0, 9, 0, 9, 0}, interval: time.Second, want: 0},
		{name: "page cache that grows swaps nothing", step: []uint64{8}, interval: time.Second, want: 0, change: func(n *memcg.Node) {
			free, _ := n.MemFree.Get()
			n.InactiveFile = memcg.Value(480*mib - free)
		}},
		{name: "what is not printed is no trend, and two readings must do", step: []uint64{8}, interval: time.Second, want: 24, change: func(n *memcg.Node) {
			n.ActiveFile = memcg.Absent(memcg.Missing)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fill(96, c.step, c.interval, c.change); got != c.want {
				t.Errorf("exhausted at %d MiB free, want %d", got, c.want)
			}
		})
	}
}

// The low mark rises with what the node fills by until it is looked at again, so
// that its cache is taken before kswapd takes anon.
func TestANodeThatFillsUpIsShortAnIntervalAhead(t *testing.T) {
	var n Nodes
	for i, free := range []uint64{96, 88, 80, 72, 64, 56, 48, 40} {
		n.Look(small(free), DefaultMarks, time.Second*time.Duration(min(i, 1)))
		if got, want := n.Short().Has(0), free < 42; got != want {
			t.Errorf("%d MiB free: short %t", free, got)
		}
	}
	if got := n.Lacks(0) / mib; got != 4 {
		t.Errorf("lacks %d MiB, want the high mark of 44 less 40", got)
	}
}

func TestANodeThatFillsUpHasNoRoomAndIsNoPlaceToGo(t *testing.T) {
	var n Nodes
	for i, free := range []uint64{96, 76, 56} {
		h := small(free)
		n.Look(h, DefaultMarks, time.Second*time.Duration(min(i, 1)))
	}
	if !n.Room().Empty() || !n.exhausted().Has(0) {
		t.Errorf("room %v, exhausted %v", n.Room(), n.exhausted())
	}
	if !n.Short().Empty() {
		t.Errorf("short %v: nothing is to be reclaimed yet", n.Short())
	}
	if n.noRoom(memcg.NodesOf(0)) {
		t.Error("there is no reason to swap before it is short")
	}
}

// Whatever the growth, a node that keeps growing is exhausted in a reading at
// which the kernel has not begun, if two of its steps fit above where it does.
func TestNoSteadyGrowthIsSeenTooLate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		step := rapid.Uint64Range(1, 100).Draw(rt, "MiB an interval")
		from := 34 + 3*step + rapid.Uint64Range(0, 100).Draw(rt, "more")
		interval := time.Duration(rapid.IntRange(1, 600).Draw(rt, "seconds")) * time.Second
		at := fill(from, []uint64{step}, interval, func(n *memcg.Node) { n.MemTotal = memcg.Value(1 << 30) })
		if at < 34+step {
			rt.Fatalf("from %d by %d: exhausted at %d MiB, an interval from where the kernel begins", from, step, at)
		}
	})
}
