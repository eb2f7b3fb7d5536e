package numapolicy

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func twoUneven() *memcg.Sample {
	return sampleOf(sizes{inactiveFile: 900}.stats(0), sizes{inactiveFile: 100}.stats(1))
}

func TestWithoutAnEarlierSampleNothingIsTargeted(t *testing.T) {
	var st State
	in := inputOf(twoUneven(), hostOf(8192, 8192))
	in.Elapsed = 0
	if d := Decide(&st, in, lottery); d.Reach != Everywhere || d.Rule != "no-figures" || d.share(0).Why != WhyNoFigures {
		t.Errorf("%v by %s, %+v", d.Reach, d.Rule, d.Shares)
	}
}

func TestWhatIsOffOrNotThereLeavesTheRequestAsItIs(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		change     func(*Input, *Policy)
	}{
		{"policy off", "lottery-off", func(_ *Input, p *Policy) { p.Lottery = false }},
		{"no memory.numa_stat", "no-node-figures", func(in *Input, _ *Policy) { in.Sample.NodesState = memcg.Unsupported }},
		{"no host sample", "no-node-figures", func(in *Input, _ *Policy) { in.Host = nil }},
		{"no way to reclaim by node", "not-by-node", func(in *Input, _ *Policy) { in.ByNode = false }},
		{"nothing to draw from", "nothing-to-draw-from", func(in *Input, _ *Policy) { in.Random = nil }},
		{"nothing anywhere", "nothing-to-give", func(in *Input, _ *Policy) {
			in.Sample.Nodes = []memcg.NodeStats{sizes{}.stats(0), sizes{}.stats(1)}
		}},
	} {
		in, p := inputOf(twoUneven(), hostOf(8192, 8192)), lottery
		c.change(&in, &p)
		var st State
		d := decideTwice(&st, in, p, nil)
		if d.Reach != Everywhere || d.Rule != c.rule || d.Swappiness != in.Swappiness || !d.Nodes.Empty() || d.FileOnly {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// Missing counters are not zero: a node whose figures are unknown gets no
// ticket, and the reason is recorded.
func TestANodeWithUnknownFiguresGetsNoTicket(t *testing.T) {
	for _, c := range []struct {
		name string
		key  memcg.NodeStat
		why  memcg.State
	}{
		{"inactive file missing", memcg.NodeInactiveFile, memcg.Missing},
		{"inactive file invalid", memcg.NodeInactiveFile, memcg.Invalid},
		{"refaults unsupported", memcg.NodeRefaultFile, memcg.Unsupported},
		{"refaults missing this time", memcg.NodeRefaultFile, memcg.Missing},
	} {
		var st State
		in := inputOf(twoUneven(), hostOf(8192, 8192))
		d := decideTwice(&st, in, lottery, func(n *memcg.NodeStats) {
			if n.ID == 0 {
				n.Set(c.key, memcg.Absent(c.why))
			}
		})
		if sh := d.share(0); sh.Weight != 0 || sh.Why != WhyNoFigures || d.share(1).Weight == 0 {
			t.Errorf("%s: %+v", c.name, d.Shares)
		}
		if d.Nodes.Has(0) {
			t.Errorf("%s: drawn all the same", c.name)
		}
	}
}

func TestACounterThatGoesBackIsUnknownUntilItHasTwoReadings(t *testing.T) {
	var st State
	in := inputOf(twoUneven(), hostOf(8192, 8192))
	in.Sample.Nodes[0].Set(memcg.NodeRefaultFile, memcg.Value(1000))
	decideTwice(&st, in, lottery, nil)
	in.Sample.Nodes[0].Set(memcg.NodeRefaultFile, memcg.Value(10))
	if d := Decide(&st, in, lottery); d.share(0).Why != WhyNoFigures {
		t.Errorf("went back: %+v", d.share(0))
	}
	if d := Decide(&st, in, lottery); d.share(0).Why != "" || d.share(0).Cost != 0 {
		t.Errorf("two readings: %+v", d.share(0))
	}
}

func TestTheTableIsBuiltAnewOnEventsOnly(t *testing.T) {
	var st State
	in := inputOf(twoUneven(), hostOf(8192, 8192))
	first := decideTwice(&st, in, lottery, nil)
	before := first.share(0).Weight
	grow := func(pages uint64) uint64 {
		n := &in.Sample.Nodes[0]
		for _, k := range []memcg.NodeStat{memcg.NodeInactiveFile, memcg.NodeFile} {
			v, _ := n.Get(k).Get()
			n.Set(k, memcg.Value(v+pages*page))
		}
		d := Decide(&st, in, lottery)
		return d.share(0).Weight
	}
	if w := grow(1023); w != before {
		t.Errorf("1023 pages came: weight %d after %d", w, before)
	}
	if w := grow(1); w <= before {
		t.Errorf("1024 pages came: weight %d after %d", w, before)
	}
	in.Swappiness = memcg.SwappinessOf(100)
	if w := grow(0); w >= before {
		t.Errorf("another swappiness: weight %d after %d", w, before)
	}
}

// Sums fade by the time that went by, not by the number of samples.
func TestRatesDoNotDependOnTheInterval(t *testing.T) {
	cost := func(interval time.Duration) float64 {
		var st State
		var d Decision
		in := inputOf(twoUneven(), hostOf(8192, 8192))
		for at := time.Duration(0); at <= 5*time.Minute; at += interval {
			in.Elapsed = min(interval, at)
			in.Sample.Nodes[0].Set(memcg.NodeRefaultFile, memcg.Value(uint64(at.Seconds()*1000)))
			st.events = rebuildAfter
			d = Decide(&st, in, lottery)
		}
		return d.share(0).Cost
	}
	fine, coarse := cost(time.Second), cost(20*time.Second)
	if fine < 26 || fine > 26.1 || coarse < fine*0.99 || coarse > fine*1.01 {
		t.Errorf("1000 refaults a second at 100 us on 230,400 pages cost %.3f at 1 s and %.3f at 20 s", fine, coarse)
	}
}

func TestEveryDrawRecordsWhatItWasDrawnFrom(t *testing.T) {
	var st State
	in := inputOf(twoUneven(), hostOf(8192, 8192))
	in.Random = ticket(60_000)
	d := decideTwice(&st, in, lottery, nil)
	w0, w1 := d.share(0).Weight, d.share(1).Weight
	if d.Drawing.Ticket != 60_000 || d.Drawing.Item != 1 || d.Drawing.Weight != w1 || d.Drawing.Total() != w0+w1 || len(d.Drawing.Entries()) != 2 {
		t.Errorf("%+v", d.Drawing)
	}
	names := map[string]float64{}
	for _, term := range d.Because {
		names[term.Name] = term.Value
	}
	if names["ticket"] != 60_000 || names["all weights"] != float64(w0+w1) || names["drawn node"] != 1 {
		t.Errorf("%+v", d.Because)
	}
}

func manyNodes(n int) (*memcg.Sample, *memcg.HostSample) {
	s, h := sampleOf(), hostOf(make([]uint64, n)...)
	for i := range h.Nodes {
		h.Nodes[i].MemFree = memcg.Value(8 << 30)
		s.Nodes = append(s.Nodes, sizes{inactiveFile: uint64(100 + i*37%900), inactiveAnon: 3000, refaultFile: 10, scan: 1, steal: 1}.stats(memcg.NodeID(i)))
	}
	return s, h
}

func TestDecideAndOfferDoNotAllocate(t *testing.T) {
	s, h := manyNodes(16)
	in := inputOf(s, h)
	var st State
	decideTwice(&st, in, lottery, nil)
	decideTwice(&st, in, lottery, nil)
	var r Relief
	offers := make([]Offer, 1, 8)
	i := uint64(0)
	if n := testing.AllocsPerRun(200, func() {
		i++
		s.Nodes[3].Set(memcg.NodeFile, memcg.Value((100+i%2*50)*mib)) // events enough for a build every time
		Decide(&st, in, lottery)
		offers[0] = st.Offer(memcg.ID{Path: "/a"}, 3, in, lottery)
		r.Draw(offers, mib, in.Random)
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkDecideOn8Nodes(b *testing.B) {
	s, h := manyNodes(8)
	in := inputOf(s, h)
	var st State
	b.ReportAllocs()
	for b.Loop() {
		Decide(&st, in, lottery)
	}
}
