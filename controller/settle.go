package controller

import (
	"errors"
	"time"

	"github.com/memagent/memagent/memcg"
)

// settle books what came of a request.
func (c *Core) settle(now time.Time, host *memcg.HostSample, o memcg.Outcome) {
	reserved := c.inFlight[o.Request.Cgroup]
	delete(c.inFlight, o.Request.Cgroup)
	swapped, ok := o.SwapOut.Get()
	if !ok {
		swapped = reserved // not measured: take it that all of it was spent
	}
	c.swap.settle(now, reserved, swapped)
	cg, ok := c.cgroups[o.Request.Cgroup]
	if !ok {
		return
	}
	cg.swap.settle(now, reserved, swapped)
	cg.finished(o, host.PageSize)
	v, asked := o.Request.Swappiness.Get()
	switch {
	case c.refusedNodes(now, &o):
	case o.Err == nil || errors.Is(o.Err, memcg.ErrPartial):
		if asked && o.Writes > 0 && o.Via == memcg.ViaReclaim {
			c.swappiness = supported
		}
		c.obeyed(&o)
	case v == memcg.SwappinessMax && errors.Is(o.Err, memcg.ErrUnsupported):
		c.noMax = true
		c.notify.Warn("swappiness-max", o.Err, "anon alone cannot be asked for here; 200 is passed instead, which kernels before 6.16 read as a hint")
	case o.Request.OlderThan > 0 && (errors.Is(o.Err, memcg.ErrUnsupported) || errors.Is(o.Err, memcg.ErrDenied)):
		c.noAges = true
		c.notify.Warn("ages", o.Err, "memory cannot be taken by age here; squeezing in steps instead")
	case errors.Is(o.Err, memcg.ErrUnsupported) && asked && c.swappiness != supported:
		c.swappiness = unsupported
		c.notify.Warn("reclaim-swappiness", o.Err, "this kernel's memory.reclaim takes no swappiness; policies with swappiness 0 are skipped, others reclaim with the host's own balance")
	case errors.Is(o.Err, memcg.ErrUnsupported), errors.Is(o.Err, memcg.ErrDenied):
		cg.held = "memory.reclaim cannot be written: " + o.Err.Error()
		c.notify.Warn("reclaim "+cg.id.Path, o.Err, "this cgroup is only observed from now on")
	case errors.Is(o.Err, memcg.ErrGone):
	default:
		cg.failed(now, c.cfg.Interval)
		c.notify.Warn("reclaim "+cg.id.Path, o.Err, "a request for memory failed")
	}
}

const (
	// disobeyedMost is how many requests with swappiness 0 in a row may be
	// followed by swap-outs before the kernel is taken to ignore it. One can
	// be chance: the kernel's own reclaim swaps at the same time.
	disobeyedMost = 3
	// disobeyedShare is the part of what was taken that must have gone to swap
	// to count, above what a race with a few pages in flight explains.
	disobeyedShare = 0.25
)

// obeyed compares what a request moved with what it asked for: some kernels
// accept a swappiness and do as they like. Where 0 swaps again and again it is
// not used any more, which holds policies that forbid swapping.
func (c *Core) obeyed(o *memcg.Outcome) {
	v, asked := o.Request.Swappiness.Get()
	swapped, okS := o.SwapOut.Get()
	taken, okT := o.Reclaimed.Get()
	if !asked || v != 0 || !okS || !okT || taken == 0 || c.swappiness == unsupported {
		return
	}
	if float64(swapped) <= disobeyedShare*float64(taken) {
		c.disobeyed = 0
		return
	}
	if c.disobeyed++; c.disobeyed >= disobeyedMost {
		c.swappiness = unsupported
		c.notify.Warn("swappiness-disobeyed", nil, "this kernel accepts swappiness 0 and swaps all the same; it is not passed any more, and policies that forbid swapping are skipped")
	}
}
