package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

const avoidShort = `
policies:
  - name: app
    match: [{path: /app}]
    squeeze: off
    numa: {mems: avoid-short}
`

// steerBench is a bench whose node 0 has that much free, in MiB, and nothing
// but anon; node 1 has 700 MiB free.
func steerBench(t *testing.T, mode telemetry.Mode, free uint64) *bench {
	b := nodeBench(t, mode, avoidShort, free, 700)
	b.core.noKnobs = ""
	b.track(id("/app"))
	return b
}

// asks is a cgroup with anon on node 0 that asks for and was granted nodes.
func asks(mems, effective string) Observation {
	ob := spread("/app", lies{anon: 100}, lies{})
	ob.Sample.Mems, _ = memcg.ParseNodeMask(mems)
	ob.Sample.MemsEffective, _ = memcg.ParseNodeMask(effective)
	ob.ParentMems = memcg.NodesOf(0, 1)
	return ob
}

// steer ticks once and returns the one setting handed out, or the zero one.
func (b *bench) steer(ob Observation, done ...Result) (Setting, telemetry.Mems) {
	b.t.Helper()
	b.core.SeeHost(b.now.Add(time.Second), &b.host)
	requests, records := b.stepAll(done, 4, ob)
	switch {
	case len(requests) > 1:
		b.t.Fatalf("%d requests: %+v", len(requests), requests)
	case len(requests) == 1:
		return requests[0].Setting, records[0].Mems
	}
	return Setting{}, records[0].Mems
}

func written(s Setting, found string) Result {
	return Result{Request: Request{Setting: s}, Set: journal.Result{Outcome: journal.Written, Found: found, Now: s.Value}}
}

// after lets time go by, in ticks of a minute.
func (b *bench) after(d time.Duration, ob Observation) (s Setting, m telemetry.Mems) {
	b.t.Helper()
	for end := b.now.Add(d); b.now.Before(end) && s == (Setting{}); {
		b.now = b.now.Add(time.Minute - time.Second)
		s, m = b.steer(ob)
	}
	return s, m
}

func TestACgroupIsSteeredAwayFromANodeWithNothingButAnonWithinTwoIntervals(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 500)
	b.steer(asks("", "0-1"))
	b.host.Nodes[0].MemFree = memcg.Value(4 * mib)
	if s, m := b.steer(asks("", "0-1")); s != (Setting{}) || m.Rule != "equal-set" {
		t.Fatalf("at the first sight: %+v, %+v", s, m)
	}
	s, m := b.steer(asks("", "0-1"))
	if s.Knob != memcg.KnobMems || s.Value != "1" || s.Cgroup != id("/app") || s.Why == "" {
		t.Errorf("asked %+v", s)
	}
	if m.Rule != "avoid-short" || m.Want != "1" || m.Moves != 100*mib || m.Held != "" {
		t.Errorf("plan %+v", m)
	}
	if again, m := b.steer(asks("", "0-1")); again != (Setting{}) || m.Rule != "in-flight" {
		t.Errorf("while the write blocks: %+v, %+v", again, m)
	}
}

func TestAStateIsPutBackWhenItsNodeHasHadRoomForAWhile(t *testing.T) {
	for name, c := range map[string]struct{ before, back string }{
		"a set that was inherited is inherited again": {"", ""},
		"a set of the operator's is the operator's":   {"0-1", "0-1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := steerBench(t, telemetry.Enforce, 4)
			b.steer(asks(c.before, "0-1"))
			s, _ := b.steer(asks(c.before, "0-1"))
			if s.Value != "1" {
				t.Fatalf("asked %+v", s)
			}
			b.host.Nodes[0].MemFree = memcg.Value(500 * mib)
			if s, m := b.steer(left(0), written(s, c.before)); s != (Setting{}) {
				t.Fatalf("at once: %+v, %+v", s, m)
			}
			if s, m := b.after(13*time.Minute, asks("1", "1")); s != (Setting{}) || m.Rule != "changed-lately" {
				t.Fatalf("before a quarter of an hour: %+v, %+v", s, m)
			}
			s, m := b.after(3*time.Minute, asks("1", "1"))
			if s.Knob != memcg.KnobMems || s.Value != c.back || m.Want != "0-1" {
				t.Fatalf("asked %+v, %+v", s, m)
			}
			done := Result{Request: Request{Setting: s}, Set: journal.Result{Outcome: journal.PutBack}}
			b.steer(asks(c.before, "0-1"), done)
			if st := b.core.cgroups[id("/app")].steering; st.holds {
				t.Errorf("still held: %+v", st)
			}
		})
	}
}

