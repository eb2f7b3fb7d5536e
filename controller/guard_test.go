package controller

import (
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/workingset"
)

func TestTheSwapGuardPinsAndLetsGo(t *testing.T) {
	b := setBench(t)
	cg := b.core.cgroups[id("/a")]
	s := &memcg.Sample{SwapCurrent: memcg.Value(10*mib + 1), SwapMax: memcg.Unlimited()}
	guards, ends := &workingset.Decision{Intent: workingset.Intent{SwapGuard: true}}, &workingset.Decision{}
	if held := b.core.considerGuard(b.now, &b.host, cg, s, guards); held != "" {
		t.Fatal(held)
	}
	r := b.handed()[0]
	pin := memcg.LimitOf(10*mib + page)
	if r.Setting.Knob != memcg.KnobSwapMax || r.Setting.Value != pin.String() {
		t.Fatalf("handed out %+v", r.Setting)
	}
	b.handed(Result{Request: r, Set: journal.Result{Outcome: journal.Written, Now: r.Setting.Value}})
	s.SwapMax = pin
	cg.guard.see(s, false)
	if !cg.guard.held {
		t.Fatal("it does not know that it holds")
	}
	b.core.considerGuard(b.now, &b.host, cg, s, guards)
	if again := b.handed(); len(again) != 0 {
		t.Errorf("pinned again: %v", again)
	}
	b.core.considerGuard(b.now, &b.host, cg, s, ends)
	if r = b.handed()[0]; r.Setting.Knob != memcg.KnobSwapMax || r.Setting.Value != "" {
		t.Fatalf("handed out %+v", r.Setting)
	}
	b.handed(Result{Request: r, Undone: journal.Undone{How: journal.Restored}})
	if cg.guard.held {
		t.Error("it does not know that it has let go")
	}
}

func TestTheSwapGuardLeavesATighterLimitAndAnotherWritersAlone(t *testing.T) {
	guards := &workingset.Decision{Intent: workingset.Intent{SwapGuard: true}}
	b := setBench(t)
	cg := b.core.cgroups[id("/a")]
	s := &memcg.Sample{SwapCurrent: memcg.Value(10 * mib), SwapMax: memcg.LimitOf(10 * mib)}
	if b.core.considerGuard(b.now, &b.host, cg, s, guards); len(b.handed()) != 0 {
		t.Error("written where the operator's limit guards already")
	}
	cg.guard = guard{high: 10 * mib, held: true}
	s.SwapMax = memcg.LimitOf(50 * mib)
	if cg.guard.see(s, true); !cg.guard.held {
		t.Error("judged while a write is in flight")
	}
	if cg.guard.see(s, false); cg.guard.held {
		t.Error("another writer's value is taken for ours")
	}
}

func TestAGuardedCgroupThatMeetsItsLimitIsLookedAtInFullBeforeTheTick(t *testing.T) {
	b := setBench(t)
	cg := b.core.cgroups[id("/a")]
	cg.sampledAt, cg.guard = b.now, guard{high: 10 * mib, held: true}
	for range 10 {
		b.core.Heard(cg.id, b.now.Add(time.Millisecond))
	}
	at, ok := b.core.NextWake()
	if want := b.now.Add(max(b.core.cfg.Interval/earlySamples, guardLook)); !ok || !at.Equal(want) {
		t.Fatalf("looked at %v later", at.Sub(b.now))
	}
	if look := b.core.Woken(cg.id, at); look != Sample {
		t.Errorf("a look of kind %v", look)
	}
}

func TestTheSwapGuardSaysWhatItCannotRead(t *testing.T) {
	b := setBench(t)
	d := &workingset.Decision{Intent: workingset.Intent{SwapGuard: true}}
	if held := b.core.considerGuard(b.now, &b.host, b.core.cgroups[id("/a")], &memcg.Sample{}, d); held == "" {
		t.Error("nothing was said")
	}
}
