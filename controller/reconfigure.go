package controller

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// Reconfigured is what another config changed for the cgroups that were watched,
// each list sorted by path. New ones are found by the next Track.
type Reconfigured struct {
	// Kept have the same policy, under whatever name, and go on as they were.
	Kept []memcg.ID
	// Changed have another policy, or may now be acted on, or no longer: they
	// start anew, and what was set for them is put back first.
	Changed []memcg.ID
	// Released have no policy any more: no request follows, and what was set
	// for them is put back.
	Released []memcg.ID
}

// Reconfigure has the core decide by another config and mode from now on. Swap
// budgets go on where their rates do, so that reading a config again buys
// nothing. What must be put back is handed out by the next steps; what cannot be
// put back stays in the journal, for the end and for memagent restore.
func (c *Core) Reconfigure(cfg *config.Config, mode telemetry.Mode, now time.Time) (r Reconfigured) {
	wasMode := c.mode
	c.cfg, c.mode = cfg, mode
	c.swap.setRate(uint64(cfg.Host.Swap.WriteBudget), now)
	for _, id := range slices.Clone(c.watched) {
		cg, ok := c.cgroups[id]
		if !ok { // gone since
			continue
		}
		who := *cg.who
		policy := c.policyFor(id, &who)
		if policy == nil {
			r.Released = append(r.Released, id)
			c.drop(cg)
			continue
		}
		if samePolicy(cg.policy, policy) {
			cg.policy, cg.law, cg.who = policy, lawPolicy(cfg, policy), who.kept()
			if mode == wasMode || policy.Observe {
				r.Kept = append(r.Kept, id)
				continue
			}
		}
		r.Changed = append(r.Changed, id)
		c.drop(cg)
		c.watch(id, policy, who, now)
		if was := cg.swap; was.limited && policy.Swap.WriteBudget != nil {
			was.setRate(uint64(*policy.Swap.WriteBudget), now)
			c.cgroups[id].swap = was
		}
	}
	c.sortWatched()
	c.tape.configured(c, now)
	return r
}

// samePolicy reports whether two policies do the same, whichever cgroups they
// are for.
func samePolicy(a, b *config.Policy) bool {
	x, y := *a, *b
	x.Name, x.Match, y.Name, y.Match = "", nil, "", nil
	return reflect.DeepEqual(x, y)
}

// watch starts to watch a cgroup.
func (c *Core) watch(id memcg.ID, policy *config.Policy, who who, now time.Time) {
	cg := &cgroup{id: id, who: who.kept(), policy: policy, law: lawPolicy(c.cfg, policy), own: workingset.Own{Known: true}}
	if rate := policy.Swap.WriteBudget; rate != nil {
		cg.swap = newBudget(uint64(*rate), now)
	}
	c.resume(cg, now)
	c.cgroups[id] = cg
}

// sortWatched makes the list of watched cgroups anew.
func (c *Core) sortWatched() {
	c.watched = c.watched[:0]
	for id := range c.cgroups {
		c.watched = append(c.watched, id)
	}
	slices.SortFunc(c.watched, byPath)
	c.placeInTree()
}

// byPath orders cgroups, those of the same path by age.
func byPath(a, b memcg.ID) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Inode, b.Inode))
}

// leavable are the knobs that a policy may have set.
var leavable = [...]memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems}

// leaving is what is still to be put back of a cgroup whose policy went: its
// knobs from number next on.
type leaving struct {
	id   memcg.ID
	next int
	// surplus is reclaimed before memory.high goes back, so that the workload
	// does not meet it at speed.
	surplus memcg.Reclaim
}

// drop forgets a cgroup that goes on without its policy.
func (c *Core) drop(cg *cgroup) {
	surplus, _ := c.surplusOf(cg)
	c.forget(cg.id)
	if !c.leaves(cg.id) && c.noKnobs == "" {
		c.leaving = append(c.leaving, leaving{id: cg.id, surplus: surplus})
	}
}

// leaves reports whether what was set for a cgroup is being put back.
func (c *Core) leaves(id memcg.ID) bool {
	return slices.ContainsFunc(c.leaving, func(l leaving) bool { return l.id == id })
}

// putBackLeaving hands out what is to be put back, one knob of a cgroup at a
// time: also of those that are not watched any more, whatever the mode.
func (c *Core) putBackLeaving() {
	if c.noKnobs != "" {
		c.leaving = c.leaving[:0] // the end puts everything back
	}
	for i := range c.leaving {
		l := &c.leaving[i]
		if len(c.setting) >= setters {
			break
		}
		if c.busy(l.id) || l.next == len(leavable) {
			continue
		}
		c.setting[l.id] = true
		r := Request{Setting: Setting{Cgroup: l.id, Knob: leavable[l.next], Why: "its policy went"}}
		if r.Setting.Knob == memcg.KnobHigh {
			r.Reclaim = l.surplus
		}
		c.settings = append(c.settings, r)
		l.next++
	}
	c.leaving = slices.DeleteFunc(c.leaving, func(l leaving) bool { return l.next == len(leavable) && !c.setting[l.id] })
}