// A node that was left, was used again and fills up at once is left again within a
// minute, and then needs room for twice as long.
func TestACgroupIsNotCaughtOnANodeThatFillsUpAgain(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	full := func() { b.host.Nodes[0].MemFree = memcg.Value(4 * mib) }
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	b.host.Nodes[0].MemFree = memcg.Value(500 * mib)
	b.steer(left(0), written(s, ""))
	s, m := b.after(16*time.Minute, asks("1", "1"))
	if m.Want != "0-1" {
		t.Fatalf("not used again: %+v, %+v", s, m)
	}
	full()
	b.steer(asks("", "0-1"), Result{Request: Request{Setting: s}, Set: journal.Result{Outcome: journal.PutBack}})
	if s, m = b.after(2*time.Minute, asks("", "0-1")); s.Value != "1" {
		t.Fatalf("caught: %+v, %+v", s, m)
	}
	b.host.Nodes[0].MemFree = memcg.Value(500 * mib)
	b.steer(left(0), written(s, ""))
	if s, m := b.after(8*time.Minute, asks("1", "1")); s != (Setting{}) || m.Rule != "equal-set" {
		t.Errorf("after eight minutes of room: %+v, %+v", s, m)
	}
	if s, m := b.after(8*time.Minute, asks("1", "1")); m.Want != "0-1" {
		t.Errorf("after a quarter of an hour: %+v, %+v", s, m)
	}
}

func TestSomebodyElsesSetIsLeftAlone(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	b.steer(left(0), written(s, ""))
	if s, m := b.after(time.Hour, asks("0", "0")); s != (Setting{}) || m.Rule != "foreign-value" {
		t.Errorf("asked %+v, %+v", s, m)
	}
}

func TestASetThatWasNotGrantedIsNotAskedForAgainSoon(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	refused := Result{Request: Request{Setting: s}, Err: fmt.Errorf("set: %w", journal.ErrNotGranted)}
	if s, m := b.steer(asks("", "0-1"), refused); s != (Setting{}) || m.Rule != "changed-lately" {
		t.Fatalf("at once: %+v, %+v", s, m)
	}
	if s, _ := b.after(14*time.Minute, asks("", "0-1")); s != (Setting{}) {
		t.Fatalf("before a quarter of an hour: %+v", s)
	}
	if s, _ := b.after(2*time.Minute, asks("", "0-1")); s.Value != "1" {
		t.Errorf("after it: %+v", s)
	}
	if len(b.notes.said) != 1 {
		t.Errorf("said %v, want one notice", b.notes.said)
	}
}

func TestNoSetIsWrittenWhere(t *testing.T) {
	for name, c := range map[string]struct {
		mode   telemetry.Mode
		change func(*Observation)
		want   telemetry.Mems
	}{
		"the agent observes":      {telemetry.Observe, nil, telemetry.Mems{Rule: "avoid-short", Want: "1", Moves: 100 * mib, Held: "observe mode"}},
		"cpuset is not enabled":   {telemetry.Enforce, func(o *Observation) { o.Sample.MemsState = memcg.Unsupported; o.ParentErr = memcg.ErrUnsupported }, telemetry.Mems{Rule: "no-cpuset"}},
		"the parent's is unknown": {telemetry.Enforce, func(o *Observation) { o.ParentErr = memcg.ErrInvalid }, telemetry.Mems{Rule: "parent-unknown"}},
		"the parent allows no other": {telemetry.Enforce, func(o *Observation) {
			o.ParentMems, o.Sample.MemsEffective = memcg.NodesOf(0), memcg.NodesOf(0)
		}, telemetry.Mems{Rule: "every-node-short", Widen: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := steerBench(t, c.mode, 4)
			ob := asks("", "0-1")
			if c.change != nil {
				c.change(&ob)
			}
			b.steer(ob)
			if s, m := b.steer(ob); s != (Setting{}) || m != c.want {
				t.Errorf("asked %+v, plan %+v, want %+v", s, m, c.want)
			}
		})
	}
}

func TestWhatACgroupNeedsIsWhatItHasAndWhatComesBack(t *testing.T) {
	b := nodeBench(t, telemetry.Enforce, "\npolicies:\n  - name: app\n    match: [{path: /app}]\n    squeeze: off\n    numa: {mems: compact}\n", 700, 700)
	b.host.Nodes[0].Distance, b.host.Nodes[1].Distance = []int{10, 20}, []int{20, 10}
	b.core.noKnobs = ""
	b.track(id("/app"))
	b.steer(asks("", "0-1"))
	var s Setting
	for range 3 {
		if s, _ = b.steer(asks("", "0-1")); s != (Setting{}) {
			break
		}
	}
	if s.Value != "0" {
		t.Errorf("asked %+v, want the one node that has all of it", s)
	}
}
