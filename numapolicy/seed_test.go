package numapolicy

import (
	"math"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// Sentences of the seed, "memg: better numa scanning", v5, August 2011.

func countersGrow(id memcg.NodeID, k memcg.NodeStat, by uint64) func(n *memcg.NodeStats) {
	return func(n *memcg.NodeStats) {
		if n.ID == id {
			v, _ := n.Get(k).Get()
			n.Set(k, memcg.Value(v+by))
		}
	}
}

// "make use of swappiness": anon_prio = swappiness + 1, file_prio = 200 -
// swappiness.
func TestSeedSwappinessWeighsAnonAgainstFile(t *testing.T) {
	// Anon 400 MiB inactive on node 1, file 10 MiB on node 0.
	s := sampleOf(sizes{inactiveFile: 10}.stats(0), sizes{inactiveAnon: 400}.stats(1))
	for _, c := range []struct {
		swappiness int
		w0, w1     float64 // pages
	}{
		{swappiness: 0, w0: 10 * 256 * 200 / 200., w1: 0},
		{swappiness: 60, w0: 10 * 256 * 140 / 200., w1: 400 * 256 * 61 / 200.},
		{swappiness: 100, w0: 10 * 256 * 100 / 200., w1: 400 * 256 * 101 / 200.},
		{swappiness: 200, w0: 0, w1: 400 * 256 * 201 / 200.},
		{swappiness: memcg.SwappinessMax, w0: 0, w1: 400 * 256 * 201 / 200.},
	} {
		var st State
		in := inputOf(s, hostOf(8192, 8192))
		in.Swappiness = memcg.SwappinessOf(c.swappiness)
		d := decideTwice(&st, in, lottery, nil)
		if w := d.weights(); w[0] != uint64(math.Ceil(c.w0)) || w[1] != uint64(math.Ceil(c.w1)) {
			t.Errorf("swappiness %d: weights %v, want %.1f and %.1f", c.swappiness, w, c.w0, c.w1)
		}
	}
}

// "If inactive-file is enough, ignore active-file".
func TestSeedActiveFileCountsOnlyWhereInactiveIsLow(t *testing.T) {
	for _, c := range []struct {
		name             string
		inactive, active uint64 // MiB
		counts           bool
	}{
		{"below 1 GiB, more active than inactive", 400, 401, true},
		{"below 1 GiB, as much of both", 400, 400, false},
		{"1 GiB, a quarter inactive", 256, 768, false},
		{"1 GiB, less than a quarter inactive", 255, 769, true},
		{"10 GiB, a tenth inactive", 1024, 9216, false},
		{"10 GiB, a twelfth inactive", 853, 9387, true},
		{"100 GiB, a thirtieth inactive", 3413, 98987, false},
		{"100 GiB, a fortieth inactive", 2560, 99840, true},
	} {
		if got := inactiveIsLow(c.inactive*mib, c.active*mib); got != c.counts {
			t.Errorf("%s: %t", c.name, got)
		}
		var st State
		s := sampleOf(sizes{inactiveFile: c.inactive, activeFile: c.active}.stats(0))
		d := decideTwice(&st, inputOf(s, hostOf(8192)), lottery, nil)
		want := c.inactive
		if c.counts {
			want += c.active
		}
		if w := d.weights()[0]; w != uint64(math.Ceil(float64(want*256)*140/200)) {
			t.Errorf("%s: weight %d for %d MiB", c.name, w, want)
		}
	}
}

func TestIntSqrtIsTheKernels(t *testing.T) {
	for _, c := range []struct{ n, want uint64 }{
		{0, 0}, {1, 1}, {3, 1}, {4, 2}, {10, 3}, {100, 10}, {1000, 31}, {10240, 101},
		{math.MaxUint64, math.MaxUint32}, {(1<<32 - 1) * (1<<32 - 1), 1<<32 - 1}, {(1<<32-1)*(1<<32-1) - 1, 1<<32 - 2},
	} {
		if got := intSqrt(c.n); got != c.want {
			t.Errorf("intSqrt(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

// "If file is enough (w.r.t swappiness), ignore anon". The seed's code tests the
// reverse of its comment; this is the comment.
func TestSeedAnonCountsOnlyWhereFileIsSmallAndSwapHasRoom(t *testing.T) {
	few := sampleOf(sizes{inactiveFile: 10, inactiveAnon: 50}.stats(0), sizes{inactiveAnon: 400}.stats(1))
	much := sampleOf(sizes{inactiveFile: 900, inactiveAnon: 50}.stats(0), sizes{inactiveAnon: 400}.stats(1))
	noSwap, fullSwap, noLimitKnown := hostOf(8192, 8192), hostOf(8192, 8192), *few
	noSwap.SwapFree = memcg.Absent(memcg.Missing)
	fullSwap.SwapFree = memcg.Value(63 * page)
	noLimitKnown.SwapRoom = memcg.NoLimitFile(memcg.Unsupported)
	atLimit := *few
	atLimit.SwapRoom = memcg.LimitOf(0)
	for _, c := range []struct {
		name string
		s    *memcg.Sample
		h    *memcg.HostSample
		want bool
	}{
		{"little file and free swap", few, hostOf(8192, 8192), true},
		{"much file", much, hostOf(8192, 8192), false},
		{"free swap not known", few, noSwap, false},
		{"less free swap than the kernel needs", few, fullSwap, false},
		{"swap limits not known", &noLimitKnown, hostOf(8192, 8192), false},
		{"the swap limit reached", &atLimit, hostOf(8192, 8192), false},
	} {
		var st State
		d := decideTwice(&st, inputOf(c.s, c.h), lottery, nil)
		if got := d.share(1).Weight > 0; got != c.want {
			t.Errorf("%s: %+v", c.name, d.share(1))
		}
		if !c.want && d.share(1).Why != WhyNothing {
			t.Errorf("%s: why is %q", c.name, d.share(1).Why)
		}
	}
}

// "'scanned - rotated/scanned' means ratio of finding not active".
func TestSeedANodeWherePagesAreInUseWeighsLess(t *testing.T) {
	// 1000 pages scanned on each node; 900 taken on node 0, 90 on node 1.
	s := sampleOf(sizes{inactiveFile: 500, scan: 1, steal: 1}.stats(0), sizes{inactiveFile: 500, scan: 1, steal: 1}.stats(1))
	var st State
	d := decideTwice(&st, inputOf(s, hostOf(8192, 8192)), lottery, func(n *memcg.NodeStats) {
		n.Set(memcg.NodeScan, memcg.Value(1001))
		n.Set(memcg.NodeSteal, memcg.Value(901-810*uint64(n.ID)))
	})
	a, b := d.share(0), d.share(1)
	if !a.OwnRatio || !b.OwnRatio || math.Abs(a.Ratio-0.9) > 0.01 || math.Abs(b.Ratio-0.09) > 0.01 {
		t.Fatalf("ratios %+v %+v", a, b)
	}
	if got := float64(a.Weight) / float64(b.Weight); math.Abs(got-10) > 0.1 {
		t.Errorf("weights %d and %d", a.Weight, b.Weight)
	}
}

func TestPagesThatOnlyWentToASlowerNodeWereNotTaken(t *testing.T) {
	s := sampleOf(sizes{inactiveFile: 500, scan: 1, steal: 1}.stats(0), sizes{inactiveFile: 500, scan: 1, steal: 1}.stats(1))
	for i := range s.Nodes {
		s.Nodes[i].Set(memcg.NodeDemote, memcg.Value(0))
	}
	var st State
	d := decideTwice(&st, inputOf(s, hostOf(8192, 8192)), lottery, func(n *memcg.NodeStats) {
		n.Set(memcg.NodeScan, memcg.Value(1001))
		n.Set(memcg.NodeSteal, memcg.Value(901))
		n.Set(memcg.NodeDemote, memcg.Value(800*uint64(n.ID)))
	})
	if a, b := d.share(0).Ratio, d.share(1).Ratio; math.Abs(a-0.9) > 0.01 || math.Abs(b-0.1) > 0.01 {
		t.Errorf("ratios %.3f and %.3f", a, b)
	}
}

func TestTooFewScannedPagesLeaveTheNodeWithoutARatioOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		scanned uint64
		own     bool
	}{{31, false}, {40, true}} {
		s := sampleOf(sizes{inactiveFile: 500, scan: 1, steal: 1}.stats(0), sizes{inactiveFile: 400, scan: 1, steal: 1}.stats(1))
		var st State
		d := decideTwice(&st, inputOf(s, hostOf(8192, 8192)), lottery, countersGrow(0, memcg.NodeScan, c.scanned))
		if sh := d.share(0); sh.OwnRatio != c.own || c.own != (sh.Ratio == 0) {
			t.Errorf("%d pages scanned: %+v", c.scanned, sh)
		}
	}
}

func TestWithoutCountersByNodeTheCgroupsRatioStandsForAll(t *testing.T) {
	s := sampleOf(sizes{inactiveFile: 500}.stats(0), sizes{inactiveFile: 100}.stats(1))
	s.Stat.Set(memcg.StatScan, memcg.Value(0))
	s.Stat.Set(memcg.StatSteal, memcg.Value(0))
	var st State
	in := inputOf(s, hostOf(8192, 8192))
	in.Elapsed = 0
	Decide(&st, in, lottery)
	s.Stat.Set(memcg.StatScan, memcg.Value(4000))
	s.Stat.Set(memcg.StatSteal, memcg.Value(1000))
	in = inputOf(s, hostOf(8192, 8192))
	d := Decide(&st, in, lottery)
	for _, sh := range d.Shares {
		if sh.OwnRatio || math.Abs(sh.Ratio-0.25) > 0.01 {
			t.Errorf("%+v", sh)
		}
	}
	if w := d.weights(); math.Abs(float64(w[0])/float64(w[1])-5) > 0.01 {
		t.Errorf("weights %v", w)
	}
}

// "Now, memcg/NUMA is balanced when each node's weight is between 80% and 120%
// of average node weight." The average is of n nodes.
func TestSeedTheBandIsAroundTheAverageOfNNodes(t *testing.T) {
	for _, c := range []struct {
		name     string
		weights  []uint64
		balanced bool
	}{
		{"one node", []uint64{100}, true},
		{"both on the average", []uint64{100, 100}, true},
		{"on the edges of the band", []uint64{80, 120}, true},
		{"just outside of the band", []uint64{79, 121}, false},
		{"a node that holds memory and can give nothing", []uint64{100, 0}, false},
		{"four nodes with one heavier", []uint64{100, 100, 100, 125}, true},
		{"four nodes with one much heavier", []uint64{100, 100, 100, 140}, false},
		{"nobody can give", []uint64{0, 0}, true},
	} {
		shares := make([]Share, len(c.weights))
		for i, w := range c.weights {
			shares[i] = Share{Node: memcg.NodeID(i), Weight: w}
			if w == 0 {
				shares[i].Why = WhyNothing
			}
		}
		shares = append(shares, Share{Why: WhyEmpty}, Share{Why: WhySlow}, Share{Why: WhyNoFigures})
		if got := balanced(shares); got != c.balanced {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// "If memcg is well balanced among nodes, usual fall back (and mask) is used. If
// not, it selects node local zonelist and do target reclaim."
func TestSeedOnlyAnUnbalancedCgroupIsTargeted(t *testing.T) {
	even := sampleOf(sizes{inactiveFile: 500}.stats(0), sizes{inactiveFile: 480}.stats(1))
	var st State
	if d := decideTwice(&st, inputOf(even, hostOf(8192, 8192)), lottery, nil); d.Reach != Everywhere || d.Rule != "balanced" || !d.Nodes.Empty() {
		t.Errorf("even: %v by %s on %v", d.Reach, d.Rule, d.Nodes)
	}
	// The layout that was measured on 6.12: plain reclaim swapped 49.5 MB of
	// anon out of node 1 while node 0 held 200 MB of cold clean file.
	uneven := sampleOf(sizes{inactiveFile: 200, inactiveAnon: 48}.stats(0), sizes{inactiveAnon: 96}.stats(1))
	st = State{}
	in := inputOf(uneven, hostOf(8192, 8192))
	for _, drawn := range []ticket{0, 1, 1 << 15, 1<<16 - 1} {
		in.Random = drawn
		d := decideTwice(&st, in, lottery, nil)
		if d.Reach != OneNode || d.Nodes != memcg.NodesOf(0) || d.Rule != "drawn" || d.Most != 200*mib {
			t.Errorf("ticket %d: %v by %s on %v, most %d", drawn, d.Reach, d.Rule, d.Nodes, d.Most)
		}
	}
}

func TestANodeThatRefaultsIsABadDonor(t *testing.T) {
	s := sampleOf(sizes{inactiveFile: 1024}.stats(0), sizes{inactiveFile: 1024}.stats(1))
	var st State
	// 218 refaults in 5 s at 100 us are 261,600 us a minute, on 262,144 pages: 1
	// us a minute for each page halves the weight.
	d := decideTwice(&st, inputOf(s, hostOf(8192, 8192)), lottery, countersGrow(1, memcg.NodeRefaultFile, 218))
	if got := float64(d.share(0).Weight) / float64(d.share(1).Weight); math.Abs(got-2) > 0.01 || d.Reach != OneNode {
		t.Errorf("weights %v, cost %.3f, %v", d.weights(), d.share(1).Cost, d.Reach)
	}
}
