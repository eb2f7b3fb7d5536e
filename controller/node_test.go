package controller

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

const byLottery = `
policies:
  - name: app
    match: [{path: /app*}]
    law: tmo
    squeeze: {max_step: 1%}
    swappiness: 60
    numa: {reclaim: lottery}
`

// evenly is a source whose draws go round all tickets evenly, so that a test
// sees the shares without luck.
type evenly struct{ n uint64 }

func (e *evenly) Uint64N(n uint64) uint64 {
	e.n += 0x9E3779B97F4A7C15 // the golden ratio of 2^64
	return e.n >> 32 * n >> 32
}

// lies is what a cgroup has on one node, in MiB.
type lies struct{ file, anon uint64 }

// spread is a quiet cgroup with memory on the nodes 0, 1, ...
func spread(path string, nodes ...lies) Observation {
	var file, anon uint64
	ob := seen(path, 0)
	s := ob.Sample
	s.NodesState, s.MemsState = memcg.Present, memcg.Present
	for i, l := range nodes {
		n := memcg.NodeStats{ID: memcg.NodeID(i)}
		n.SetAll(memcg.Unsupported)
		for k, v := range map[memcg.NodeStat]uint64{
			memcg.NodeAnon: l.anon, memcg.NodeInactiveAnon: l.anon, memcg.NodeActiveAnon: 0,
			memcg.NodeFile: l.file, memcg.NodeInactiveFile: l.file, memcg.NodeActiveFile: 0,
			memcg.NodeRefaultAnon: 0, memcg.NodeRefaultFile: 0,
		} {
			n.Set(k, memcg.Value(v*mib))
		}
		s.Nodes = append(s.Nodes, n)
		s.MemsEffective.Add(n.ID)
		file, anon = file+l.file, anon+l.anon
	}
	s.Current = memcg.Value((file + anon) * mib)
	for k, v := range map[memcg.Stat]uint64{
		memcg.StatAnon: anon, memcg.StatInactiveAnon: anon, memcg.StatFile: file, memcg.StatInactiveFile: file,
	} {
		s.Stat.Set(k, memcg.Value(v*mib))
	}
	return ob
}

// nodeBench is a bench on a host with nodes of 1 GiB that have as much free, in
// MiB, and little cache.
func nodeBench(t *testing.T, mode telemetry.Mode, policies string, free ...uint64) *bench {
	t.Helper()
	b := newBench(t, mode, "", policies)
	b.core.DrawFrom(&evenly{})
	for i, f := range free {
		b.host.Nodes = append(b.host.Nodes, memcg.Node{
			ID: memcg.NodeID(i), HasMemory: true, HasCPU: true, MemTotal: memcg.Value(1024 * mib), MemFree: memcg.Value(f * mib),
			InactiveFile: memcg.Value(0), ActiveFile: memcg.Value(0),
		})
	}
	return b
}

// tick is step on a new reading of the host.
func (b *bench) tick(done []memcg.Outcome, obs ...Observation) ([]memcg.Reclaim, []telemetry.Record) {
	b.core.SeeHost(b.now.Add(time.Second), &b.host)
	return b.step(done, 4, obs...)
}

// until ticks until something is asked for, at most ten times.
func (b *bench) until(obs ...Observation) (memcg.Reclaim, telemetry.Record) {
	b.t.Helper()
	for range 10 {
		if requests, records := b.tick(nil, obs...); len(requests) > 0 {
			i := slices.IndexFunc(records, func(r telemetry.Record) bool { return r.Cgroup == requests[0].Cgroup })
			return requests[0], records[i]
		}
	}
	b.t.Fatal("nothing was asked for in ten ticks")
	return memcg.Reclaim{}, telemetry.Record{}
}

func TestASqueezeTakesFromTheNodeWithTheCache(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.track(id("/app"))
	got, r := b.until(spread("/app", lies{file: 200, anon: 48}, lies{anon: 96}))
	if got.Nodes != memcg.NodesOf(0) || got.Swappiness != memcg.SwappinessOf(60) {
		t.Errorf("asked %+v", got)
	}
	d := r.Draw
	if r.NodeRule != "drawn" || d == nil || d.Node != 0 || d.Weight == 0 || d.Total != d.Weight || d.Entries != 1 || d.Ticket >= d.Tickets {
		t.Fatalf("rule %s, draw %+v", r.NodeRule, d)
	}
	if want := []telemetry.NodeWeight{{Node: 0, Weight: d.Weight}}; !slices.Equal(d.Weights, want) {
		t.Errorf("weights %v, want %v", d.Weights, want)
	}
}

