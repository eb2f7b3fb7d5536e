package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/workingset"
)

// guard is the swap guard of one cgroup: memory.swap.max held at what was in swap
// when a stream began to push anon out, so that it takes file instead. The law
// says when (workingset.Intent.SwapGuard), and lets go the moment it could end
// in an OOM kill.
//
// It also guards a policy that forbids swapping while a loan is taken back on a
// kernel whose memory.reclaim takes no swappiness: with no room in swap a bare number
// takes file alone.
type guard struct {
	high uint64 // memory.swap.max of ours, bytes
	held bool   // it holds
	last uint64 // the last value that was asked for
}

// see takes in a sample: a value that is not ours ends the guard, whoever wrote
// it.
func (g *guard) see(s *memcg.Sample, pending bool) {
	if pending || !g.held {
		return
	}
	if b, ok := s.SwapMax.Bytes(); !ok || b != g.high {
		*g = guard{}
	}
}

// wrote takes in what became of a write to memory.swap.max.
func (g *guard) wrote(d Result) {
	switch {
	case d.Setting.Value == "":
		if d.Err == nil {
			*g = guard{}
		}
	case d.Set.Now == d.Setting.Value:
		g.high, g.held = g.last, true
	}
}

// considerGuard pins memory.swap.max or lets it go, as the law asks.
func (c *Core) considerGuard(now time.Time, host *memcg.HostSample, cg *cgroup, s *memcg.Sample, d *workingset.Decision) (held string) {
	g, why := &cg.guard, "swap guard: a stream passes"
	wanted := d.Intent.SwapGuard
	if !wanted && c.guardsRecall(host, cg, s) {
		wanted, why = true, "swap guard: what was lent is taken back"
	}
	switch {
	case g.held && !wanted:
		return c.set(now, cg, memcg.KnobSwapMax, "", "swap guard ends: "+d.Verdict.String())
	case g.held || !wanted:
		return ""
	}
	used, ok := s.SwapCurrent.Get()
	if !ok || s.SwapMax.State() != memcg.Present {
		return "memory.swap.max or memory.swap.current could not be read"
	}
	pin := down(used+host.PageSize-1, host.PageSize)
	if limit, finite := s.SwapMax.Bytes(); finite && limit <= pin {
		return "" // its operator's limit guards it
	}
	g.last = pin
	return c.set(now, cg, memcg.KnobSwapMax, string(memcg.LimitOf(pin).AppendKernel(nil)), why)
}

// guardMax is how near to memory.max nothing is guarded for a recall any more, as
// part of it: there the kernel may need swap before it kills.
const guardMax = 0.95

// guardsRecall reports whether a recall cannot go on without the guard.
func (c *Core) guardsRecall(host *memcg.HostSample, cg *cgroup, s *memcg.Sample) bool {
	current, ok := s.Current.Get()
	return ok && cg.loan.back != keeps && c.cannotSayZero(cg) && swapWritable(host) &&
		float64(current) < guardMax*float64(orUnlimited(s.Max))
}

// cannotSayZero reports whether a policy forbids swapping in a way that this kernel's
// memory.reclaim cannot be told.
func (c *Core) cannotSayZero(cg *cgroup) bool {
	p := cg.law.Swappiness
	return p.Kind == workingset.Fixed && p.Value == 0 && c.swappiness == unsupported
}
