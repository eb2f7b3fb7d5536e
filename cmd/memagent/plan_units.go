package main

import (
	"context"
	"fmt"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

// unitFinder tells which unit of systemd a cgroup is, as units.Knobs does.
type unitFinder interface {
	UnitOf(ctx context.Context, id memcg.ID) (name string, err error)
	Settable(ctx context.Context) error
}

// addUnits says of each plan that sets limits of units by their properties why that
// cannot be done, and which cgroups are no units and have their files written.
func addUnits(ctx context.Context, plans []plan, cfg *config.Config, ids []memcg.ID, match matcher, find unitFinder) {
	if cfg.Host.Units != config.UnitsByProperty {
		return
	}
	for i := range plans {
		p := &cfg.Policies[i]
		if !setsKnobs(cfg, p) {
			continue
		}
		one := &plans[i]
		if err := find.Settable(ctx); err != nil {
			one.Cannot = append(one.Cannot, "no limit of a unit is changed: "+err.Error())
			continue
		}
		mine, files := matched(p, ids, match), 0
		for _, id := range mine {
			name, err := find.UnitOf(ctx, id)
			if err != nil {
				one.Cannot = append(one.Cannot, "no limit of a unit is changed: "+err.Error())
				break
			}
			if name == "" {
				files++
			}
		}
		if files > 0 {
			one.Differs = append(one.Differs, fmt.Sprintf("%d of %d cgroups are no units of systemd: their files are written", files, len(mine)))
		}
	}
}
