package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/units"
)

// restoreWithin bounds a restore. It is well below the 90 s that a service
// manager waits for a command that ends a unit.
const restoreWithin = 30 * time.Second

type restoreFlags struct{ config, stateDir, root string }

func restoreCommand(e env) *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back what a memagent that is gone has left behind",
		Long: `Puts back every memory.high, memory.swap.max and cpuset.mems that the journal in
the state directory still has, without anything else running: for the service
manager after memagent has stopped, however it did, and for you. A value is put
back only in the same cgroup, since the same boot, and only if it is still the one
that memagent wrote; anything else belongs to somebody else and is left alone.

With -c the state directory is the config's, as for run. A config that is wrong
keeps nothing from being put back: what is wrong is told, and the journal is looked
for in the usual directory.

Exit codes: 0 nothing is left to undo, 1 something could not be undone, or a
memagent runs that undoes its own changes when it stops, 2 the command line or the
config is wrong.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.config == "" {
				return f.restore(cmd.Context(), e)
			}
			if cmd.Flags().Changed("state-dir") {
				return usageError{errors.New("-c and --state-dir both say where the journal is; give one of them")}
			}
			return f.restoreAsConfigured(cmd.Context(), e)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "config `FILE` whose state_dir has the journal")
	flags.StringVar(&f.stateDir, "state-dir", journal.DefaultDir, "`DIR` of the journal, instead of a config")
	flags.StringVar(&f.root, "root", "/", "`DIR` where the host's / is seen")
	return cmd
}

// restoreAsConfigured restores from the config's state directory, or from the
// usual one where the config cannot be read: it runs when memagent has ended,
// however that was, and tasks may hang at a limit left behind.
func (f *restoreFlags) restoreAsConfigured(ctx context.Context, e env) error {
	cfg, wrong := config.Load(f.config)
	if wrong == nil {
		f.stateDir = cfg.StateDir
		return f.restore(ctx, e)
	}
	fmt.Fprintf(e.err, "%v\nmemagent: its state_dir is not known for that, so the journal is looked for in %s; --state-dir names another\n", wrong, f.stateDir)
	if err := f.restore(ctx, e); err != nil {
		return err
	}
	return silent(exitConfig)
}

func (f *restoreFlags) restore(ctx context.Context, e env) error {
	opts, err := journalOptions()
	if err != nil {
		return err
	}
	store, err := journal.OpenExisting(f.stateDir, opts...)
	if errors.Is(err, journal.ErrMissing) {
		_, err = fmt.Fprintf(e.out, "nothing to undo: there is no %s\n", f.stateDir)
		return err
	}
	if err != nil {
		return err
	}
	defer store.Close()
	n := len(store.Entries())
	if n == 0 {
		if err := store.Damaged(); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "nothing to undo in %s\n", f.stateDir)
		return err
	}
	bus := units.NewBus(f.root)
	defer bus.Close()
	keeper, fs, err := f.keeper(store, bus)
	if err != nil {
		return fmt.Errorf("%d entries of %s are not undone: %w", n, f.stateDir, err)
	}
	defer fs.Close()
	if !printReport(e.out, e.err, keeper.RestoreAll(ctx, restoreWithin)) {
		return silent(exitHost)
	}
	return nil
}

// keeper opens the host for undoing what a store holds.
func (f *restoreFlags) keeper(store *journal.Store, bus *units.Bus) (*journal.Keeper, *cgroupfs.FS, error) {
	fs, err := cgroupfs.Open(f.root)
	if err != nil {
		return nil, nil, err
	}
	keeper, err := func() (*journal.Keeper, error) {
		if err := fs.Enforceable(); err != nil {
			return nil, err
		}
		boot, err := fs.BootID()
		if err != nil {
			return nil, err
		}
		return journal.NewKeeper(store, units.New(fs, bus, units.Options{Root: f.root}), journal.Options{Boot: boot})
	}()
	if err != nil {
		fs.Close()
		return nil, nil, err
	}
	return keeper, fs, nil
}

// printReport says what became of each entry and reports whether nothing is
// left to undo.
func printReport(out, errs io.Writer, r journal.Report) (all bool) {
	all = true
	for _, u := range r.Undone {
		if u.How == journal.NotUndone {
			fmt.Fprintf(errs, "memagent: %v\n", u.Err)
			all = false
			continue
		}
		fmt.Fprintf(out, "%v: %v", u.Key, u.How)
		switch u.How {
		case journal.Restored, journal.StoodIn, journal.WasThere, journal.LeftForeign:
			fmt.Fprintf(out, ", it holds %q", u.Now)
		}
		if u.InFlight {
			fmt.Fprint(out, "; the kernel still works on it")
		}
		fmt.Fprintln(out)
	}
	for _, err := range []error{r.Damage, r.Err} {
		if err != nil {
			fmt.Fprintf(errs, "memagent: %v\n", err)
			all = false
		}
	}
	return all
}
