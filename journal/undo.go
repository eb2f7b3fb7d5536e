package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/memagent/memagent/memcg"
)

// How tells how an entry came to its end.
type How uint8

// Ends of an entry.
const (
	// NotUndone: see Undone.Err. The entry is still in the journal.
	NotUndone How = iota
	// Nothing: there was no entry.
	Nothing
	// Restored: the value from before is back.
	Restored
	// StoodIn: an empty cpuset.mems could not be put back while processes were
	// there (kernels before 7.2, case c46); the parent's nodes were, which is
	// the same until the parent's change.
	StoodIn
	// WasThere: the value from before was there already.
	WasThere
	// LeftForeign: somebody else has written the knob since. It is theirs.
	LeftForeign
	// CgroupGone: the cgroup is gone, or another has its path.
	CgroupGone
	// FileGone: the cgroup no longer has the file, its controller was switched
	// off, and what it held is gone with it.
	FileGone
	// Rebooted: the host was booted since; its cgroups are new.
	Rebooted
)

var howNames = [...]string{
	"not undone", "nothing to undo", "restored", "restored by the parent's nodes", "was as before already",
	"left to somebody else", "the cgroup is gone", "the file is gone", "undone by a reboot",
}

// String returns how in a few words for people.
func (h How) String() string {
	if int(h) < len(howNames) {
		return howNames[h]
	}
	return "how(?)"
}

// Undone is what became of one entry.
type Undone struct {
	Entry
	How How
	Now string // what the knob holds, where it was read
	Err error  // of NotUndone, or of the journal
	// InFlight: the value is back and the kernel still reclaims or moves
	// memory for it.
	InFlight bool
}

// Report is what became of a whole journal.
type Report struct {
	Undone []Undone
	// Damage is Store.Damaged: what was in a file that could not be read.
	Damage error
	// Err is of writing the journal afterwards. Knobs are back all the same,
	// and entries that stayed are found as WasThere the next time.
	Err error
}

// Failed returns the entries that are still to be undone.
func (r Report) Failed() []Undone {
	return slices.DeleteFunc(slices.Clone(r.Undone), func(u Undone) bool { return u.How != NotUndone })
}

// patience is how long one write is waited for while others wait to be undone.
// A limit holds from the beginning of its write on; what may take long is the
// reclaim behind it, which nobody here needs to see the end of.
const patience = 250 * time.Millisecond

// patienceVia is how long a service manager is waited for, which answers within
// milliseconds where it is not at work for somebody else.
const patienceVia = 2 * time.Second

// atOnce is how many values are put back at the same time: each may block for as
// long as the kernel reclaims for it, and holds a thread meanwhile.
const atOnce = 32

// Recover undoes what an earlier process has left, and proves that the journal
// can be written. It comes before anything that may block or decide: a workload
// may hang at a limit left behind (case c40). Limits that bind too tightly are
// undone first. Knobs that were left to somebody else stay so.
func (k *Keeper) Recover(ctx context.Context) Report { return k.undoAll(ctx, true) }

// RestoreAll undoes everything, within a time bound, and lets no Set come after
// it. What could not be undone is still in the journal, for Recover or for
// memagent restore.
func (k *Keeper) RestoreAll(ctx context.Context, within time.Duration) Report {
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return k.undoAll(ctx, false)
}

// Restore undoes one knob. One that was left to somebody else may be set anew
// afterwards.
func (k *Keeper) Restore(ctx context.Context, id memcg.ID, knob memcg.Knob) Undone {
	key := Key{id, knob}
	e, ok := k.Holds(id, knob)
	if !ok {
		return Undone{Entry: Entry{Key: key}, How: Nothing}
	}
	h, err := k.hold(ctx, id)
	if err != nil {
		return Undone{Entry: e, Err: fmt.Errorf("restore %v: %w", key, err)}
	}
	defer h.release()
	if e, ok = k.Holds(id, knob); !ok { // undone while waiting
		return Undone{Entry: Entry{Key: key}, How: Nothing}
	}
	u := k.undo(ctx, h, e)
	if u.How != NotUndone {
		u.Err = k.clear(key)
	}
	return u
}

func (k *Keeper) undoAll(ctx context.Context, keepYielded bool) Report {
	r := Report{Damage: k.store.damaged}
	todo := k.Entries()
	if keepYielded {
		todo = slices.DeleteFunc(todo, func(e Entry) bool { return e.Yielded && e.Boot == k.boot })
	}
	slices.SortStableFunc(todo, func(a, b Entry) int { return rank(a) - rank(b) })
	undone := make([]*Undone, len(todo))
	for from := 0; from < len(todo); {
		to := from + 1
		for to < len(todo) && rank(todo[to]) == rank(todo[from]) {
			to++
		}
		k.undoSideBySide(ctx, todo[from:to], undone[from:to])
		from = to
	}
	var over []Key
	for i, e := range todo {
		if undone[i] == nil {
			undone[i] = k.undoAwaited(ctx, e) // what is in flight must not hold up the rest
		}
		if undone[i] == nil {
			continue
		}
		r.Undone = append(r.Undone, *undone[i])
		if undone[i].How != NotUndone {
			over = append(over, undone[i].Key)
		}
	}
	r.Err = k.clear(over...)
	return r
}

// undoSideBySide undoes entries of the same rank, and leaves out those whose
// cgroup is in the hands of somebody else.
func (k *Keeper) undoSideBySide(ctx context.Context, todo []Entry, undone []*Undone) {
	var running sync.WaitGroup
	places := make(chan struct{}, k.atOnce)
	for i, e := range todo {
		h, _ := k.tryHold(e.ID)
		if h == nil {
			continue
		}
		undo := func() {
			u := k.undoHeld(ctx, h, e)
			undone[i] = &u
		}
		if k.atOnce == 1 {
			undo()
			continue
		}
		places <- struct{}{}
		running.Go(func() { undo(); <-places })
	}
	running.Wait()
}

