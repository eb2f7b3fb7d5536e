package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

// readKnob reads a knob of a cgroup, as cgroupfs.FS does.
type readKnob func(memcg.ID, memcg.Knob) (string, error)

// addKnobs says of each plan that enforces what of lending and of the swap guard
// cannot be had: no journal, no such file, no limit to lend above.
func addKnobs(plans []plan, cfg *config.Config, ids []memcg.ID, match matcher, read readKnob) {
	var noJournal error
	for i := range plans {
		p := &cfg.Policies[i]
		if !setsKnobs(cfg, p) {
			continue
		}
		if noJournal == nil {
			noJournal = stateDirTrouble(cfg.StateDir)
		}
		one := &plans[i]
		if noJournal != nil {
			one.Cannot = append(one.Cannot, "no limit is changed, since it could not be put back: "+noJournal.Error())
		}
		mine := matched(p, ids, match)
		if p.High.Lend {
			one.lendsTo(mine, read)
		}
		if p.SwapGuard {
			lacks, _ := count(mine, memcg.KnobSwapMax, read)
			one.lack(lacks, len(mine), memcg.KnobSwapMax, "are not guarded")
		}
	}
}

// setsKnobs reports whether a policy may set a limit that must be put back.
func setsKnobs(cfg *config.Config, p *config.Policy) bool {
	return cfg.Enforces(p) && (p.High.Lend || p.SwapGuard || p.Numa.Mems != config.NumaMemsKeep)
}

func matched(p *config.Policy, ids []memcg.ID, match matcher) (mine []memcg.ID) {
	for _, id := range ids {
		if match(id) == p {
			mine = append(mine, id)
		}
	}
	return mine
}

// lendsTo says to how many cgroups nothing can be lent.
func (p *plan) lendsTo(mine []memcg.ID, read readKnob) {
	lacks, unbounded := count(mine, memcg.KnobHigh, read)
	p.lack(lacks, len(mine), memcg.KnobHigh, "are never lent to")
	if unbounded > 0 {
		p.Differs = append(p.Differs, fmt.Sprintf("%d of %d cgroups have a memory.high of max: there is no limit to lend above", unbounded, len(mine)))
	}
}

func (p *plan) lack(n, of int, k memcg.Knob, what string) {
	if n > 0 {
		p.Cannot = append(p.Cannot, fmt.Sprintf("%d of %d cgroups %s: they have no %s", n, of, what, k))
	}
}

// count returns how many cgroups have no such knob, and of the others those
// without a limit. One that is gone by now counts for neither.
func count(ids []memcg.ID, k memcg.Knob, read readKnob) (lacks, unbounded int) {
	for _, id := range ids {
		switch value, err := read(id, k); {
		case errors.Is(err, memcg.ErrUnsupported):
			lacks++
		case err == nil && value == "max":
			unbounded++
		}
	}
	return lacks, unbounded
}

// stateDirTrouble says why a journal could not be kept in a directory, nil where
// it could. It makes nothing: of a directory that is not there the nearest one
// above it counts.
func stateDirTrouble(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		err := unix.Access(at, unix.W_OK|unix.X_OK)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist) && at != "/":
			continue
		case at == dir:
			return fmt.Errorf("state_dir %s cannot be written: %w; name another one, or have its owner changed", dir, err)
		}
		return fmt.Errorf("state_dir %s cannot be made, %s cannot be written: %w; make it, or name another one", dir, at, err)
	}
}
