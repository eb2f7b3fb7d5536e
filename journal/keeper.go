package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Knobs is all that a Keeper knows of a kernel. Errors wrap one of the
// memcg.Err kinds and the errno. Methods may be called from several goroutines
// at once, for one cgroup too.
type Knobs interface {
	// ReadKnob returns what a knob holds, without the newline: for limits what
	// the kernel prints, for cpuset.mems what was asked for. memcg.ErrGone: the
	// cgroup is no longer at its path, or another one is.
	// memcg.ErrUnsupported: the cgroup lives and has no such file.
	ReadKnob(id memcg.ID, k memcg.Knob) (string, error)
	// WriteKnob writes a value that is Valid. It may block for as long as the
	// kernel reclaims or moves memory for it, whatever becomes of ctx.
	WriteKnob(ctx context.Context, id memcg.ID, k memcg.Knob, value string) error
	// EffectiveMems returns the nodes that a cgroup may really use, and those
	// of its parent (cpuset.mems.effective).
	EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error)
}

// Options of a Keeper. Boot is required.
type Options struct {
	// Boot is the boot id of the host (/proc/sys/kernel/random/boot_id): values
	// of cgroups do not outlive it.
	Boot string
	// Rules for knobs that others write too; the zero Rules are DefaultRules.
	Rules Rules
	// PageSize of the host in bytes; 0 is that of this process.
	PageSize uint64
	// Now is the wall clock; nil is time.Now.
	Now func() time.Time
}

// Keeper sets knobs and puts them back, and has every value on disk before it
// is written. It is safe for use by several goroutines: calls for different
// cgroups go on side by side, a second call for the same one waits. Entries,
// Holds and Cooldowns never wait, neither for a knob nor for the disk.
type Keeper struct {
	store    *Store
	host     Knobs
	boot     string
	rules    Rules
	pageSize uint64
	now      func() time.Time
	atOnce   int // values put back at the same time

	saving sync.Mutex // held while the journal is written, before mu

	mu      sync.Mutex // guards the rest, never held over a call that may block
	entries map[Key]Entry
	rests   []Cooldown
	busy    map[memcg.ID]chan struct{} // closed when the call for it is over
	stopped bool
}

// NewKeeper returns a Keeper of what an open Store holds. Call Recover before
// anything else.
func NewKeeper(s *Store, h Knobs, o Options) (*Keeper, error) {
	if o.Boot == "" {
		return nil, errors.New("keep a journal: the host's boot id is not known, so it could not be told what a restart has undone")
	}
	k := &Keeper{
		store: s, host: h, boot: o.Boot, rules: o.Rules, pageSize: o.PageSize, now: o.Now,
		entries: s.read.entries, rests: s.read.rests, busy: map[memcg.ID]chan struct{}{}, atOnce: atOnce,
	}
	if k.rules == (Rules{}) {
		k.rules = DefaultRules
	}
	if k.pageSize == 0 {
		k.pageSize = uint64(os.Getpagesize())
	}
	if k.now == nil {
		k.now = time.Now
	}
	if s.read.boot != k.boot {
		k.rests = nil
	}
	return k, nil
}

// Entries returns what would be undone now, in the order of paths.
func (k *Keeper) Entries() []Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return sorted(k.entries)
}

// Holds returns the entry of one knob; ok is false when there is none: the
// knob holds what its operator set.
func (k *Keeper) Holds(id memcg.ID, knob memcg.Knob) (e Entry, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok = k.entries[Key{id, knob}]
	return e, ok
}

// Forget drops what is known of a cgroup that is gone, and writes the journal
// if there was anything. It need not be repeated on an error: what is still on
// disk names an inode that is gone. What a service manager has noted of it is taken
// back first (Managed); an entry for which that fails stays, for Recover.
func (k *Keeper) Forget(id memcg.ID) error {
	if !k.knows(id) {
		return nil
	}
	left, viaErr := k.undoGone(slices.DeleteFunc(k.Entries(), func(e Entry) bool { return e.ID != id }))
	return errors.Join(viaErr, k.commit(func() func() {
		k.rests = slices.DeleteFunc(slices.Clone(k.rests), func(c Cooldown) bool { return c.Cgroup == id })
		maps.DeleteFunc(k.entries, func(key Key, _ Entry) bool { return key.ID == id && !left[key] })
		return func() {}
	}))
}

func (k *Keeper) knows(id memcg.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.entries {
		if key.ID == id {
			return true
		}
	}
	return slices.ContainsFunc(k.rests, func(c Cooldown) bool { return c.Cgroup == id })
}

// record puts an entry on disk, or takes it out where e is nil. On an error
// nothing has changed.
func (k *Keeper) record(key Key, e *Entry) error {
	return k.commit(func() func() {
		before, had := k.entries[key]
		if e != nil {
			k.entries[key] = *e
		} else {
			delete(k.entries, key)
		}
		return func() {
			delete(k.entries, key)
			if had {
				k.entries[key] = before
			}
		}
	})
}

// commit makes a change and writes the journal; where that fails it calls what
// change returned. Who only looks does not wait for the disk.
func (k *Keeper) commit(change func() (revert func())) error {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.Lock()
	revert := change()
	now := contents{entries: maps.Clone(k.entries), rests: k.rests, boot: k.boot}
	k.mu.Unlock()
	err := k.store.save(now)
	if err != nil {
		k.mu.Lock()
		revert()
		k.mu.Unlock()
	}
	return err
}

// hold is the right to one cgroup's knobs.
type hold struct {
	k  *Keeper
	id memcg.ID
	// pending is a write that has not come back: the right ends with it.
	pending <-chan error
}

// tryHold returns the right to a cgroup, or what to wait for.
func (k *Keeper) tryHold(id memcg.ID) (*hold, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wait := k.busy[id]; wait != nil {
		return nil, wait
	}
	k.busy[id] = make(chan struct{})
	return &hold{k: k, id: id}, nil
}

// hold waits for the right to a cgroup.
func (k *Keeper) hold(ctx context.Context, id memcg.ID) (*hold, error) {
	for {
		h, wait := k.tryHold(id)
		if h != nil {
			return h, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, fmt.Errorf("an earlier write to this cgroup has not come back: %w: %w", memcg.ErrPartial, context.Cause(ctx))
		}
	}
}

// release gives the right back, once nothing is written any more.
func (h *hold) release() {
	if h.pending == nil {
		h.end()
		return
	}
	go func() {
		<-h.pending
		h.end()
	}()
}

func (h *hold) end() {
	h.k.mu.Lock()
	defer h.k.mu.Unlock()
	close(h.k.busy[h.id])
	delete(h.k.busy, h.id)
}

// put writes a knob and waits until that is done or ctx is over. Then the write
// goes on by itself: no signal is sent to it, and the kernel sets a value
// before it does the work that this asks for.
func (h *hold) put(ctx context.Context, knob memcg.Knob, value string) (inFlight bool, err error) {
	if ctx.Err() != nil {
		return false, fmt.Errorf("%w: %w", memcg.ErrPartial, context.Cause(ctx))
	}
	done := make(chan error, 1)
	go func() { done <- h.k.host.WriteKnob(ctx, h.id, knob, value) }()
	select {
	case err = <-done:
		return false, err
	case <-ctx.Done():
	}
	select {
	case err = <-done: // both were ready
		return false, err
	default:
		h.pending = done
		return true, nil
	}
}
