package numapolicy

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

// ago is a change that left the first node so long ago.
func ago(d time.Duration) MemsChange { return MemsChange{Ago: d, Left: memcg.NodesOf(0)} }

// cameBack is one that added it again.
func cameBack(d time.Duration) MemsChange { return MemsChange{Ago: d, Added: memcg.NodesOf(0)} }

func TestWhatChangesBeforeSayOfTheNext(t *testing.T) {
	const minute = time.Minute
	full := plan{mode: MemsAvoidShort, free: []uint64{10, 9000}, lasting: time.Minute, has: "0-1", parent: "0-1", original: "", wrote: "1",
		lies: []uint64{100, 100}, rule: "avoid-short", mems: "1", moves: 100}
	roomy := plan{mode: MemsAvoidShort, free: []uint64{9000, 9000}, asked: "1", has: "1", parent: "0-1", wrote: "1", since: 16 * minute,
		lies: []uint64{0, 100}, rule: "avoid-short", mems: "0-1"}
	for _, c := range []struct {
		name    string
		of      plan
		since   time.Duration
		lasting time.Duration
		changes []MemsChange
		rule    string // "": as the plan has it
	}{
		{name: "a node that was left before is left again after a minute", of: full, since: minute, changes: []MemsChange{cameBack(minute), ago(20 * minute)}},
		{name: "and not before that", of: full, since: 59 * time.Second, changes: []MemsChange{cameBack(59 * time.Second), ago(20 * minute)}, rule: "changed-lately"},
		{name: "so is one that was added and never left before", of: full, since: minute, changes: []MemsChange{cameBack(minute)}},
		{name: "a change in vain is no reason for another", of: full, since: 14 * minute, changes: []MemsChange{{Ago: 14 * minute}}, rule: "changed-lately"},
		{name: "nor is one of other nodes", of: full, since: 14 * minute, changes: []MemsChange{{Ago: 14 * minute, Left: memcg.NodesOf(2)}}, rule: "changed-lately"},
		{name: "nor is one that is forgotten", of: full, since: 14 * minute, changes: []MemsChange{ago(3 * hour)}, rule: "changed-lately"},
		{name: "six changes in an hour are enough for leaving", of: full, since: 2 * minute, rule: "changed-often",
			changes: []MemsChange{cameBack(2 * minute), ago(18 * minute), cameBack(20 * minute), ago(38 * minute), cameBack(40 * minute), ago(58 * minute)}},
		{name: "the sixth is one that leaves", of: full, since: 2 * minute,
			changes: []MemsChange{cameBack(2 * minute), ago(18 * minute), cameBack(20 * minute), ago(38 * minute), cameBack(40 * minute), ago(61 * minute)}},
		{name: "and none that adds", of: roomy, since: 18 * minute, lasting: 2 * hour, rule: "changed-often",
			changes: []MemsChange{ago(18 * minute), cameBack(20 * minute), ago(38 * minute), cameBack(40 * minute), ago(58 * minute)}},
		{name: "a node that was left once is used again after five minutes of room", of: roomy, lasting: 5 * minute, changes: []MemsChange{ago(16 * minute)}},
		{name: "one that was left twice after ten", of: roomy, lasting: 10 * minute, changes: []MemsChange{ago(16 * minute), ago(2 * hour)}},
		{name: "and not before that", of: roomy, lasting: 9 * minute, changes: []MemsChange{ago(16 * minute), ago(2 * hour)}, rule: "equal-set"},
		{name: "what was long ago does not count", of: roomy, lasting: 5 * minute, changes: []MemsChange{ago(16 * minute), ago(4 * hour)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.of
			if c.since > 0 {
				p.since = c.since
			}
			if c.lasting > 0 {
				p.lasting = c.lasting
			}
			in := p.input()
			in.Changes = c.changes
			got := PlanMems(in)
			if c.rule == "" && (got.Rule != p.rule || got.Mems != mask(p.mems)) || c.rule != "" && (got.Rule != c.rule || got.Set) {
				t.Errorf("%s: %v", got.Rule, got.Mems)
			}
		})
	}
}

