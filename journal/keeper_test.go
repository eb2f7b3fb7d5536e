package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/memagent/memagent/memcg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASetIsJournaledWrittenReadBackAndUndone(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	r := b.mustSet(k, id, memcg.KnobHigh, "1048577", Written)
	if r.Found != "max" || r.Owner != Original || r.Now != "1048576" {
		t.Errorf("%+v", r)
	}
	want := Entry{Key: Key{id, memcg.KnobHigh}, Boot: "boot-1", Before: "max", Wrote: "1048577", At: b.now, Why: "test"}
	if e, ok := k.Holds(id, memcg.KnobHigh); !ok || e != want {
		t.Errorf("the journal has %+v, %v; want %+v", e, ok, want)
	}
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Unchanged)
	u := k.Restore(context.Background(), id, memcg.KnobHigh)
	if u.How != Restored || u.Now != "max" || u.Err != nil {
		t.Errorf("%+v", u)
	}
	if u := k.Restore(context.Background(), id, memcg.KnobHigh); u.How != Nothing || u.Err != nil {
		t.Errorf("a second time: %+v", u)
	}
	if d := cmp.Diff([]string{"/pg/memory.high 1048577", "/pg/memory.high max"}, b.host.writes); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
}

func TestTheOperatorsOwnValuePutsTheKnobBack(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	b.mustSet(k, id, memcg.KnobHigh, "max", PutBack)
	b.wantKnob("/pg", memcg.KnobHigh, "max")
	if len(k.Entries()) != 0 {
		t.Errorf("left %v", k.Entries())
	}
}

func TestAValueThatIsThereAlreadyIsNotWrittenAndNotOurs(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	b.host.set("/pg", memcg.KnobMems, "0-2")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobMems, "0,1,2", Unchanged)
	if len(b.host.writes) != 0 || len(k.Entries()) != 0 {
		t.Errorf("wrote %q, journal %v", b.host.writes, k.Entries())
	}
}

func TestValuesThatAreNoneAreNotWritten(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	for _, tt := range []struct {
		id    memcg.ID
		knob  memcg.Knob
		value string
	}{
		{id, memcg.KnobHigh, ""}, {id, memcg.KnobHigh, "\n"}, {id, memcg.KnobSwapMax, "-1"}, {id, memcg.KnobHigh, "1G"},
		{id, memcg.KnobMems, ""}, {id, memcg.KnobMems, "0-"}, {id, "memory.max", "max"},
		{memcg.ID{Path: "/", Inode: 1}, memcg.KnobHigh, "4096"}, {memcg.ID{Path: "/pg"}, memcg.KnobHigh, "4096"},
	} {
		if _, err := k.Set(context.Background(), tt.id, tt.knob, tt.value, "test"); !errors.Is(err, memcg.ErrInvalid) {
			t.Errorf("%s %q: %v", tt.knob, tt.value, err)
		}
	}
	if len(b.host.writes) != 0 || len(k.Entries()) != 0 {
		t.Errorf("wrote %q, journal %v", b.host.writes, k.Entries())
	}
}

func TestC42AnotherOwnerIsMetABoundedNumberOfTimesAndToldOnce(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/app.scope")
	b.host.set("/app.scope", memcg.KnobSwapMax, "0")
	k := b.start()
	b.mustSet(k, id, memcg.KnobSwapMax, "1048576", Written)
	var got []Outcome
	for range 6 {
		b.host.set("/app.scope", memcg.KnobSwapMax, "max") // systemctl daemon-reload
		r, err := k.Set(context.Background(), id, memcg.KnobSwapMax, "1048576", "test")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Outcome)
		b.now = b.now.Add(time.Minute)
	}
	if d := cmp.Diff([]Outcome{Written, Written, Written, Yielding, Yielded, Yielded}, got); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
	k = b.restart(k)
	defer k.store.Close()
	if r := k.Recover(context.Background()); len(r.Undone) != 0 {
		t.Errorf("a crash made it %+v", r.Undone)
	}
	b.mustSet(k, id, memcg.KnobSwapMax, "1048576", Yielded)
	r := k.RestoreAll(context.Background(), time.Minute)
	if len(r.Undone) != 1 || r.Undone[0].How != LeftForeign || len(k.Entries()) != 0 {
		t.Errorf("%+v", r)
	}
	b.wantKnob("/app.scope", memcg.KnobSwapMax, "max") // never the 0 of long ago
}

