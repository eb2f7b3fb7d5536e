package controller

import (
	"cmp"
	"slices"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/workingset"
)

// What was in vain is not tried again for a while: a move of the law, or a loan. An
// agent that is started again must not begin anew with it, or one that fails again
// and again would try at every start. So it is with swap that was written beyond a
// budget, until time has paid it back. The journal has these cool-downs; the loop
// writes them when they change, at most once in a while, and at the end.

const (
	// coolLend is what the journal calls the cool-down of lending, and coolSwap that
	// of a swap write budget; moves have the names of their intents.
	coolLend = "lend"
	coolSwap = "swap"
	// debtLeast is the debt, as the time that pays it back, from which on it is
	// remembered. A restart forgives less than that, which is less than the agent
	// takes to ask for anything, and the journal is not written for every batch of
	// pages that a request got too many.
	debtLeast = time.Second
)

// movesByName are the moves that have a cool-down.
var movesByName = map[string]workingset.IntentKind{
	workingset.KindMoveAnon.String(): workingset.KindMoveAnon,
	workingset.KindMoveFile.String(): workingset.KindMoveFile,
}

// Rest has a cgroup go on with a cool-down when it is found. It is called before the
// first Track.
func (c *Core) Rest(d journal.Cooldown, now time.Time) {
	c.tape.rested(d, now)
	if d.Cgroup == journal.Host {
		if d.Why == coolSwap {
			c.swap.owe(now, min(d.Until.Sub(now), d.Length))
		}
		return
	}
	if c.rests == nil {
		c.rests = make(map[memcg.ID][]journal.Cooldown)
	}
	c.rests[d.Cgroup] = append(c.rests[d.Cgroup], d)
}

// resume gives a cgroup that was found what an earlier run left for it.
func (c *Core) resume(cg *cgroup, now time.Time) {
	for _, d := range c.rests[cg.id] {
		left := min(d.Until.Sub(now), d.Length)
		if left <= 0 {
			continue
		}
		switch d.Why {
		case coolSwap:
			cg.swap.owe(now, left)
		case coolLend:
			cg.loan.until, cg.loan.cool = now.Add(left), min(max(d.Length, lendCool), lendCoolMost)
		default:
			if kind, ok := movesByName[d.Why]; ok {
				cg.state.Cool(kind, left, d.Length)
			}
		}
	}
	delete(c.rests, cg.id)
}

// Resting returns the cool-downs that hold, in the order of paths: those of the host
// and of watched cgroups, and those of an earlier run whose cgroups were not found yet.
func (c *Core) Resting(now time.Time) (list []journal.Cooldown) {
	owes := func(id memcg.ID, b *budget) {
		if left := b.owes(now); left >= debtLeast {
			list = append(list, journal.Cooldown{Cgroup: id, Until: now.Add(left), Length: left, Why: coolSwap})
		}
	}
	owes(journal.Host, &c.swap)
	for _, cg := range c.cgroups {
		if kind, left, length := cg.state.Cooling(); left > 0 {
			since := now // before the first sample no time has passed for the law
			if !cg.sampledAt.IsZero() {
				since = cg.sampledAt
			}
			list = append(list, journal.Cooldown{Cgroup: cg.id, Until: since.Add(left), Length: length, Why: kind.String()})
		}
		owes(cg.id, &cg.swap)
		if cg.loan.until.After(now) {
			list = append(list, journal.Cooldown{Cgroup: cg.id, Until: cg.loan.until, Length: cg.loan.cool, Why: coolLend})
		}
	}
	for _, rests := range c.rests {
		for _, d := range rests {
			if d.Until.After(now) {
				list = append(list, d)
			}
		}
	}
	slices.SortFunc(list, func(a, b journal.Cooldown) int {
		return cmp.Or(byPath(a.Cgroup, b.Cgroup), cmp.Compare(a.Why, b.Why))
	})
	return list[:min(len(list), journal.MaxCooldowns)]
}