func TestWithoutTheLotteryRequestsAreAsTheyWere(t *testing.T) {
	for name, policies := range map[string]string{"off": "off", "lottery": "lottery"} {
		b := nodeBench(t, telemetry.Enforce, "\npolicies:\n  - name: app\n    match: [{path: /app}]\n    law: tmo\n    squeeze: {max_step: 1%}\n    numa: {reclaim: "+policies+"}\n", 500, 500)
		b.track(id("/app"))
		// On the first nodes differ, on the second they are alike.
		nodes := map[string][]lies{"off": {{file: 200}, {anon: 200}}, "lottery": {{file: 200}, {file: 200}}}[name]
		got, r := b.until(spread("/app", nodes...))
		if !got.Nodes.Empty() || got.Bytes != 4*mib || r.Draw != nil {
			t.Errorf("%s: asked %+v, draw %+v", name, got, r.Draw)
		}
		if want := map[string]string{"off": "", "lottery": "balanced"}[name]; r.NodeRule != want {
			t.Errorf("%s: rule %q, want %q", name, r.NodeRule, want)
		}
	}
}

func TestAHostThatCannotKeepToANodeIsAskedWithoutAndToldOnce(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.track(id("/app"))
	ob := spread("/app", lies{file: 200}, lies{anon: 200})
	first, _ := b.until(ob)
	refused := memcg.Outcome{Request: first, Err: memcg.ErrUnsupported}
	again, records := b.tick([]memcg.Outcome{refused}, ob)
	if len(again) != 1 || !again[0].Nodes.Empty() || again[0].Bytes != 4*mib || records[0].NodeRule != "not-by-node" {
		t.Fatalf("after the refusal: %+v, rule %s, held %q", again, records[0].NodeRule, records[0].Held)
	}
	if want := []string{"nodes"}; !slices.Equal(b.notes.said, want) {
		t.Errorf("said %v, want %v", b.notes.said, want)
	}
	b.now = b.now.Add(byNodeRest)
	later, _ := b.tick([]memcg.Outcome{{Request: again[0]}}, ob)
	if len(later) != 1 || later[0].Nodes.Empty() {
		t.Errorf("after a rest: %+v", later)
	}
}

func TestARequestByNodeNeedsNoSwappinessOfMemoryReclaim(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.core.swappiness = unsupported
	b.track(id("/app"))
	if got, r := b.until(spread("/app", lies{file: 200}, lies{anon: 200})); got.Swappiness != memcg.SwappinessOf(60) || r.Held != "" {
		t.Errorf("asked %+v, held %q", got, r.Held)
	}
}

func TestAShortNodeIsRelievedOfFileByOneCgroupAtATime(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, `
policies:
  - name: app
    match: [{path: /app*}]
    squeeze: off
    swappiness: 60
    numa: {reclaim: lottery, swap_when_short: true}
`, 4, 500)
	b.host.Nodes[0].InactiveFile = memcg.Value(300 * mib)
	paths := []string{"/app1", "/app22", "/app333"}
	var ids []memcg.ID
	for _, p := range paths {
		ids = append(ids, id(p))
	}
	b.track(ids...)
	obs := []Observation{spread(paths[0], lies{file: 90, anon: 90}, lies{}), spread(paths[1], lies{file: 30}, lies{file: 30}), spread(paths[2], lies{anon: 100}, lies{file: 100})}
	b.tick(nil, obs...)
	count := map[string]int{}
	for range 80 {
		requests, records := b.tick(nil, obs...)
		if len(requests) != 1 {
			t.Fatalf("%d requests: %+v", len(requests), requests)
		}
		got := requests[0]
		count[got.Cgroup.Path]++
		if got.Nodes != memcg.NodesOf(0) || got.Swappiness != memcg.SwappinessOf(0) || got.Bytes > 7*mib || got.Bytes < 5*mib {
			t.Fatalf("asked %+v: want file of node 0 alone, what it lacks to its high mark of 10.24 MiB", got)
		}
		i := slices.IndexFunc(records, func(r telemetry.Record) bool { return r.Cgroup == got.Cgroup })
		r := records[i]
		if r.Rule != "node-short" || r.NodeRule != "file-only" || r.Draw == nil || !r.Draw.Short || r.Draw.Entries != 2 || len(r.Because) == 0 {
			t.Fatalf("record %+v", r)
		}
		if more, _ := b.tick(nil, obs...); len(more) != 0 {
			t.Fatalf("another request while one is under way: %+v", more)
		}
		b.tick([]memcg.Outcome{{Request: got}}) // back, and nobody is looked at
	}
	if count["/app333"] != 0 || count["/app1"] < 50 || count["/app1"] > 70 || count["/app1"]+count["/app22"] != 80 {
		t.Errorf("drew %v, want three quarters from the one with three quarters of the file there", count)
	}
}