func TestTheirValueIsWhatGoesBackAfterAnAssert(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/app.scope")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	b.host.set("/app.scope", memcg.KnobHigh, "536870912")
	r := b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	if r.Owner != Foreign || r.Found != "536870912" {
		t.Errorf("%+v", r)
	}
	b.host.set("/app.scope", memcg.KnobHigh, "268435456")
	if r := b.mustSet(k, id, memcg.KnobHigh, "1048576", Waiting); !r.Until.After(b.now) {
		t.Errorf("waits until %v, it is %v", r.Until, b.now)
	}
	if u := k.Restore(context.Background(), id, memcg.KnobHigh); u.How != LeftForeign {
		t.Errorf("%+v", u)
	}
	b.wantKnob("/app.scope", memcg.KnobHigh, "268435456")
}

func TestC48NodesThatAreNotGrantedAreRolledBack(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/p/c")
	b.host.set("/p/c", memcg.KnobMems, "0-1")
	b.host.parent = memcg.NodesOf(0, 1)
	k := b.start()
	defer k.store.Close()
	_, err := k.Set(context.Background(), id, memcg.KnobMems, "1-2", "test")
	if !errors.Is(err, ErrNotGranted) || len(b.host.writes) != 0 {
		t.Errorf("%v, wrote %q; want nothing tried", err, b.host.writes)
	}
	// The parent loses the node in the moment of the write.
	b.at = func(s Step) {
		if s == StepAfterJournal {
			b.host.parent = memcg.NodesOf(1)
		}
	}
	_, err = k.Set(context.Background(), id, memcg.KnobMems, "0", "test")
	if !errors.Is(err, ErrNotGranted) || len(k.Entries()) != 0 {
		t.Errorf("%v, journal %v", err, k.Entries())
	}
	b.wantKnob("/p/c", memcg.KnobMems, "0-1")
}

func TestC46AnEmptyValueThatIsRefusedIsStoodInForByTheParents(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/p/c")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobMems, "0", Written)
	b.host.noEmpty = true
	u := k.Restore(context.Background(), id, memcg.KnobMems)
	if u.How != StoodIn || u.Err != nil || u.Now != "0-3" || len(k.Entries()) != 0 {
		t.Errorf("%+v, journal %v", u, k.Entries())
	}
}

func TestAWriteThatFailsLeavesTheJournalAsItWas(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	refuse := func(op string, key Key, _ string) error {
		if op == "write" {
			return fmt.Errorf("write: %w: %w", memcg.ErrDenied, syscall.EACCES)
		}
		return nil
	}
	b.host.fail = refuse
	if _, err := k.Set(context.Background(), id, memcg.KnobHigh, "1048576", "test"); !errors.Is(err, memcg.ErrDenied) {
		t.Errorf("%v", err)
	}
	if len(k.Entries()) != 0 {
		t.Errorf("left %v", k.Entries())
	}
	b.host.fail = nil
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	b.host.fail = refuse
	if _, err := k.Set(context.Background(), id, memcg.KnobHigh, "2097152", "test"); !errors.Is(err, syscall.EACCES) {
		t.Errorf("%v", err)
	}
	if e, _ := k.Holds(id, memcg.KnobHigh); e.Wrote != "1048576" || e.Before != "max" {
		t.Errorf("%+v", e)
	}
	if u := k.Restore(context.Background(), id, memcg.KnobHigh); u.How != NotUndone || !errors.Is(u.Err, memcg.ErrDenied) || len(k.Entries()) != 1 {
		t.Errorf("%+v", u)
	}
	b.host.fail = nil
	if r := k.Recover(context.Background()); len(r.Failed()) != 0 || len(k.Entries()) != 0 {
		t.Errorf("%+v", r)
	}
	b.wantKnob("/pg", memcg.KnobHigh, "max")
}

