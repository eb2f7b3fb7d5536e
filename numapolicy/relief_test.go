package numapolicy

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// The machine of "swap insanity": 64 GiB on two nodes, node 0 full of a
// database, 9.6 GiB free on node 1.
func TestC57AFullNodeGivesNoAnonWhileAnotherHasRoom(t *testing.T) {
	s, h := readCase(t, "testdata/c57/host/sys/fs/cgroup/mysql"), readHost(t, "testdata/c57/host")
	in := inputOf(s, h)
	if in.Nodes.Short() != memcg.NodesOf(0) || !in.Nodes.Room().Has(1) {
		t.Fatalf("short %v, room %v", in.Nodes.Short(), in.Nodes.Room())
	}
	// What plain reclaim would do is what must not happen, whatever the ticket,
	// the swappiness and the policy.
	for _, swappiness := range []int{1, 60, 100, 200, memcg.SwappinessMax} {
		for _, drawn := range []ticket{0, 1 << 14, 1 << 15, 1<<16 - 1} {
			var st State
			in.Swappiness, in.Random = memcg.SwappinessOf(swappiness), drawn
			d := decideTwice(&st, in, Policy{Lottery: true, SwapWhenShort: true}, nil)
			n, set := d.Swappiness.Get()
			if takes0 := d.Reach == Everywhere || d.Nodes.Has(0); d.Reach != Nowhere && takes0 && !(set && n == 0) {
				t.Errorf("swappiness %d, ticket %d: %v on %v with swappiness %v by %s", swappiness, drawn, d.Reach, d.Nodes, d.Swappiness, d.Rule)
			}
		}
	}
	var st State
	in.Swappiness = memcg.SwappinessOf(60)
	decideTwice(&st, in, lottery, nil)
	o := st.Offer(memcg.ID{Path: "/mysql"}, 0, in, Policy{Lottery: true, SwapWhenShort: true})
	if n, set := o.Swappiness.Get(); n != 0 || !set || o.Most != 134217728 || o.Weight == 0 || o.Rule != "file-only" {
		t.Errorf("offer %+v", o)
	}
	if o = st.Offer(memcg.ID{}, 1, in, lottery); o.Weight != 0 || o.Rule != "not-short" {
		t.Errorf("node 1 is not short: %+v", o)
	}
	// Pinned to node 0, the way out is a wider set.
	s.Mems, s.MemsEffective, s.MemsState = memcg.NodesOf(0), memcg.NodesOf(0), memcg.Present
	if o = st.Offer(memcg.ID{}, 0, in, lottery); o.Widen != memcg.NodesOf(1) {
		t.Errorf("offer of the pinned cgroup %+v", o)
	}
	p := PlanMems(MemsInput{Mode: MemsAvoidShort, Sample: s, Host: h, Nodes: nodesFor(h, time.Hour), Parent: mask("0-1"), Original: mask("0")})
	if p.Set || p.Rule != "every-node-short" || p.Widen != memcg.NodesOf(1) {
		t.Errorf("plan %+v", p)
	}
}

func TestAnonIsTakenOnlyWhereEveryNodeIsShortAndThePolicySwaps(t *testing.T) {
	s := sampleOf(sizes{inactiveFile: 1, inactiveAnon: 500}.stats(0), sizes{inactiveAnon: 500}.stats(1))
	cached := hostOf(10, 10)
	cached.Nodes[1].InactiveFile = memcg.Value(1 << 30)
	unread := hostOf(10, 10)
	unread.Nodes[1].MemFree = memcg.Absent(memcg.Missing)
	for _, c := range []struct {
		name string
		h    *memcg.HostSample
		p    Policy
		mems string
		anon bool
	}{
		{"both short, swap allowed", hostOf(10, 10), Policy{Lottery: true, SwapWhenShort: true}, "0-1", true},
		{"both short, swap not allowed", hostOf(10, 10), lottery, "0-1", false},
		{"the other one has room", hostOf(10, 9000), Policy{Lottery: true, SwapWhenShort: true}, "0-1", false},
		{"the other one has room and may not be used", hostOf(10, 9000), Policy{Lottery: true, SwapWhenShort: true}, "0", true},
		{"the other one is short and full of cache", cached, Policy{Lottery: true, SwapWhenShort: true}, "0-1", false},
		{"the other one was not read", unread, Policy{Lottery: true, SwapWhenShort: true}, "0-1", false},
	} {
		var st State
		s.MemsEffective = mask(c.mems)
		in := inputOf(s, c.h)
		d := decideTwice(&st, in, c.p, nil)
		if got := !d.share(0).FileOnly; got != c.anon {
			t.Errorf("%s: %+v", c.name, d.share(0))
		}
		o := st.Offer(memcg.ID{}, 0, in, c.p)
		if n, _ := o.Swappiness.Get(); (n > 0) != c.anon || (o.Most > 1*mib) != c.anon {
			t.Errorf("%s: offer %+v", c.name, o)
		}
	}
}

func TestARequestForAnonAloneIsNotMadeOfShortNodes(t *testing.T) {
	s := sampleOf(sizes{inactiveFile: 100, inactiveAnon: 500}.stats(0), sizes{}.stats(1))
	var st State
	in := inputOf(s, hostOf(10, 9000))
	in.Swappiness = memcg.SwappinessOf(memcg.SwappinessMax)
	if d := decideTwice(&st, in, lottery, nil); d.Reach != Nowhere || d.Rule != "short-gives-no-anon" {
		t.Errorf("%v by %s", d.Reach, d.Rule)
	}
	in.ByNode = false
	if d := Decide(&st, in, lottery); d.Reach != Nowhere {
		t.Errorf("%v by %s", d.Reach, d.Rule)
	}
	// Without a way to reclaim by node, an ordinary request becomes file only.
	in.Swappiness = memcg.SwappinessOf(60)
	if d := Decide(&st, in, lottery); d.Reach != Everywhere || !d.FileOnly || d.Rule != "not-by-node" {
		t.Errorf("%v, file only %t, by %s", d.Reach, d.FileOnly, d.Rule)
	}
}

func TestReliefDrawsAmongCgroupsByWeight(t *testing.T) {
	offers := []Offer{
		{Cgroup: memcg.ID{Path: "/a"}, Weight: 300, Most: 50 * mib},
		{Cgroup: memcg.ID{Path: "/none"}},
		{Cgroup: memcg.ID{Path: "/b"}, Weight: 100, Most: 5 * mib},
	}
	var r Relief
	for _, c := range []struct {
		drawn ticket
		path  string
		bytes uint64
	}{{0, "/a", 20 * mib}, {49_000, "/a", 20 * mib}, {49_100, "/b", 5 * mib}, {65_000, "/b", 5 * mib}} {
		g, ok := r.Draw(offers, 20*mib, c.drawn)
		if !ok || g.Cgroup.Path != c.path || g.Bytes != c.bytes || g.Drawing.Total() != 400 || g.Drawing.Ticket != uint64(c.drawn) {
			t.Errorf("ticket %d: %+v, %t", c.drawn, g, ok)
		}
	}
	if g, ok := r.Draw(offers, 0, ticket(0)); ok {
		t.Errorf("nothing is lacking: %+v", g)
	}
	if g, ok := r.Draw(offers[1:2], mib, ticket(0)); ok {
		t.Errorf("nobody can give: %+v", g)
	}
}
