package main

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/units"
)

// journaled is the journal of a run that enforces.
type journaled struct {
	store  *journal.Store
	keeper *journal.Keeper
	bus    *units.Bus
}

func (j *journaled) close() {
	j.store.Close()
	j.bus.Close()
}

// openJournal opens the state directory and undoes what an earlier run has left
// there, before anything else that may block: a workload may hang at a limit left
// behind. Without a journal the run goes on and changes no limit, which is said
// once; the result is nil then.
func openJournal(ctx context.Context, l zerolog.Logger, notices *telemetry.Notices, fs *cgroupfs.FS, root string, cfg *config.Config) *journaled {
	j, err := newJournal(fs, root, cfg)
	if err != nil {
		notices.Warn("journal", err, "no memory.high, memory.swap.max or cpuset.mems is changed until this is mended and memagent started again, since it could not be put back; all else goes on")
		return nil
	}
	r := j.keeper.Recover(ctx)
	for _, u := range r.Undone {
		if u.How == journal.NotUndone {
			notices.Warn("restore "+u.Key.String(), u.Err, "a limit that an earlier run has left is still there; it is tried again at the end, and by memagent restore")
			continue
		}
		l.Info().Str("knob", u.Key.String()).Stringer("how", u.How).Str("now", u.Now).Msg("undid what an earlier run had left")
	}
	if r.Damage != nil {
		notices.Warn("journal damaged", r.Damage, "what it had to be put back is not known: look at the limits of your cgroups")
	}
	if r.Err != nil {
		notices.Warn("journal", r.Err, "no limit is changed until the journal can be written")
	}
	return j
}

func newJournal(fs *cgroupfs.FS, root string, cfg *config.Config) (*journaled, error) {
	opts, err := journalOptions()
	if err != nil {
		return nil, err
	}
	store, err := journal.Open(cfg.StateDir, opts...)
	if err != nil {
		return nil, err
	}
	boot, err := fs.BootID()
	if err != nil {
		store.Close()
		return nil, err
	}
	bus := units.NewBus(root)
	knobs := units.New(fs, bus, units.Options{Root: root, On: cfg.Host.Units == config.UnitsByProperty})
	keeper, err := journal.NewKeeper(store, knobs, journal.Options{Boot: boot})
	if err != nil {
		store.Close()
		return nil, fmt.Errorf("journal in %s: %w", cfg.StateDir, err)
	}
	return &journaled{store, keeper, bus}, nil
}
