package numapolicy

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

// tier is a cgroup with so much anon on a fast node 0 and a slow node 1, in MiB.
func tier(fast, slow uint64) Input {
	s := sampleOf(sizes{inactiveAnon: fast}.stats(0), sizes{inactiveAnon: slow}.stats(1))
	h := hostOf(9000, 9000)
	h.Nodes[1].HasCPU = false
	in := inputOf(s, h)
	in.Demotion = true
	return in
}

// moved is the outcome of a request that moved so much to a slower node, in MiB.
func moved(size, demoted uint64, nodes ...memcg.NodeID) *memcg.Outcome {
	return &memcg.Outcome{
		Request: memcg.Reclaim{Bytes: size * mib, Nodes: memcg.NodesOf(nodes...)},
		Asked:   size * mib, Demoted: memcg.Value(demoted * mib),
	}
}

func TestWhatWasMovedToASlowerNodeIsTakenThere(t *testing.T) {
	part, vain := moved(55, 0, 1), moved(55, 0, 1)
	part.Asked, vain.Asked = 4*mib, 0
	for _, c := range []struct {
		name     string
		slow     uint64 // MiB
		outcomes []*memcg.Outcome
		later    time.Duration
		asked    memcg.Swappiness
		change   func(*Input)
		most     uint64 // MiB; 0: the decision is as it was
	}{
		{name: "as much as was moved", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55)}, most: 55},
		{name: "no more than lies there", slow: 40, outcomes: []*memcg.Outcome{moved(64, 55)}, most: 40},
		{name: "by several requests", slow: 100, outcomes: []*memcg.Outcome{moved(64, 30), moved(34, 20)}, most: 50},
		{name: "less what was asked for there", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55), moved(40, 0, 1)}, most: 15},
		{name: "a request that ran out of time has asked for a part", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55), part}, most: 51},
		{name: "one that could not be made is not made again", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55), vain}},
		{name: "nothing when all of it was", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55), moved(55, 0, 1)}},
		{name: "nothing where nothing was moved", slow: 100, outcomes: []*memcg.Outcome{moved(64, 0)}},
		{name: "nothing where the kernel does not tell", slow: 100, outcomes: []*memcg.Outcome{{Demoted: memcg.Absent(memcg.Unsupported)}}},
		{name: "nothing where it is gone", outcomes: []*memcg.Outcome{moved(64, 55)}},
		{name: "no more than is there still", slow: 16, outcomes: []*memcg.Outcome{moved(64, 40)}, later: time.Second, most: 16},
		{name: "a minute later it is another request", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55)}, later: time.Minute},
		{name: "anon is not to be had for a request that must not swap", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55)}, asked: memcg.SwappinessOf(0)},
		{name: "nor without swap", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55)}, change: func(in *Input) { in.Host.SwapFree = memcg.Value(0) }},
		{name: "nor from a node that is short", slow: 100, outcomes: []*memcg.Outcome{moved(64, 55)}, change: func(in *Input) {
			in.Host.Nodes[1].MemFree = memcg.Value(0)
			in.Nodes = nodesOf(in.Host)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var st State
			in := tier(100, c.slow)
			if c.change != nil {
				c.change(&in)
			}
			d := Decide(&st, in, lottery)
			for _, o := range c.outcomes {
				st.Moved(o)
			}
			if c.later > 0 {
				in.Elapsed = c.later
				d = Decide(&st, in, lottery)
			}
			got := st.Instead(d, c.asked, ticket(0))
			switch {
			case c.most == 0 && (got.Demoted || got.Reach != d.Reach || got.Rule != d.Rule):
				t.Errorf("%v by %s, up to %d MiB", got.Nodes, got.Rule, got.Most/mib)
			case c.most > 0 && (got.Nodes != memcg.NodesOf(1) || got.Reach != OneNode || got.Rule != "demoted" || got.Most != c.most*mib):
				t.Errorf("%v by %s, up to %d MiB, want %d", got.Nodes, got.Rule, got.Most/mib, c.most)
			}
		})
	}
}

// A kernel that demotes: of a request for every node each gives in proportion, and
// what the fast one gives lies on the slow one then. Whatever is asked for, no more is
// moved than that, and all of it is freed.
func TestNoMoreIsMovedThanWasAskedFor(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fast := rapid.Uint64Range(0, 1000).Draw(rt, "fast") * mib
		slow := rapid.Uint64Range(0, 1000).Draw(rt, "slow") * mib
		want := rapid.Uint64Range(0, (fast+slow)/mib).Draw(rt, "asked") * mib
		var st State
		left, total := want, uint64(0)
		for i := 0; left > 0; i++ {
			if i > 4 {
				rt.Fatalf("%d of %d MiB are still to be freed", left/mib, want/mib)
			}
			in := tier(fast/mib, slow/mib)
			d := st.Instead(Decide(&st, in, lottery), in.Swappiness, ticket(0))
			o := memcg.Outcome{Request: memcg.Reclaim{Bytes: left, Nodes: d.Nodes}}
			var down, out uint64
			if d.Demoted {
				o.Request.Bytes = min(left, d.Most)
				out = min(o.Request.Bytes, slow)
			} else {
				down = left / mib * (fast / mib) / ((fast + slow) / mib) * mib
				out = min(left-down, slow)
			}
			fast, slow, left, total = fast-down, slow+down-out, left-out, total+down
			o.Demoted = memcg.Value(down)
			st.Moved(&o)
		}
		if total > want {
			rt.Fatalf("%d MiB were moved for %d", total/mib, want/mib)
		}
	})
}