func TestC43AWriteThatBlocksHoldsUpNeitherItsCallerNorTheRest(t *testing.T) {
	b := newBench(t)
	slow, quick := b.host.make("/slow"), b.host.make("/quick")
	free := make(chan struct{})
	k := b.start()
	defer k.store.Close()
	b.host.block = func(key Key) <-chan struct{} {
		if key.ID == slow {
			return free
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.at = func(s Step) {
		if s == StepAfterJournal {
			cancel() // and the write, which may have begun, has to come back by itself
		}
	}
	r, err := k.Set(ctx, slow, memcg.KnobHigh, "1048576", "test")
	b.at = nil
	if err == nil && (!r.InFlight || r.Outcome != Written) || err != nil && !errors.Is(err, memcg.ErrPartial) {
		t.Errorf("%+v, %v", r, err)
	}
	b.mustSet(k, quick, memcg.KnobHigh, "1048576", Written)
	if r.InFlight {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := k.Set(over, slow, memcg.KnobHigh, "2097152", "test"); !errors.Is(err, memcg.ErrPartial) {
			t.Errorf("a second write beside one that is in flight: %v", err)
		}
	}
	close(free)
	report := k.RestoreAll(context.Background(), time.Minute)
	if len(report.Failed()) != 0 || report.Err != nil {
		t.Errorf("%+v", report)
	}
	b.wantKnob("/slow", memcg.KnobHigh, "max")
	b.wantKnob("/quick", memcg.KnobHigh, "max")
}

func TestUndoingDoesNotWaitForTheReclaimBehindALimit(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	b.host.set("/pg", memcg.KnobHigh, "1048576")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobHigh, "8388608", Written)
	free := make(chan struct{})
	b.host.block = func(Key) <-chan struct{} { return free }
	r := k.RestoreAll(context.Background(), time.Minute)
	if len(r.Undone) != 1 || r.Undone[0].How != Restored || !r.Undone[0].InFlight || len(k.Entries()) != 0 {
		t.Errorf("%+v, journal %v", r, k.Entries())
	}
	close(free)
}

func TestWhatIsStillInFlightAtTheEndStaysInTheJournal(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	free, begun := make(chan struct{}), make(chan struct{})
	b.host.block = func(Key) <-chan struct{} { close(begun); return free }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-begun; cancel() }()
	if r, err := k.Set(ctx, id, memcg.KnobHigh, "2097152", "test"); err != nil || !r.InFlight {
		t.Fatalf("%+v, %v", r, err)
	}
	r := k.RestoreAll(context.Background(), time.Nanosecond)
	if f := r.Failed(); len(f) != 1 || !errors.Is(f[0].Err, memcg.ErrPartial) {
		t.Errorf("%+v", r)
	}
	b.host.block = nil
	k = b.restart(k)
	defer k.store.Close()
	k.Recover(context.Background())
	b.wantKnob("/pg", memcg.KnobHigh, "max")
	close(free)
}

func TestWhoOnlyLooksDoesNotWaitForTheDisk(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	writing, free, done := make(chan struct{}), make(chan struct{}), make(chan error)
	k.store.write = func(string, []byte, func(Step)) error {
		close(writing)
		<-free
		return syscall.EIO
	}
	go func() {
		_, err := k.Set(context.Background(), id, memcg.KnobHigh, "1048576", "test")
		done <- err
	}()
	<-writing
	k.Entries()
	k.Holds(id, memcg.KnobHigh)
	k.Cooldowns()
	close(free)
	if err := <-done; !errors.Is(err, syscall.EIO) || len(k.Entries()) != 0 || len(b.host.writes) != 0 {
		t.Errorf("%v, journal %v, wrote %q", err, k.Entries(), b.host.writes)
	}
}

func TestNothingIsSetAfterTheEnd(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	k.RestoreAll(context.Background(), time.Minute)
	if _, err := k.Set(context.Background(), id, memcg.KnobHigh, "1048576", "late"); !errors.Is(err, ErrStopped) {
		t.Errorf("%v", err)
	}
	b.wantKnob("/pg", memcg.KnobHigh, "max")
}

