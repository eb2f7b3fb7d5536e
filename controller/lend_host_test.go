package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// twoNodes is a host of 1000 MiB on two nodes, with so much available, and so
// much free on each.
func twoNodes(available, free0, free1 uint64) *memcg.HostSample {
	node := func(id memcg.NodeID, free uint64) memcg.Node {
		return memcg.Node{ID: id, HasMemory: true, MemTotal: memcg.Value(500 * mib), MemFree: memcg.Value(free * mib),
			InactiveFile: memcg.Value(0), ActiveFile: memcg.Value(0)}
	}
	return &memcg.HostSample{PageSize: page, MemTotal: memcg.Value(1000 * mib), MemAvailable: memcg.Value(available * mib),
		Nodes: []memcg.Node{node(0, free0), node(1, free1)}}
}

// borrower has so much lent and, of that, so much as page cache on each node.
func borrower(path string, lent uint64, on ...uint64) *cgroup {
	cg := &cgroup{id: id(path), loan: loan{base: 40 * mib, high: (40 + lent) * mib}}
	for n, bytes := range on {
		cg.heldIn += bytes * mib
		cg.heldFile += bytes * mib
		cg.heldOn = append(cg.heldOn, shortNode{memcg.NodeID(n), bytes * mib})
	}
	return cg
}

func TestWhatTheHostCanLend(t *testing.T) {
	const kept = 112.5 // the reserve of 10 % and an eighth of it
	for _, tt := range []struct {
		name      string
		host      *memcg.HostSample
		borrowers []*cgroup
		nodes     memcg.NodeMask
		want      float64 // MiB
	}{
		{"what is above the reserve and a little more", twoNodes(500, 450, 450), nil, memcg.NodeMask{}, 500 - kept},
		{"no more than its nodes have", twoNodes(500, 150, 100), nil, memcg.NodeMask{}, 150 - kept/2 + 100 - kept/2},
		{"only nodes that it may use", twoNodes(500, 150, 300), nil, memcg.NodesOf(0), 150 - kept/2},
		{"a node that is short takes nothing from another", twoNodes(500, 10, 300), nil, memcg.NodeMask{}, 300 - kept/2},
		{"cache in loans is no room", twoNodes(500, 450, 450), []*cgroup{borrower("/a", 100, 100)}, memcg.NodeMask{}, 400 - kept},
		{"what is promised and not used is no room either", twoNodes(500, 450, 450), []*cgroup{borrower("/a", 100, 30)}, memcg.NodeMask{}, 400 - kept},
		{"nothing below the reserve", twoNodes(90, 450, 450), nil, memcg.NodeMask{}, 0},
		{"nothing where it is not known", &memcg.HostSample{MemTotal: memcg.Value(1000 * mib)}, nil, memcg.NodeMask{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l till
			l.count(config.ShareOf(0.1), tt.host, tt.borrowers)
			if got := float64(l.pool(tt.host, tt.nodes)) / mib; got < tt.want-0.01 || got > tt.want+0.01 {
				t.Errorf("%.2f MiB, want %.2f", got, tt.want)
			}
		})
	}
}

// recallBench has borrowers on a host with a reserve of 10 %.
func recallBench(t *testing.T, borrowers ...*cgroup) *bench {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	b.core.DrawFrom(rand.New(rand.NewPCG(1, 2)))
	b.core.borrowers = borrowers
	return b
}

func (b *bench) recalled() (paths []string) {
	for _, cg := range b.core.borrowers {
		if cg.loan.back == backShort {
			paths = append(paths, cg.id.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestNobodyGivesBackWhileTheReserveIsThere(t *testing.T) {
	b := recallBench(t, borrower("/a", 100, 50, 50))
	b.core.recallShort(twoNodes(200, 200, 200)) // just the reserve, without what is lent
	if got := b.recalled(); got != nil {
		t.Errorf("recalled %v", got)
	}
}

func TestBorrowersGiveBackUntilWhatIsShortIsCovered(t *testing.T) {
	var all []*cgroup
	for i := range 10 {
		all = append(all, borrower(fmt.Sprint("/b", i), 20, 20))
	}
	b := recallBench(t, all...)
	host := twoNodes(270, 400, 400) // 200 of it lent: 30 short, and 12.5 more
	b.core.recallShort(host)
	if got := b.recalled(); len(got) != 3 {
		t.Fatalf("recalled %v, want three of 20 MiB", got)
	}
	b.core.recallShort(host)
	if got := b.recalled(); len(got) != 3 {
		t.Errorf("and again, before they had given anything: %v", got)
	}
}

func TestWhoHasMoreAndMissesLessIsDrawnMoreOften(t *testing.T) {
	drawn := map[string]int{}
	for seed := range uint64(300) {
		dear := borrower("/dear", 100, 100)
		dear.loanCost = 3 * lendPrice
		b := recallBench(t, borrower("/big", 100, 100), borrower("/small", 25, 100), dear)
		b.core.DrawFrom(rand.New(rand.NewPCG(seed, 0)))
		b.core.recallShort(twoNodes(390, 450, 450)) // 10 short
		for _, p := range b.recalled() {
			drawn[p]++
		}
	}
	if drawn["/big"] < 150 || drawn["/small"] > 90 || drawn["/dear"] > 90 || drawn["/small"] == 0 || drawn["/dear"] == 0 {
		t.Errorf("drawn %v of 300, want 200, 50 and 50", drawn)
	}
}

func TestForAShortNodeThoseGiveWhoHaveMemoryThere(t *testing.T) {
	b := recallBench(t, borrower("/there", 60, 0, 60), borrower("/elsewhere", 60, 60, 0))
	b.core.recallShort(twoNodes(600, 400, 70)) // node 1: 10 without the loan, of 50
	if got := b.recalled(); !slices.Equal(got, []string{"/there"}) {
		t.Errorf("recalled %v", got)
	}
}

func TestWithoutADrawTheFirstGivesBack(t *testing.T) {
	b := recallBench(t, borrower("/a", 60, 60), borrower("/b", 60, 60))
	b.core.DrawFrom(nil)
	b.core.recallShort(twoNodes(210, 400, 400))
	if got := b.recalled(); !slices.Equal(got, []string{"/a"}) {
		t.Errorf("recalled %v", got)
	}
}