func TestNothingIsDoneForAShortNodeWhere(t *testing.T) {
	const squeezeOff = "squeeze: off\n    swappiness: 60\n    numa: {reclaim: lottery, swap_when_short: true}\n"
	head := "\npolicies:\n  - name: app\n    match: [{path: /app}]\n    "
	for name, c := range map[string]struct {
		policies string
		ob       Observation
		prepare  func(b *bench)
	}{
		"the host cannot keep to a node":                 {head + squeezeOff, spread("/app", lies{file: 90}, lies{}), func(b *bench) { b.core.nodes.refuse = never }},
		"only anon lies there and another node has room": {head + squeezeOff, spread("/app", lies{anon: 90}, lies{}), nil},
		"its policy has no lottery":                      {head + "squeeze: off\n", spread("/app", lies{file: 90}, lies{}), nil},
		"memory.min protects all": {head + squeezeOff, func() Observation {
			ob := spread("/app", lies{file: 90}, lies{})
			ob.Sample.Min = memcg.LimitOf(90 * mib)
			return ob
		}(), nil},
		"its policy observes": {head + "observe: true\n    " + squeezeOff, spread("/app", lies{file: 90}, lies{}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := nodeBench(t, telemetry.Enforce, c.policies, 4, 500)
			if c.prepare != nil {
				c.prepare(b)
			}
			b.track(id("/app"))
			for range 5 {
				if requests, _ := b.tick(nil, c.ob); len(requests) != 0 {
					t.Fatalf("asked %+v", requests)
				}
			}
		})
	}
}

func TestAnonGoesForAShortNodeOnlyWhereEveryNodeIsShortAndThePolicySwaps(t *testing.T) {
	for name, c := range map[string]struct {
		swappiness string
		free       []uint64
		want       bool
	}{
		"every node is short":           {"60", []uint64{4, 4}, true},
		"one has room":                  {"60", []uint64{4, 500}, false},
		"the policy forbids swap":       {"0", []uint64{4, 4}, false},
		"a law that may choose not to":  {"{auto: {base: 100, min: 100}}", []uint64{4, 4}, true},
		"a law that chooses never swap": {"{auto: {base: 0, min: 0, max: 0}}", []uint64{4, 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := nodeBench(t, telemetry.Enforce, "\npolicies:\n  - name: app\n    match: [{path: /app}]\n    squeeze: off\n    swappiness: "+c.swappiness+
				"\n    numa: {reclaim: lottery, swap_when_short: true}\n", c.free...)
			b.track(id("/app"))
			b.core.swap = newBudget(1<<40, b.now.Add(-time.Hour))
			asked := false
			for range 5 {
				requests, _ := b.tick(nil, spread("/app", lies{anon: 200}, lies{anon: 10}))
				asked = asked || len(requests) > 0
				for _, got := range requests {
					if v, set := got.Swappiness.Get(); !set || v == 0 || got.Nodes.Empty() {
						t.Errorf("asked %+v", got)
					}
				}
			}
			if asked != c.want {
				t.Errorf("asked: %v, want %v", asked, c.want)
			}
		})
	}
}

func TestReclaimStopsWhereTheKernelDemotesOutsideOfCpusetMems(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.host.Demotion = memcg.Value(1)
	b.track(id("/app"))
	ob := spread("/app", lies{file: 200}, lies{file: 0})
	ob.Sample.MemsEffective = memcg.NodesOf(0)
	b.until(ob)
	moved := spread("/app", lies{file: 100}, lies{file: 100})
	moved.Sample.MemsEffective = memcg.NodesOf(0)
	for range 5 {
		requests, records := b.tick(nil, moved)
		if len(requests) != 0 || records[0].Want > 0 && records[0].Held != whyNowhere["demotes-outside"] && records[0].Held != "the request before is still in flight" {
			t.Fatalf("asked %+v, held %q", requests, records[0].Held)
		}
	}
}

