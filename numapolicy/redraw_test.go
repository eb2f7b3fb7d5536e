package numapolicy

import (
	"testing"

	"github.com/memagent/memagent/memcg"
)

func TestRedrawsBetweenTwoSamplesFollowTheWeights(t *testing.T) {
	var st State
	s := sampleOf(sizes{inactiveFile: 300}.stats(0), sizes{inactiveFile: 100}.stats(1), sizes{inactiveAnon: 100}.stats(2))
	d := decideTwice(&st, inputOf(s, hostOf(9000, 9000, 9000)), lottery, nil)
	if d.Reach != OneNode {
		t.Fatalf("decided %v, %s", d.Reach, d.Rule)
	}
	const draws = 4096
	got, from := map[memcg.NodeID]int{}, &sweep{}
	for range draws {
		again := st.Redraw(d, memcg.SwappinessOf(60), from)
		got[again.Drawing.Item]++
		if again.Nodes != memcg.NodesOf(again.Drawing.Item) || again.Most != d.share(again.Drawing.Item).Most || again.Most == 0 {
			t.Fatalf("drew %d: nodes %v, most %d", again.Drawing.Item, again.Nodes, again.Most)
		}
	}
	if got[0] < draws*74/100 || got[0] > draws*76/100 || got[2] != 0 {
		t.Errorf("drew %v, want three quarters from node 0 and none from node 2", got)
	}
	if n := testing.AllocsPerRun(100, func() { st.Redraw(d, memcg.SwappinessOf(60), from) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestARedrawOfAShortNodeTakesFileAlone(t *testing.T) {
	var st State
	s := sampleOf(sizes{inactiveFile: 100, inactiveAnon: 900}.stats(0), sizes{inactiveFile: 100, inactiveAnon: 9000}.stats(1))
	d := decideTwice(&st, inputOf(s, hostOf(10, 9000)), lottery, nil)
	short, other := st.Redraw(d, memcg.SwappinessOf(60), ticket(0)), st.Redraw(d, memcg.SwappinessOf(60), ticket(1<<16-2))
	if short.Rule != "drawn-short" || !short.FileOnly || short.Swappiness != memcg.SwappinessOf(0) {
		t.Errorf("short node: %+v", short)
	}
	if other.Rule != "drawn" || other.FileOnly || other.Swappiness != memcg.SwappinessOf(60) {
		t.Errorf("other node: %+v", other)
	}
}

func TestWhereNoNodeWasDrawnNoneIsDrawnAgain(t *testing.T) {
	var st State
	s := sampleOf(sizes{inactiveFile: 100}.stats(0), sizes{inactiveFile: 100}.stats(1))
	d := decideTwice(&st, inputOf(s, hostOf(9000, 9000)), lottery, nil)
	if again := st.Redraw(d, memcg.SwappinessOf(60), ticket(0)); again.Reach != Everywhere || again.Rule != "balanced" {
		t.Errorf("got %v, %s", again.Reach, again.Rule)
	}
}

// sweep draws evenly.
type sweep struct{ n uint64 }

func (s *sweep) Uint64N(n uint64) uint64 {
	s.n += 0x9E3779B97F4A7C15 // the golden ratio of 2^64: as even as can be
	return s.n >> 32 * n >> 32
}
