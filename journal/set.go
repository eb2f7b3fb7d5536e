package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Outcome is what a Set came to.
type Outcome uint8

// Outcomes.
const (
	// Failed: see the error.
	Failed Outcome = iota
	// Written: the knob holds the value.
	Written
	// Unchanged: it held it already, nothing was written.
	Unchanged
	// PutBack: the value is the operator's own; it was put back and the
	// journal has no entry any more.
	PutBack
	// Waiting: somebody else wrote the knob; it is asserted again not before
	// Result.Until.
	Waiting
	// Yielding: somebody else keeps writing the knob, and from now on it is
	// left to them. This is said once: report it.
	Yielding
	// Yielded: it was left to somebody else before.
	Yielded
)

var outcomeNames = [...]string{"failed", "written", "unchanged", "put back", "waiting", "yielding", "yielded"}

// String returns the outcome in lower-case words.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "outcome(?)"
}

// Result is what a Set found and did.
type Result struct {
	Outcome Outcome
	Found   string // in the knob before
	// Owner of what was found. Original also where nothing of ours was there.
	Owner Owner
	Now   string    // in the knob after, where it was read back
	Until time.Time // of Waiting
	// InFlight: ctx ended before the write came back. The value holds, the
	// kernel is still at work for it, and calls for this cgroup wait.
	InFlight bool
}

// Set makes a knob of a cgroup hold a value that is Valid, for a reason in a
// few words. What is there is read first; if it is the value already, or is
// left to somebody else, nothing is written. Else the journal is on disk before
// the knob is written, and what holds then is read back.
//
// The error Is one of the kinds of this package where the journal could not be
// written, and the knob was not then; ErrNotGranted where the kernel took the
// value and holds to another (for cpuset.mems it is put back at once);
// ErrStopped after RestoreAll; memcg.ErrPartial where ctx ended before anything
// could be told; memcg.ErrInvalid for a value that is none; and what Knobs
// returns.
//
// An empty cpuset.mems is never set, only put back.
func (k *Keeper) Set(ctx context.Context, id memcg.ID, knob memcg.Knob, value, why string) (Result, error) {
	r, err := k.set(ctx, Key{id, knob}, value, why)
	if err != nil {
		return r, fmt.Errorf("set %v to %s: %w", Key{id, knob}, value, err)
	}
	return r, nil
}

func (k *Keeper) set(ctx context.Context, key Key, value, why string) (Result, error) {
	if !Valid(key.Knob, value) || key.Knob == memcg.KnobMems && value == "" {
		return Result{}, fmt.Errorf("%q is no value to set: %w", value, memcg.ErrInvalid)
	}
	if err := checkID(key.ID); err != nil {
		return Result{}, fmt.Errorf("%w: %w", memcg.ErrInvalid, err)
	}
	h, err := k.hold(ctx, key.ID)
	if err != nil {
		return Result{}, err
	}
	defer h.release()
	k.mu.Lock()
	old, had := k.entries[key]
	stopped := k.stopped
	k.mu.Unlock()
	if stopped {
		return Result{}, ErrStopped
	}
	if had && old.Yielded {
		return Result{Outcome: Yielded, Owner: Foreign}, nil
	}
	found, err := k.host.ReadKnob(key.ID, key.Knob)
	if err != nil {
		return Result{}, err
	}
	s := setting{k: k, h: h, key: key, value: value, old: old, had: had, r: Result{Found: found, Owner: Original}}
	s.next = Entry{Key: key, Boot: k.boot, Before: found}
	if had {
		over, err := s.meet(ctx)
		if over || err != nil {
			return s.r, err
		}
	} else if k.same(key, found, value) {
		s.r.Outcome, s.r.Now = Unchanged, found
		return s.r, nil
	}
	s.next.Wrote, s.next.At, s.next.Why = value, k.now(), short(why)
	if s.next.Via, err = s.via(ctx); err != nil {
		return s.r, err
	}
	return s.r, s.write(ctx)
}

func (k *Keeper) same(key Key, a, b string) bool { return Same(key.Knob, a, b, k.pageSize) }

// setting is one Set under way.
type setting struct {
	k     *Keeper
	h     *hold
	key   Key
	value string
	old   Entry // in the journal, if had
	had   bool
	next  Entry
	r     Result
}

