package config

import "fmt"

// High is what may be done with memory.high of a policy's cgroups.
type High struct {
	// Lend raises memory.high above what its operator has set, while the host
	// has memory that nobody needs and the cgroup reads again what it lost for
	// want of it, and takes that back.
	Lend bool
	// AnonGrowth lends also what anon grows by at memory.high, before anything is
	// missed.
	AnonGrowth bool
	// Ceiling is the highest memory.high that is lent up to, as a size or a share
	// of the host's memory. Unset: only the host's reserve binds.
	Ceiling Amount
}

// defaultReserve is what is kept free before anything is lent: a tenth of a host
// is what a new container asks for at once, and more than the kernel's own
// watermarks.
const defaultReserve Percent = 0.1

var highKeys = []key[High]{
	boolKey("lend", "Lend memory that nobody needs: raise memory.high above what its operator has set while the cgroup\n"+
		"reads again and again what it lost, and take it back in time.",
		func(h *High) *bool { return &h.Lend }),
	boolKey("anon_growth", "Lend also for anon that grows at memory.high and would be swapped out there, before it is missed.",
		func(h *High) *bool { return &h.AnonGrowth }),
	withExample("40GiB", scalarKey("ceiling", wantShareOrSize,
		"The highest memory.high to lend up to, a size or a share of the host's memory. Unset: only host.reserve\nbinds.",
		parseAmount(1), func(h *High) *Amount { return &h.Ceiling }, Amount.String)),
}

// checkLending reports what contradicts itself about knobs that are written.
func (r *reader) checkLending(p *Policy, field string) {
	if at, ok := r.sound(field + ".high.ceiling"); ok && !p.High.Lend && !r.bad[field+".high.lend"] {
		r.fault(at, p.High.Ceiling.String(), faultf(ErrConflict, "bounds what is lent, and nothing is"),
			"want lend: true beside it, or no ceiling")
	}
	if at, ok := r.sound(field + ".high.anon_growth"); ok && p.High.AnonGrowth && !p.High.Lend && !r.bad[field+".high.lend"] {
		r.fault(at, true, faultf(ErrConflict, "says what else is lent for, and nothing is lent"),
			"want lend: true beside it, or no anon_growth")
	}
	if at, ok := r.sound(field + ".swap_guard"); ok && p.SwapGuard && p.Law != LawMemagent && !r.bad[field+".law"] {
		r.fault(at, true, faultf(ErrConflict, "law %v never finds a stream to guard against", p.Law),
			fmt.Sprintf("want law %v, or no swap_guard", LawMemagent))
	}
}
