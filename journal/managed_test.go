package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// fakeManager is a service manager that has every cgroup: it notes a value by path
// and writes its own to the file whenever it is reloaded.
type fakeManager struct {
	*fakeHost
	mu    sync.Mutex
	notes map[string]string // by path and knob; none: the operator's
	off   error             // it cannot be reached
	slow  bool              // it sets nothing while its caller waits
}

func (m *fakeManager) note(k Key) string { return k.ID.Path + " " + string(k.Knob) }

func (m *fakeManager) Via(_ context.Context, key Key, old Entry) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off != nil {
		return "", m.off
	}
	if note, ok := m.notes[m.note(key)]; ok && !Same(key.Knob, note, old.Wrote, page) {
		return "manager had " + note, nil
	}
	return "manager", nil
}

func (m *fakeManager) SetVia(ctx context.Context, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off != nil {
		return m.off
	}
	m.notes[m.note(e.Key)] = e.Wrote
	if m.slow {
		<-ctx.Done()
		return memcg.ErrPartial
	}
	return m.WriteKnob(ctx, e.ID, e.Knob, e.Wrote)
}

func (m *fakeManager) UndoVia(ctx context.Context, e Entry, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if m.off != nil {
		return m.off
	}
	// What it has is exact, what was read from the file is whole pages.
	if n := m.notes[m.note(e.Key)]; !Same(e.Knob, n, e.Wrote, page) && !Same(e.Knob, n, e.Earlier, page) {
		return nil
	}
	delete(m.notes, m.note(e.Key))
	if had, ok := strings.CutPrefix(e.Via, "manager had "); ok {
		m.notes[m.note(e.Key)] = had
	}
	return nil
}

func newManaged(t *testing.T) (*bench, *fakeManager, *Keeper) {
	b := newBench(t)
	m := &fakeManager{fakeHost: b.host, notes: map[string]string{}}
	b.managed = m
	return b, m, b.start()
}

func (m *fakeManager) wantNotes(t *testing.T, want string) {
	t.Helper()
	if got := fmt.Sprint(m.notes); got != want {
		t.Errorf("the manager has %s, want %s", got, want)
	}
}

func TestWhatAManagerNotedIsTakenBackWithTheValue(t *testing.T) {
	ctx := context.Background()
	for _, end := range []struct {
		name string
		do   func(b *bench, k *Keeper, id memcg.ID) *Keeper
		file string
	}{
		{"by Restore", func(_ *bench, k *Keeper, id memcg.ID) *Keeper { k.Restore(ctx, id, memcg.KnobHigh); return k }, "8192"},
		{"by RestoreAll", func(_ *bench, k *Keeper, _ memcg.ID) *Keeper { k.RestoreAll(ctx, time.Minute); return k }, "8192"},
		{"by the next agent", func(b *bench, k *Keeper, _ memcg.ID) *Keeper { k = b.restart(k); k.Recover(ctx); return k }, "8192"},
		{"by asking for the value from before", func(b *bench, k *Keeper, id memcg.ID) *Keeper {
			b.mustSet(k, id, memcg.KnobHigh, "8192", PutBack)
			return k
		}, "8192"},
		{"where somebody put the file back by hand", func(b *bench, k *Keeper, id memcg.ID) *Keeper {
			b.host.set("/a", memcg.KnobHigh, "8192")
			k.Restore(ctx, id, memcg.KnobHigh)
			return k
		}, "8192"},
		{"where somebody wrote another value to the file", func(b *bench, k *Keeper, id memcg.ID) *Keeper {
			b.host.set("/a", memcg.KnobHigh, "12288")
			k.Restore(ctx, id, memcg.KnobHigh)
			return k
		}, "12288"},
	} {
		t.Run(end.name, func(t *testing.T) {
			b, m, k := newManaged(t)
			defer func() { k.store.Close() }()
			id := b.host.make("/a")
			b.host.set("/a", memcg.KnobHigh, "8192")
			b.mustSet(k, id, memcg.KnobHigh, "65536", Written)
			b.mustSet(k, id, memcg.KnobHigh, "131072", Written)
			m.wantNotes(t, "map[/a memory.high:131072]")
			k = end.do(b, k, id)
			m.wantNotes(t, "map[]")
			b.wantKnob("/a", memcg.KnobHigh, end.file)
			if left := k.Entries(); len(left) > 0 {
				t.Errorf("the journal still has %v", left)
			}
		})
	}
}