func TestTightLimitsAreUndoneFirst(t *testing.T) {
	b := newBench(t)
	k := b.start()
	lent, held, moved := b.host.make("/a-lent"), b.host.make("/z-held"), b.host.make("/a-moved")
	b.host.set("/a-lent", memcg.KnobHigh, "1048576")
	b.mustSet(k, moved, memcg.KnobMems, "0", Written)
	b.mustSet(k, lent, memcg.KnobHigh, "8388608", Written)
	b.mustSet(k, held, memcg.KnobHigh, "4194304", Written)
	k = b.restart(k)
	defer k.store.Close()
	b.host.writes = nil
	k.Recover(context.Background())
	if d := cmp.Diff([]string{"/z-held/memory.high max", "/a-lent/memory.high 1048576", "/a-moved/cpuset.mems "}, b.host.writes); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

func TestAFileThatWentAwayTookItsValueWithIt(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobMems, "0", Written)
	b.host.fail = func(_ string, key Key, _ string) error {
		return fmt.Errorf("open: %w: %w", memcg.ErrUnsupported, syscall.ENOENT)
	}
	if r := k.Recover(context.Background()); r.Undone[0].How != FileGone || len(k.Entries()) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestForgettingAGoneCgroupDropsAllOfIt(t *testing.T) {
	b := newBench(t)
	id, other := b.host.make("/pg"), b.host.make("/other")
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	b.mustSet(k, id, memcg.KnobMems, "0", Written)
	b.mustSet(k, other, memcg.KnobHigh, "1048576", Written)
	if err := k.Remember([]Cooldown{{Cgroup: id, Until: b.now.Add(time.Minute), Length: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	b.host.remove("/pg")
	if err := k.Forget(id); err != nil {
		t.Fatal(err)
	}
	k = b.restart(k)
	defer k.store.Close()
	if e := k.Entries(); len(e) != 1 || e[0].ID != other || len(k.Cooldowns()) != 0 {
		t.Errorf("left %v, %v", e, k.Cooldowns())
	}
}

func TestManyWorkersAtOnce(t *testing.T) {
	b := newBench(t)
	k := b.start()
	defer k.store.Close()
	var wg sync.WaitGroup
	for i := range 16 {
		id := b.host.make(fmt.Sprintf("/%d", i/2)) // two workers for each path, of which the first one's cgroup is gone
		wg.Go(func() {
			for n := range 3 {
				_, _ = k.Set(context.Background(), id, memcg.KnobHigh, fmt.Sprint((n+1)*page), "test")
				k.Holds(id, memcg.KnobHigh)
			}
			if i%4 == 3 {
				k.Restore(context.Background(), id, memcg.KnobHigh)
			}
		})
	}
	wg.Wait()
	k.RestoreAll(context.Background(), time.Minute)
	for i := range 8 {
		b.wantKnob(fmt.Sprintf("/%d", i), memcg.KnobHigh, "max")
	}
	if len(k.Entries()) != 0 {
		t.Errorf("left %v", k.Entries())
	}
}

func TestAKeeperNeedsABootID(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	if _, err := NewKeeper(s, newFakeHost(), Options{}); err == nil {
		t.Error("it does without")
	}
}

func TestCooldownsOutliveARestartAndNoBoot(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	if err := k.Remember([]Cooldown{
		{Cgroup: id, Until: b.now.Add(time.Minute), Length: time.Minute, Why: "streaming"},
		{Cgroup: id, Until: b.now.Add(-time.Second), Length: time.Minute},
		{Cgroup: id, Until: b.now.Add(time.Hour), Length: time.Minute},
	}); err != nil {
		t.Fatal(err)
	}
	k = b.restart(k)
	got := k.Cooldowns()
	if len(got) != 2 || got[0].Why != "streaming" || !got[1].Until.Equal(b.now.Add(time.Minute)) {
		t.Errorf("cool-downs %+v: want one, and one that a clock has stretched cut to its length", got)
	}
	bad := []Cooldown{{Cgroup: memcg.ID{Path: "pg", Inode: 1}}}
	if err := k.Remember(bad); !errors.Is(err, memcg.ErrInvalid) || len(k.Cooldowns()) != 2 {
		t.Errorf("%v", err)
	}
	b.boot = "boot-2"
	k = b.restart(k)
	defer k.store.Close()
	if got := k.Cooldowns(); len(got) != 0 {
		t.Errorf("after a boot: %+v", got)
	}
}
