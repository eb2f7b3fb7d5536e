package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// left is the cgroup of steerBench once it may use node 1 alone, with so much
// anon still on node 0, in MiB.
func left(anon uint64) Observation {
	ob := spread("/app", lies{anon: anon}, lies{anon: 100 - anon})
	ob.Sample.Mems, ob.Sample.MemsEffective = memcg.NodesOf(1), memcg.NodesOf(1)
	ob.ParentMems = memcg.NodesOf(0, 1)
	return ob
}

func TestMemoryThatDidNotMoveIsMovedByWritingTheSetBeforeAndTheNewOneOnceMore(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	if s.Value != "1" || s.By != "" {
		t.Fatalf("asked %+v", s)
	}
	again, m := b.steer(left(100), written(s, ""))
	want := Setting{Cgroup: id("/app"), Knob: memcg.KnobMems, Value: "1", Why: "numa.mems moved-nothing", By: "0-1"}
	if again != want {
		t.Errorf("asked %+v, want %+v", again, want)
	}
	if want := (telemetry.Mems{Rule: "moved-nothing", Want: "1", Moves: 100 * mib, Stays: 100 * mib}); m != want {
		t.Errorf("recorded %+v, want %+v", m, want)
	}
	if once, m := b.steer(left(100), written(again, "0-1")); once != (Setting{}) || m.Rule != "equal-set" || m.Stays != 100*mib {
		t.Errorf("when that moved nothing either: %+v, %+v", once, m)
	}
	if never, m := b.steer(left(100)); never != (Setting{}) || m.Stays != 0 {
		t.Errorf("after that: %+v, %+v", never, m)
	}
}

// blocked is what came of a setting whose write had not come back in time.
func blocked(s Setting) Result {
	r := written(s, "")
	r.Set.InFlight = true
	return r
}

func TestMemsAreNotWrittenASecondTimeWhere(t *testing.T) {
	whole := func(s Setting) Result { return written(s, "") }
	for name, c := range map[string]struct {
		ob   Observation
		done func(Setting) Result
		rule string
	}{
		"memory has moved":             {left(0), whole, "equal-set"},
		"most of it has":               {left(50), whole, "equal-set"},
		"the kernel is still moving":   {left(100), blocked, "still-moving"},
		"somebody else has written it": {asks("0", "0"), whole, "foreign-value"},
	} {
		t.Run(name, func(t *testing.T) {
			b := steerBench(t, telemetry.Enforce, 4)
			b.steer(asks("", "0-1"))
			s, _ := b.steer(asks("", "0-1"))
			if s, m := b.steer(c.ob, c.done(s)); s != (Setting{}) || m.Rule != c.rule || m.Stays != 0 {
				t.Errorf("asked %+v, recorded %+v", s, m)
			}
		})
	}
}

// A write that blocks for longer than it is waited for is looked at until nothing moves
// any more. The change counts from then, and the record says what it has moved.
func TestAMoveThatIsNotWaitedForIsLookedAtInTheEnd(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	began := b.now
	done := []Result{blocked(s)}
	for _, c := range []struct {
		there uint64 // MiB
		rule  string
		moved uint64
	}{
		{100, "still-moving", 0}, {80, "still-moving", 20}, {40, "still-moving", 60}, {40, "still-moving", 60}, {10, "still-moving", 90},
		{0, "equal-set", 100}, {0, "equal-set", 0},
	} {
		again, m := b.steer(left(c.there), done...)
		if again != (Setting{}) || m.Rule != c.rule || m.Moved != c.moved*mib || m.Stays != 0 {
			t.Fatalf("with %d MiB there: asked %+v, recorded %+v", c.there, again, m)
		}
		done = nil
	}
	st := b.core.cgroups[id("/app")].steering
	if got := st.at().Sub(began); got < 5*time.Second || got > 6*time.Second {
		t.Errorf("the change counts from %v after it began", got)
	}
	if len(st.changes) != 1 || st.changes[0].left != memcg.NodesOf(0) || !st.changes[0].at.Equal(st.at()) {
		t.Errorf("changes %+v", st.changes)
	}
}

func TestAMoveThatStoppedIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		there uint64 // MiB
		rule  string
		stays uint64
		moved uint64
	}{
		"with nothing moved: it is written once more": {100, "moved-nothing", 100, 0},
		"with a part of it moved":                     {30, "equal-set", 0, 70},
	} {
		t.Run(name, func(t *testing.T) {
			b := steerBench(t, telemetry.Enforce, 4)
			b.steer(asks("", "0-1"))
			s, _ := b.steer(asks("", "0-1"))
			b.steer(left(c.there), blocked(s))
			b.now = b.now.Add(8 * time.Second)
			if again, m := b.steer(left(c.there)); again != (Setting{}) || m.Rule != "still-moving" {
				t.Fatalf("after nine seconds: %+v, %+v", again, m)
			}
			b.now = b.now.Add(3 * time.Second)
			again, m := b.steer(left(c.there))
			if (again != Setting{}) != (c.stays > 0) || m.Rule != c.rule || m.Stays != c.stays*mib || m.Moved != c.moved*mib {
				t.Errorf("asked %+v, recorded %+v", again, m)
			}
		})
	}
}

// A write that had not even begun in time is carried out later, and is nobody else's.
func TestASetThatComesLateIsOurs(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	late := blocked(s)
	late.Err, late.Set.Outcome = fmt.Errorf("the write has not come back: %w", memcg.ErrPartial), journal.Failed
	if s, m := b.steer(asks("", "0-1"), late); s != (Setting{}) || m.Rule != "changed-lately" {
		t.Fatalf("before it comes: %+v, %+v", s, m)
	}
	if s, m := b.steer(left(40)); s != (Setting{}) || m.Rule != "still-moving" || m.Moved != 60*mib {
		t.Errorf("when it has come: %+v, %+v", s, m)
	}
	if s, m := b.steer(left(0)); s != (Setting{}) || m.Rule != "equal-set" || m.Moved != 100*mib {
		t.Errorf("when it is over: %+v, %+v", s, m)
	}
}

// Where the second of the two writes fails, the first one's value is there, and
// it is ours.
func TestASetThatWasOnTheWayIsOurs(t *testing.T) {
	b := steerBench(t, telemetry.Enforce, 4)
	b.steer(asks("", "0-1"))
	s, _ := b.steer(asks("", "0-1"))
	again, _ := b.steer(left(100), written(s, ""))
	failed := Result{Request: Request{Setting: again}, Err: errors.New("the disk is full")}
	if _, m := b.steer(asks("0-1", "0-1"), failed); m.Rule != "changed-lately" {
		t.Errorf("recorded %+v", m)
	}
}

// setKeeper notes what is set, and refuses one value.
type setKeeper struct {
	Keeper
	refuse string
	set    []string
}

func (k *setKeeper) Set(_ context.Context, _ memcg.ID, _ memcg.Knob, value, _ string) (journal.Result, error) {
	k.set = append(k.set, value)
	if value == k.refuse {
		return journal.Result{}, memcg.ErrInvalid
	}
	return journal.Result{Outcome: journal.Written, Now: value}, nil
}

func TestOneWorkerWritesTheWayAndThenTheValue(t *testing.T) {
	for refuse, c := range map[string]struct {
		set []string
		by  string
		err error
	}{
		"":    {[]string{"0-1", "1"}, "0-1", nil},
		"0-1": {[]string{"0-1"}, "", memcg.ErrInvalid},
		"1":   {[]string{"0-1", "1"}, "0-1", memcg.ErrInvalid},
	} {
		k := &setKeeper{refuse: refuse}
		l := Loop{Keeper: k, Interval: time.Second}
		d := l.setKnob(t.Context(), Request{Setting: Setting{Cgroup: id("/app"), Knob: memcg.KnobMems, Value: "1", By: "0-1"}})
		if !slices.Equal(k.set, c.set) || d.Setting.By != c.by || !errors.Is(d.Err, c.err) {
			t.Errorf("refusing %q: set %v, by way of %q, %v", refuse, k.set, d.Setting.By, d.Err)
		}
	}
}