func TestAUnitThatIsStartedAgainDoesNotBeginWithALoan(t *testing.T) {
	b, m, k := newManaged(t)
	defer func() { k.store.Close() }()
	id := b.host.make("/a")
	b.mustSet(k, id, memcg.KnobHigh, "65536", Written)
	m.off = errors.New("no answer")
	b.host.remove("/a")
	if err := k.Forget(id); !errors.Is(err, m.off) || len(k.Entries()) != 1 {
		t.Errorf("Forget() = %v and %d entries are left, want the manager's error and 1", err, len(k.Entries()))
	}
	m.off = nil
	again := b.host.make("/a")
	b.mustSet(k, again, memcg.KnobHigh, "131072", Written)
	k.Restore(context.Background(), again, memcg.KnobHigh)
	m.wantNotes(t, "map[]")
	if left := k.Entries(); len(left) > 0 {
		t.Errorf("the journal still has %v", left)
	}
}

func TestNothingIsSetWhereTheManagerDoesNotAnswer(t *testing.T) {
	b, m, k := newManaged(t)
	defer func() { k.store.Close() }()
	id := b.host.make("/a")
	m.off = errors.New("no answer")
	if _, err := k.Set(context.Background(), id, memcg.KnobHigh, "65536", "test"); !errors.Is(err, m.off) {
		t.Errorf("Set() = %v, want the manager's error", err)
	}
	b.wantKnob("/a", memcg.KnobHigh, "max")
	if left := k.Entries(); len(left) > 0 {
		t.Errorf("the journal has %v", left)
	}
}

func TestAValueIsPutBackEvenWhereItsManagerIsGone(t *testing.T) {
	b, m, k := newManaged(t)
	defer func() { k.store.Close() }()
	id := b.host.make("/a")
	b.mustSet(k, id, memcg.KnobHigh, "65536", Written)
	m.off = errors.New("no answer")
	if u := k.Restore(context.Background(), id, memcg.KnobHigh); u.How != NotUndone || !errors.Is(u.Err, m.off) {
		t.Errorf("Restore() = %v, %v; want not undone, by the manager's error", u.How, u.Err)
	}
	b.wantKnob("/a", memcg.KnobHigh, "max")
	if len(k.Entries()) != 1 {
		t.Error("the journal has forgotten what the manager still has")
	}
}

func TestASlowManagerIsNotTakenForAnotherOwner(t *testing.T) {
	b, m, k := newManaged(t)
	defer func() { k.store.Close() }()
	id := b.host.make("/a")
	m.slow = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := k.Set(ctx, id, memcg.KnobHigh, "65536", "test"); !errors.Is(err, memcg.ErrPartial) {
		t.Errorf("Set() = %v, want partial", err)
	}
	m.wantNotes(t, "map[]")
	if left := k.Entries(); len(left) > 0 {
		t.Errorf("the journal has %v", left)
	}
}

func TestAManagerIsNotMadeToWaitForTheKernel(t *testing.T) {
	b, m, k := newManaged(t)
	id := b.host.make("/a")
	b.host.set("/a", memcg.KnobHigh, "8192")
	b.mustSet(k, id, memcg.KnobHigh, "65536", Written)
	free := make(chan struct{})
	b.host.block = func(Key) <-chan struct{} { return free }
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if u := k.Restore(ctx, id, memcg.KnobHigh); u.How != NotUndone || !errors.Is(u.Err, memcg.ErrPartial) {
		t.Errorf("Restore() = %v, %v; want not undone yet", u.How, u.Err)
	}
	b.wantKnob("/a", memcg.KnobHigh, "8192")
	m.wantNotes(t, "map[/a memory.high:65536]")
	close(free)
	k = b.restart(k)
	defer k.store.Close()
	k.Recover(context.Background())
	m.wantNotes(t, "map[]")
	b.wantKnob("/a", memcg.KnobHigh, "8192")
}

func TestACrashBetweenAnyTwoStepsLeavesAManagerNothing(t *testing.T) {
	ctx := context.Background()
	for _, step := range Steps() {
		for nth := 1; ; nth++ {
			b, m, k := newManaged(t)
			id := b.host.make("/a")
			ended := b.crashes(step, nth, func() { day(ctx, k, id) })
			k = b.restart(k)
			k.Recover(ctx)
			m.wantNotes(t, "map[]")
			b.wantKnob("/a", memcg.KnobHigh, "max")
			k.store.Close()
			if !ended {
				break
			}
		}
	}
}

func TestManyValuesArePutBackSideBySide(t *testing.T) {
	b := newBench(t)
	k := b.start()
	defer k.store.Close()
	k.atOnce = atOnce
	never := make(chan struct{})
	defer close(never)
	for i := range 100 {
		id := b.host.make(fmt.Sprintf("/c%d", i))
		b.host.set(id.Path, memcg.KnobHigh, "8192")
		b.mustSet(k, id, memcg.KnobHigh, "65536", Written)
	}
	b.host.block = func(Key) <-chan struct{} { return never } // as memory.high does while the kernel reclaims
	began := time.Now()
	r := k.RestoreAll(context.Background(), 5*time.Second)
	if took := time.Since(began); len(r.Failed()) > 0 || took > 4*time.Second {
		t.Errorf("%d of 100 were not put back, in %v", len(r.Failed()), took)
	}
}