func TestEachGlanceDrawsANodeOfItsOwn(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, keptBelow+"    numa: {reclaim: lottery}\n", 500, 500)
	b.track(id("/app"))
	for f := uint64(40); f <= 80; f += 20 {
		ob := spread("/app", lies{file: f * 3 / 4}, lies{file: f / 4})
		ob.Sample.Max = memcg.LimitOf(100 * mib)
		if requests, _ := b.tick(nil, ob); len(requests) > 0 {
			t.Fatalf("at %d MiB of 100: %+v", f, requests)
		}
	}
	count := map[memcg.NodeID]int{}
	for range 100 {
		requests, records := b.glance(20*time.Millisecond, 95*mib)
		if len(requests) != 1 || records[0].Draw == nil || requests[0].Reclaim.Nodes != memcg.NodesOf(records[0].Draw.Node) {
			t.Fatalf("requests %+v, records %+v", requests, records)
		}
		count[records[0].Draw.Node]++
		delete(b.core.inFlight, id("/app"))
	}
	if count[0] < 70 || count[0] > 80 {
		t.Errorf("drew %v, want three quarters from node 0", count)
	}
}

func TestRequestsByNodeTakeATenthOfTheTimeAtMost(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.track(id("/app"))
	ob := spread("/app", lies{file: 200}, lies{anon: 200})
	last, _ := b.until(ob)
	const ticks, took = 200, 500 * time.Millisecond
	byNode, plain := 0, 0
	for range ticks {
		requests, records := b.tick([]memcg.Outcome{{Request: last, Took: took}}, ob)
		if len(requests) != 1 {
			t.Fatalf("%d requests, held %q", len(requests), records[0].Held)
		}
		if last = requests[0]; !last.Nodes.Empty() {
			byNode++
		} else if plain++; records[0].NodeRule != costly || records[0].Draw != nil {
			t.Fatalf("a plain request by rule %q", records[0].NodeRule)
		}
	}
	most := int((byNodeCredit + time.Duration(ticks)*time.Second/10) / took)
	if byNode > most+1 || byNode < most-3 || plain == 0 {
		t.Errorf("%d of %d requests by node, want about %d", byNode, ticks, most)
	}
}

func TestAShortNodeIsSparedWhereRequestsByNodeCostTooMuch(t *testing.T) {
	for asked, want := range map[int]string{60: "0", 200: "200"} {
		r := telemetry.Record{Want: mib, Swappiness: memcg.SwappinessOf(asked)}
		takeFromAll(&r, &numapolicy.Decision{Shares: []numapolicy.Share{{Node: 0, FileOnly: true}, {Node: 1}}})
		if r.Swappiness.String() != want || (r.Held != "") != (asked == 200) {
			t.Errorf("%d: swappiness %s, held %q", asked, r.Swappiness, r.Held)
		}
	}
}

func TestPlacingASampleAllocatesNothing(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	b.track(id("/app"))
	ob := spread("/app", lies{file: 200}, lies{anon: 200})
	b.until(ob)
	cg, d := b.core.cgroups[id("/app")], workingset.Decision{}
	for name, want := range map[string]uint64{"a request": 4 * mib, "nothing wanted": 0} {
		if n := testing.AllocsPerRun(100, func() {
			r := telemetry.Record{Want: want, Elapsed: time.Second}
			b.core.place(b.now, &b.host, cg, ob.Sample, &d, &r)
			b.core.placeGlance(b.now, cg, &r)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestAnErrorOfARequestWithoutNodesSaysNothingOfNodes(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, byLottery, 500, 500)
	if b.core.refusedNodes(b.now, &memcg.Outcome{Err: memcg.ErrUnsupported}) ||
		b.core.refusedNodes(b.now, &memcg.Outcome{Request: memcg.Reclaim{Nodes: memcg.NodesOf(0)}, Err: syscall.EIO}) {
		t.Error("taken for a refusal of nodes")
	}
}
