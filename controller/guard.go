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
	g := &cg.guard
	switch {
	case g.held && !d.Intent.SwapGuard:
		return c.set(now, cg, memcg.KnobSwapMax, "", "swap guard ends: "+d.Verdict.String())
	case g.held || !d.Intent.SwapGuard:
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
	return c.set(now, cg, memcg.KnobSwapMax, string(memcg.LimitOf(pin).AppendKernel(nil)), "swap guard: a stream passes")
}
