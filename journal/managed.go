package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Managed is what Knobs may be besides: of cgroups that a service manager has,
// values can be set through that manager, which then keeps to them where it would
// write its own again. What the manager notes of a value is outside the cgroup,
// outlives it, and is to be taken back too.
//
// Methods may be called from several goroutines at once.
type Managed interface {
	// Via returns how a knob is to be set: "" by its file, or words of the
	// manager's own, in which it will know again what was there before. old is
	// the entry of this knob, the zero Entry where there is none. It is called
	// before the journal is written and changes nothing.
	Via(ctx context.Context, key Key, old Entry) (via string, err error)
	// SetVia has the manager set e.Wrote, as e.Via says. It returns when the file
	// holds the value, or with an error; errors as of WriteKnob, memcg.ErrPartial
	// where ctx ended first.
	SetVia(ctx context.Context, e Entry) error
	// UndoVia takes back what the manager has noted of a value of ours, where
	// that is still what it has: what it had before is there again or, where to
	// is not e.Before, to. It may be repeated, and when the cgroup is gone it
	// must still be called.
	UndoVia(ctx context.Context, e Entry, to string) error
}

// undoViaWithin bounds the undoing for a cgroup that is gone, which nobody waits
// for.
const undoViaWithin = 5 * time.Second

// via returns how a knob is to be set now.
func (s *setting) via(ctx context.Context) (string, error) {
	m, ok := s.k.host.(Managed)
	if !ok {
		return "", nil
	}
	if !s.had || s.r.Owner == Gone {
		if err := s.k.undoEarlier(ctx, s.key); err != nil {
			return "", err
		}
		return m.Via(ctx, s.key, Entry{})
	}
	if s.r.Owner == Ours {
		return s.old.Via, nil
	}
	return m.Via(ctx, s.key, s.old)
}

// undoVia takes back what a manager has noted for an entry.
func (k *Keeper) undoVia(ctx context.Context, e Entry, to string) error {
	if e.Via == "" {
		return nil
	}
	m, ok := k.host.(Managed)
	if !ok {
		return fmt.Errorf("it was set by way of %s, which nobody here knows: %w", e.Via, memcg.ErrUnsupported)
	}
	return m.UndoVia(ctx, e, to)
}

// undoViaAnyway is undoVia also where ctx is over: the manager may have been slow, and
// may still carry out what it was asked for.
func (k *Keeper) undoViaAnyway(ctx context.Context, e Entry, to string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patienceVia)
	defer cancel()
	return k.undoVia(ctx, e, to)
}

// undoEarlier takes back what a manager has noted for another cgroup that had the
// same path: a unit that was started again begins with it, and it would be taken
// for the operator's.
func (k *Keeper) undoEarlier(ctx context.Context, key Key) error {
	for _, e := range k.Entries() {
		if e.Via == "" || e.Boot != k.boot || e.Key == key || e.ID.Path != key.ID.Path || e.Knob != key.Knob {
			continue
		}
		if err := k.undoVia(ctx, e, e.Before); err != nil {
			return fmt.Errorf("what was set for the cgroup of this name before is still there: %w", err)
		}
		if err := k.record(e.Key, nil); err != nil {
			return err
		}
	}
	return nil
}

// put writes a value of ours.
func (s *setting) put(ctx context.Context) (inFlight bool, err error) {
	if s.next.Via == "" {
		return s.h.put(ctx, s.key.Knob, s.value)
	}
	return false, s.k.host.(Managed).SetVia(ctx, s.next) // which ends with ctx
}

// undoGone takes back what is noted of cgroups that are gone, and returns those
// entries where that failed.
func (k *Keeper) undoGone(entries []Entry) (left map[Key]bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), undoViaWithin)
	defer cancel()
	left = map[Key]bool{}
	for _, e := range entries {
		if e.Via == "" || e.Boot != k.boot {
			continue
		}
		if viaErr := k.undoVia(ctx, e, e.Before); viaErr != nil {
			left[e.Key], err = true, fmt.Errorf("restore %v: %w", e.Key, viaErr)
		}
	}
	return left, err
}