// undoAwaited undoes an entry once its cgroup is free. It returns nil where
// somebody else has undone it meanwhile.
func (k *Keeper) undoAwaited(ctx context.Context, e Entry) *Undone {
	h, err := k.hold(ctx, e.ID)
	if err != nil {
		return &Undone{Entry: e, Err: fmt.Errorf("restore %v: %w", e.Key, err)}
	}
	now, ok := k.Holds(e.ID, e.Knob)
	if !ok {
		h.release()
		return nil
	}
	u := k.undoHeld(ctx, h, now)
	return &u
}

func (k *Keeper) undoHeld(ctx context.Context, h *hold, e Entry) Undone {
	defer h.release()
	within := patience
	if e.Via != "" {
		within = patienceVia
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return k.undo(ctx, h, e)
}

// rank puts first what a workload may be waiting for.
func rank(e Entry) int {
	switch {
	case raises(e.Knob, e.Wrote, e.Before):
		return 0
	case e.Knob == memcg.KnobMems: // moves memory
		return 2
	}
	return 1
}

// undo puts back one value, if it is still ours to put back. The journal is not
// changed. Errors name the knob.
func (k *Keeper) undo(ctx context.Context, h *hold, e Entry) Undone {
	u := Undone{Entry: e}
	fail := func(err error) Undone {
		u.Err = fmt.Errorf("restore %v to %q: %w", e.Key, e.Before, err)
		return u
	}
	if e.Boot != k.boot {
		u.How = Rebooted
		return u
	}
	over := func(how How, to string) Undone {
		if err := k.undoVia(ctx, e, to); err != nil {
			return fail(err)
		}
		u.How = how
		return u
	}
	found, err := k.host.ReadKnob(e.ID, e.Knob)
	switch {
	case errors.Is(err, memcg.ErrGone):
		return over(CgroupGone, e.Before)
	case errors.Is(err, memcg.ErrUnsupported):
		return over(FileGone, e.Before)
	case e.Yielded && e.Via == "":
		u.How = LeftForeign
		return u
	case err != nil:
		return fail(err)
	}
	u.Now = found
	owner := Judge(e, Sight{ID: e.ID, Boot: k.boot, Value: found}, k.pageSize)
	switch {
	case e.Yielded || owner == Foreign:
		return over(LeftForeign, found)
	case owner == Original:
		return over(WasThere, e.Before)
	}
	k.store.at(StepBeforeRestore)
	put, inFlight, err := k.putBack(ctx, h, e.Knob, e.Before)
	k.store.at(StepAfterRestore)
	if errors.Is(err, memcg.ErrGone) {
		u.How = CgroupGone
		return u
	}
	if err == nil && e.Via != "" && inFlight {
		// The manager's own write of the value would have to wait as well.
		return fail(fmt.Errorf("its file holds it, and the kernel still reclaims for that: %w", memcg.ErrPartial))
	}
	if err == nil && e.Via != "" {
		put, inFlight, err = k.putBackVia(ctx, h, e, put)
	}
	if err != nil {
		return fail(err)
	}
	if u.Now, err = k.host.ReadKnob(e.ID, e.Knob); err != nil {
		return fail(err)
	}
	switch {
	case !Same(e.Knob, u.Now, put, k.pageSize) && inFlight:
		return fail(fmt.Errorf("the write has not come back: %w: %w", memcg.ErrPartial, context.Cause(ctx)))
	case !Same(e.Knob, u.Now, put, k.pageSize):
		return fail(fmt.Errorf("it reads %q: %w", u.Now, ErrNotGranted))
	}
	u.How, u.InFlight = Restored, inFlight
	if put != e.Before {
		u.How = StoodIn
	}
	return u
}

// putBack writes the value from before, or what stands in for it, and returns
// which.
func (k *Keeper) putBack(ctx context.Context, h *hold, knob memcg.Knob, before string) (put string, inFlight bool, err error) {
	inFlight, err = h.put(ctx, knob, before)
	if knob != memcg.KnobMems || before != "" || !errors.Is(err, syscall.ENOSPC) {
		return before, inFlight, err
	}
	_, parent, parentErr := k.host.EffectiveMems(h.id)
	if parentErr != nil {
		return before, false, errors.Join(err, parentErr)
	}
	put = parent.String()
	inFlight, err = h.put(ctx, knob, put)
	return put, inFlight, err
}

// putBackVia takes back what a manager has noted once the file holds the value
// from before: what that asks of the kernel is done, and does not hold up the
// manager. Where the manager's own value was another, the file has the last word.
func (k *Keeper) putBackVia(ctx context.Context, h *hold, e Entry, put string) (_ string, inFlight bool, err error) {
	if err := k.undoVia(ctx, e, e.Before); err != nil {
		return put, false, err
	}
	now, err := k.host.ReadKnob(e.ID, e.Knob)
	if err != nil || Same(e.Knob, now, put, k.pageSize) {
		return put, false, err
	}
	return k.putBack(ctx, h, e.Knob, e.Before)
}

// clear takes entries out of the journal. It is written in any case: that it
// can be is worth knowing.
func (k *Keeper) clear(keys ...Key) error {
	k.store.at(StepBeforeClear)
	err := k.commit(func() func() {
		gone := map[Key]Entry{}
		for _, key := range keys {
			if e, ok := k.entries[key]; ok {
				gone[key] = e
				delete(k.entries, key)
			}
		}
		return func() { maps.Copy(k.entries, gone) }
	})
	if err == nil {
		k.store.at(StepAfterClear)
	}
	return err
}