// meet looks at a knob that has an entry. over: there is nothing to write.
func (s *setting) meet(ctx context.Context) (over bool, err error) {
	k, found := s.k, s.r.Found
	s.r.Owner = Judge(s.old, Sight{ID: s.key.ID, Boot: k.boot, Value: found}, k.pageSize)
	switch s.r.Owner {
	case Gone: // of another boot, and Recover was not called
		if k.same(s.key, found, s.value) {
			s.r.Outcome, s.r.Now = Unchanged, found
			return true, k.record(s.key, nil)
		}
		return false, nil
	case Ours:
		switch {
		case k.same(s.key, s.old.Before, s.value):
			u := k.undo(ctx, s.h, s.old)
			if u.Err == nil {
				u.Err = k.clear(s.key)
			}
			if u.Err != nil {
				return true, u.Err
			}
			s.r.Outcome, s.r.Now, s.r.InFlight = PutBack, u.Now, u.InFlight
			return true, nil
		case k.same(s.key, found, s.value):
			s.r.Outcome, s.r.Now = Unchanged, found
			return true, nil
		}
		s.next = s.old
		s.next.Earlier = found
		return false, nil
	}
	if k.same(s.key, found, s.value) {
		// Somebody else wants the same: it is theirs now.
		s.r.Outcome, s.r.Now = Unchanged, found
		if err := k.undoVia(ctx, s.old, found); err != nil {
			return true, err
		}
		return true, k.record(s.key, nil)
	}
	next, move, until := k.rules.Meet(s.old, found, k.now())
	switch move {
	case Wait:
		s.r.Outcome, s.r.Now, s.r.Until = Waiting, found, until
		return true, nil
	case Yield:
		if k.undoVia(ctx, s.old, found) == nil {
			next.Via = ""
		}
		s.r.Outcome, s.r.Now = Yielding, found
		return true, k.record(s.key, &next)
	}
	next.Earlier = ""
	s.next = next
	return false, nil
}

// write is the way from the journal to the knob and back.
func (s *setting) write(ctx context.Context) error {
	k := s.k
	if s.key.Knob == memcg.KnobMems {
		if err := s.grantable(); err != nil {
			return err
		}
	}
	k.store.at(StepBeforeJournal)
	if err := k.record(s.key, &s.next); err != nil {
		return err
	}
	k.store.at(StepAfterJournal)
	inFlight, err := s.put(ctx)
	k.store.at(StepAfterWrite)
	s.r.InFlight = inFlight
	now, readErr := k.host.ReadKnob(s.key.ID, s.key.Knob)
	s.r.Now = now
	switch {
	case err != nil:
		if readErr == nil && k.same(s.key, now, s.r.Found) && k.undoViaAnyway(ctx, s.next, now) == nil {
			return errors.Join(err, s.takeBack())
		}
		return err // the entry stays: the knob may hold anything
	case readErr != nil:
		return fmt.Errorf("written, and what it holds now cannot be read: %w", readErr)
	case inFlight && !k.same(s.key, now, s.value):
		return fmt.Errorf("the write has not come back: %w: %w", memcg.ErrPartial, context.Cause(ctx))
	case !k.same(s.key, now, s.value):
		return fmt.Errorf("it reads %q: %w", now, ErrNotGranted)
	}
	if s.key.Knob == memcg.KnobMems && !inFlight {
		if err := s.granted(ctx); err != nil {
			return err
		}
	}
	s.r.Outcome = Written
	s.settle()
	k.store.at(StepAfterReadBack)
	return nil
}

// settle notes that the knob no longer holds the earlier value. The journal
// learns it the next time it is written.
func (s *setting) settle() {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if e, ok := s.k.entries[s.key]; ok {
		e.Earlier = ""
		s.k.entries[s.key] = e
	}
}

// takeBack makes the journal say what it said before.
func (s *setting) takeBack() error {
	if s.had {
		return s.k.record(s.key, &s.old)
	}
	return s.k.record(s.key, nil)
}

// grantable refuses nodes that the parent does not have: the kernel would
// accept them and use the parent's instead (case c48).
func (s *setting) grantable() error {
	want, err := memcg.ParseNodeMask(s.value)
	if err != nil {
		return fmt.Errorf("%w: %w", memcg.ErrInvalid, err)
	}
	_, parent, err := s.k.host.EffectiveMems(s.key.ID)
	if err != nil {
		return err
	}
	if more := want.Without(parent); !more.Empty() {
		return fmt.Errorf("the parent has nodes %v, not %v: %w", parent, more, ErrNotGranted)
	}
	return nil
}

// granted checks that the nodes asked for are the ones in use, and else puts
// back what was found.
func (s *setting) granted(ctx context.Context) error {
	want, _ := memcg.ParseNodeMask(s.value) // grantable has read it
	own, _, err := s.k.host.EffectiveMems(s.key.ID)
	if err != nil {
		return fmt.Errorf("written, and what was granted cannot be read: %w", err)
	}
	if own == want {
		return nil
	}
	refused := fmt.Errorf("the nodes in use are %v: %w", own, ErrNotGranted)
	_, inFlight, err := s.k.putBack(ctx, s.h, s.key.Knob, s.r.Found)
	if err != nil || inFlight {
		return errors.Join(refused, err) // the entry stays, to be undone later
	}
	return errors.Join(refused, s.takeBack())
}
