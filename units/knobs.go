package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

const (
	// holdsWithin is how long the file is looked at for a value that was set as a
	// property. systemd writes it before it answers, or right after.
	holdsWithin = time.Second
	holdsPoll   = 10 * time.Millisecond
)

// How a property was set, in journal.Entry.Via: "systemd before=VALUE", the
// property's value as the knob's file would say it, and " kept" where a drop-in was
// there before.
const (
	viaBefore = "systemd before="
	viaKept   = " kept"
)

// Options of Knobs.
type Options struct {
	// Root is where the host's / is seen.
	Root string
	// On has units set by way of their properties. Off, what an earlier process
	// has set so is taken back all the same.
	On bool
	// PageSize of the host in bytes; 0 is that of this process.
	PageSize uint64
}

// Knobs reads and writes knobs, those of units as properties. It is
// journal.Managed, and safe for use by several goroutines where the files are.
type Knobs struct {
	journal.Knobs
	manager  Manager
	root     string
	on       bool
	pageSize uint64
}

// New returns Knobs over the files of a host and its systemd.
func New(files journal.Knobs, m Manager, o Options) *Knobs {
	k := &Knobs{Knobs: files, manager: m, root: o.Root, on: o.On, pageSize: o.PageSize}
	if k.root == "" {
		k.root = "/"
	}
	if k.pageSize == 0 {
		k.pageSize = uint64(os.Getpagesize())
	}
	return k
}

// Settable says why no property could be set and taken back again; nil where that is
// not known to fail.
func (k *Knobs) Settable(ctx context.Context) error {
	if err := k.removable(); err != nil {
		return err
	}
	_, err := k.manager.Property(ctx, "-.slice", "Slice", "ControlGroup")
	return err
}

// UnitOf returns the unit whose cgroup that is, "" where it is none. The error is
// that of asking systemd.
func (k *Knobs) UnitOf(ctx context.Context, id memcg.ID) (name string, err error) {
	u, ok, err := k.unitOf(ctx, id)
	if err != nil || !ok {
		return "", err
	}
	return u.name, nil
}

func (k *Knobs) unitOf(ctx context.Context, id memcg.ID) (u unit, ok bool, err error) {
	if u, ok = unitOf(id.Path); !ok {
		return u, false, nil
	}
	at, err := k.manager.Property(ctx, u.name, u.kind, "ControlGroup")
	if errors.Is(err, ErrNoUnit) {
		return u, false, nil
	}
	return u, err == nil && at == id.Path, err
}

// has returns the value that systemd has for a unit.
func (k *Knobs) has(ctx context.Context, u unit, knob memcg.Knob) (string, error) {
	v, err := k.manager.Property(ctx, u.name, u.kind, properties[knob])
	if err != nil {
		return "", err
	}
	value, err := fromProperty(knob, v)
	if err != nil {
		return "", fmt.Errorf("unit %s: %w", u.name, err)
	}
	return value, nil
}

// Via is journal.Managed's: "" for what is no unit, or while Options.On is not set.
func (k *Knobs) Via(ctx context.Context, key journal.Key, old journal.Entry) (string, error) {
	if !k.on {
		return "", nil
	}
	u, ok, err := k.unitOf(ctx, key.ID)
	if err != nil || !ok {
		return "", err
	}
	if err := k.removable(); err != nil {
		return "", err
	}
	value, err := k.has(ctx, u, key.Knob)
	if err != nil {
		return "", err
	}
	if old.Via != "" && k.ours(old, value) {
		return old.Via, nil // somebody wrote the file alone
	}
	noted, kept, err := k.noted(u, key.Knob)
	if err != nil {
		return "", err
	}
	via := viaBefore + value
	if kept && !(old.Via != "" && k.ours(old, noted)) {
		via += viaKept
	}
	return via, nil
}

// SetVia is journal.Managed's.
func (k *Knobs) SetVia(ctx context.Context, e journal.Entry) error {
	u, ok := unitOf(e.ID.Path)
	if !ok {
		return fmt.Errorf("%s is no unit: %w", e.ID, memcg.ErrInvalid)
	}
	if err := k.setProperty(ctx, u, e.Knob, e.Wrote); err != nil {
		return err
	}
	for late := time.Now().Add(holdsWithin); time.Now().Before(late); {
		now, err := k.ReadKnob(e.ID, e.Knob)
		if err != nil || journal.Same(e.Knob, now, e.Wrote, k.pageSize) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", memcg.ErrPartial, context.Cause(ctx))
		case <-time.After(holdsPoll):
		}
	}
	return nil // whether it holds is for the caller to see
}

func (k *Knobs) setProperty(ctx context.Context, u unit, knob memcg.Knob, value string) error {
	v, err := toProperty(knob, value)
	if err != nil {
		return err
	}
	return k.manager.SetProperty(ctx, u.name, properties[knob], v)
}

// UndoVia is journal.Managed's. A property that is not ours any more is left as it
// is; a drop-in is removed where it was not there before and says what we set, or what
// was put in its place here.
func (k *Knobs) UndoVia(ctx context.Context, e journal.Entry, to string) error {
	u, ok := unitOf(e.ID.Path)
	before, isOurs := strings.CutPrefix(e.Via, viaBefore)
	if !ok || !isOurs {
		return fmt.Errorf("%s by way of %q: %w", e.ID, e.Via, memcg.ErrInvalid)
	}
	before, kept := strings.CutSuffix(before, viaKept)
	if to == e.Before {
		to = before
	}
	value, err := k.has(ctx, u, e.Knob)
	switch {
	case errors.Is(err, ErrNoUnit):
	case err != nil:
		return err
	case k.ours(e, value):
		if err := k.setProperty(ctx, u, e.Knob, to); err != nil && !errors.Is(err, ErrNoUnit) {
			return err
		}
	}
	noted, there, err := k.noted(u, e.Knob)
	if err != nil || kept || !there {
		return err
	}
	if k.ours(e, noted) || journal.Same(e.Knob, noted, to, k.pageSize) {
		return k.remove(u, properties[e.Knob])
	}
	return nil
}

// ours reports whether a value is one that an entry says was set here.
func (k *Knobs) ours(e journal.Entry, value string) bool {
	return journal.Same(e.Knob, value, e.Wrote, k.pageSize) || e.Earlier != "" && journal.Same(e.Knob, value, e.Earlier, k.pageSize)
}
