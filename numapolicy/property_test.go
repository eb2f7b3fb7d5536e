package numapolicy

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

func drawNode(rt *rapid.T, id memcg.NodeID) memcg.NodeStats {
	n := memcg.NodeStats{ID: id}
	for k := range memcg.NumNodeStats {
		n.Set(k, drawField(rt, "key", rapid.SampledFrom([]uint64{0, 1 << 12, 1 << 30, 1 << 62}).Draw(rt, "most")))
	}
	return n
}

// Whatever the kernel prints, the bounds of Decide hold.
func TestNoSampleBreaksTheBounds(t *testing.T) {
	drawn := 0
	defer func() {
		if drawn == 0 {
			t.Error("no node was ever drawn: the inputs no longer reach the lottery")
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		var st, twin State
		count := rapid.IntRange(1, 5).Draw(rt, "nodes")
		h := hostOf(make([]uint64, count)...)
		p := Policy{Lottery: true, SwapWhenShort: rapid.Bool().Draw(rt, "swap"), DemoteOutside: rapid.Bool().Draw(rt, "demote")}
		for i := range h.Nodes {
			h.Nodes[i].HasCPU = rapid.IntRange(0, 3).Draw(rt, "cpu") > 0
			h.Nodes[i].HasMemory = rapid.IntRange(0, 5).Draw(rt, "memory") > 0
		}
		src := rapid.Uint64().Draw(rt, "seed")
		var nodes Nodes
		for range rapid.IntRange(2, 10).Draw(rt, "samples") {
			s := sampleOf()
			for i := range h.Nodes {
				h.Nodes[i].MemFree = drawField(rt, "free", 1<<28)
				s.Nodes = append(s.Nodes, drawNode(rt, h.Nodes[i].ID))
			}
			h.SwapFree = drawField(rt, "swap free", 1<<30)
			s.Stat.Set(memcg.StatScan, drawField(rt, "scan", 1<<40))
			s.Stat.Set(memcg.StatSteal, drawField(rt, "steal", 1<<40))
			if rapid.Bool().Draw(rt, "bound") {
				s.MemsEffective = memcg.NodesOf(0)
			}
			elapsed := time.Duration(rapid.SampledFrom([]int{5000, 5000, 1, 0, -1, 1 << 40}).Draw(rt, "elapsed")) * time.Millisecond
			nodes.Look(h, DefaultMarks, elapsed)
			in := inputOf(s, h)
			in.Nodes, in.Elapsed, in.Random = &nodes, elapsed, rand.New(rand.NewPCG(src, src))
			in.Swappiness = rapid.SampledFrom([]memcg.Swappiness{{}, memcg.SwappinessOf(0), memcg.SwappinessOf(60), memcg.SwappinessOf(200), memcg.SwappinessOf(201)}).Draw(rt, "swappiness")
			in.ByNode, in.Demotion = rapid.IntRange(0, 4).Draw(rt, "by node") > 0, rapid.Bool().Draw(rt, "demotion")
			d := Decide(&st, in, p)
			again := in
			again.Random = rand.New(rand.NewPCG(src, src))
			if e := Decide(&twin, again, p); e.Nodes != d.Nodes || e.Reach != d.Reach || e.Rule != d.Rule || e.Drawing.Ticket != d.Drawing.Ticket {
				rt.Fatalf("same input, other output:\n%+v\n%+v", d, e)
			}
			checkBounds(rt, &d, &in, &p)
			if d.Reach == OneNode {
				drawn++
			}
			for id := range memcg.NodeID(count) {
				checkOffer(rt, st.Offer(memcg.ID{}, id, in, p), id, &in, &p)
			}
		}
	})
}

func checkBounds(rt *rapid.T, d *Decision, in *Input, p *Policy) {
	rt.Helper()
	if d.Rule == "" {
		rt.Fatal("a decision without a rule")
	}
	if (d.Reach == OneNode) != (d.Nodes.Len() == 1) || d.Reach != OneNode && !d.Nodes.Empty() {
		rt.Fatalf("%v on %v", d.Reach, d.Nodes)
	}
	v, set := d.Swappiness.Get()
	fileOnly := set && v == 0
	if d.FileOnly && !fileOnly || !d.FileOnly && d.Swappiness != in.Swappiness {
		rt.Fatalf("file only %t with swappiness %v of %v", d.FileOnly, d.Swappiness, in.Swappiness)
	}
	if d.Reach == Nowhere {
		return
	}
	canSwap := p.SwapWhenShort && in.Nodes.noRoom(mayUse(in))
	for i := range in.Sample.Nodes {
		n := &in.Sample.Nodes[i]
		size, known := memcg.Sum(n.Get(memcg.NodeAnon), n.Get(memcg.NodeFile)).Get()
		reached := d.Reach == Everywhere && (size > 0 || !known) || d.Nodes.Has(n.ID)
		if reached && in.Nodes.short.Has(n.ID) && !canSwap && !fileOnly {
			rt.Fatalf("%v by %s: anon may be taken from the short node %d", d.Reach, d.Rule, n.ID)
		}
	}
	if d.Reach != OneNode {
		return
	}
	id := d.Drawing.Item
	n, listed := in.Sample.Node(id)
	sh := d.share(id)
	switch {
	case !listed, !in.Nodes.memory.Has(id), !in.Nodes.cpu.Has(id), !in.ByNode:
		rt.Fatalf("node %d was drawn", id)
	case sh.Weight == 0 || sh.Weight != d.Drawing.Weight || sh.Why != "":
		rt.Fatalf("drawn %+v with share %+v", d.Drawing.Entry, sh)
	case swappinessOf(in.Swappiness) < 200 && (!n.Get(memcg.NodeRefaultFile).Known() || !n.Get(memcg.NodeInactiveFile).Known()):
		rt.Fatalf("node %d was drawn without figures", id)
	}
}

func checkOffer(rt *rapid.T, o Offer, id memcg.NodeID, in *Input, p *Policy) {
	rt.Helper()
	if o.Weight == 0 {
		return
	}
	v, set := o.Swappiness.Get()
	anon := !set || v > 0
	if !in.Nodes.short.Has(id) || anon && !(p.SwapWhenShort && in.Nodes.noRoom(mayUse(in))) {
		rt.Fatalf("node %d: %+v", id, o)
	}
}

// A node that cannot give changes no other node's share, and the order in which
// nodes are listed changes nothing.
func TestANodeThatCannotGiveChangesNoOthersWeight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := sampleOf()
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			s.Nodes = append(s.Nodes, sizes{inactiveFile: rapid.Uint64Range(1, 4000).Draw(rt, "file")}.stats(memcg.NodeID(i)))
		}
		h := hostOf(8000, 8000, 8000, 8000, 8000)
		var a, b State
		without := decideTwice(&a, inputOf(s, h), lottery, nil)
		s.Nodes = append(s.Nodes, sizes{}.stats(4))
		with := decideTwice(&b, inputOf(s, h), lottery, nil)
		for _, sh := range without.Shares {
			if with.share(sh.Node) != sh {
				rt.Fatalf("%+v became %+v", sh, with.share(sh.Node))
			}
		}
		if with.Reach != without.Reach || with.Drawing.Tickets() != without.Drawing.Tickets() {
			rt.Fatalf("%v by %s became %v by %s", without.Reach, without.Rule, with.Reach, with.Rule)
		}
	})
}