func TestANodeIsUsedAgainWhereItsRoomLasts(t *testing.T) {
	for _, c := range []struct {
		name   string
		free   uint64 // MiB in the end, of a node that needs 34
		filled uint64 // MiB in each of the last two intervals of a minute
		want   bool
	}{
		{"well above its high mark", 60, 0, true},
		{"not at its high mark", 37, 0, false},
		{"where it will not be full in a quarter of an hour", 200, 4, true},
		{"not where it will", 200, 16, false},
	} {
		var n Nodes
		for i := range uint64(10) {
			n.Look(small(c.free+c.filled*(9-i)), DefaultMarks, time.Minute*time.Duration(min(i, 1)))
		}
		if got := n.roomyFor(0) >= returnAfter; got != c.want {
			t.Errorf("%s: has had room for %v", c.name, n.roomyFor(0))
		}
	}
}

// steered is a cgroup whose set follows its plans.
type steered struct {
	in      MemsInput
	nodes   Nodes
	now     time.Duration
	at      []time.Duration // of all changes
	changes []MemsChange
}

// tick looks at the host once and follows the plan.
func (s *steered) tick(h *memcg.HostSample, interval time.Duration) MemsPlan {
	s.now += interval
	s.nodes.Look(h, DefaultMarks, interval)
	s.in.Host, s.in.Nodes, s.in.Changes = h, &s.nodes, nil
	for i, at := range s.at {
		c := s.changes[i]
		if c.Ago = s.now - at; c.Ago < MemsMemory {
			s.in.Changes = append(s.in.Changes, c)
		}
	}
	if n := len(s.at); n > 0 {
		s.in.SinceChange = s.now - s.at[n-1]
	}
	p := PlanMems(s.in)
	if p.Set {
		was := s.in.Sample.MemsEffective
		s.at = append(s.at, s.now)
		s.changes = append(s.changes, MemsChange{Left: was.Without(p.Mems), Added: p.Mems.Without(was)})
		s.in.Sample.Mems, s.in.Sample.MemsEffective, s.in.Wrote, s.in.Written = p.Mems, p.Mems, p.Mems, true
	}
	return p
}

// Whatever the nodes do, and be it that one is full whenever the cgroup uses it, there
// are at most six changes in any hour, and none that adds a node within a quarter of an
// hour of the one before it. Where one node is the trouble the cgroup is not caught on it.
func TestASetDoesNotFlapAndIsNotCaught(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.IntRange(2, 4).Draw(rt, "nodes")
		bad := rapid.IntRange(1, count-1).Draw(rt, "troubled")
		interval := time.Duration(rapid.IntRange(5, 60).Draw(rt, "interval")) * time.Second
		var sizesOf []memcg.NodeStats
		all := memcg.NodeMask{}
		for i := range count {
			sizesOf = append(sizesOf, sizes{inactiveAnon: 50}.stats(memcg.NodeID(i)))
			all.Add(memcg.NodeID(i))
		}
		s := steered{in: MemsInput{
			Mode: rapid.SampledFrom([]MemsMode{MemsAvoidShort, MemsSpread}).Draw(rt, "mode"), Sample: sampleOf(sizesOf...), Parent: all,
		}}
		s.in.Sample.MemsEffective = all
		free, wait := make([]uint64, count), make([]int, count)
		for i := range free {
			free[i] = 9000
		}
		caught := time.Duration(0)
		for s.now < 3*time.Hour {
			for i := range bad {
				used := s.in.Sample.MemsEffective.Has(memcg.NodeID(i))
				if full := free[i] < 9000; full == used {
					continue
				}
				if wait[i]--; wait[i] > 0 {
					continue
				}
				free[i], wait[i] = 9000, rapid.SampledFrom([]int{1, 1, 1, 5, 60}).Draw(rt, "ticks")
				if used {
					free[i] = 10
				}
			}
			p := s.tick(cached(hostOf(free...)), interval)
			switch {
			case !p.Set && s.in.Sample.MemsEffective.Has(0) && free[0] < 9000:
				caught += interval
			default:
				caught = 0
			}
			if bad == 1 && caught > time.Minute+2*interval {
				rt.Fatalf("caught on a full node for %v by %s, changes at %v", caught, p.Rule, s.at)
			}
		}
		for i, at := range s.at {
			if i >= 6 && at-s.at[i-6] < time.Hour {
				rt.Fatalf("seven changes within an hour: %v", s.at)
			}
			if i > 0 && !s.changes[i].Added.Empty() && at-s.at[i-1] < 15*time.Minute {
				rt.Fatalf("a node was added %v after the change before", at-s.at[i-1])
			}
		}
		if len(s.at) == 0 {
			rt.Fatal("nothing was ever changed: the trouble does not reach the plan")
		}
	})
}
