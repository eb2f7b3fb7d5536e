package sim

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/memagent/memagent/memcg"
)

// ReadKnob returns what a knob of a cgroup holds, as its file prints it.
func (h *Host) ReadKnob(id memcg.ID, k memcg.Knob) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := "read " + string(k) + " of " + id.Path
	if f := h.fault(OpReadKnob, id.Path); f.fails() {
		return "", f.error(what)
	}
	c, err := h.knobOf(what, id, k)
	if err != nil {
		return "", err
	}
	switch k {
	case memcg.KnobHigh:
		return shown(c.limits.High).String(), nil
	case memcg.KnobSwapMax:
		return shown(c.limits.SwapMax).String(), nil
	}
	return c.limits.Mems.String(), nil
}

// knobOf finds a cgroup that has a knob.
func (h *Host) knobOf(what string, id memcg.ID, k memcg.Knob) (*cgroup, error) {
	if !k.Known() {
		return nil, fmt.Errorf("sim: %s: %w: not one of the files that are written", what, memcg.ErrInvalid)
	}
	c, err := h.find(what, id)
	if err != nil {
		return nil, err
	}
	lacks := c.parent == nil || k == memcg.KnobHigh && shown(c.limits.High).State() != memcg.Present ||
		k == memcg.KnobSwapMax && shown(c.limits.SwapMax).State() != memcg.Present ||
		k == memcg.KnobMems && h.cfg.NoCpuset
	if lacks {
		return nil, fmt.Errorf("sim: %s: %w: %w", what, memcg.ErrUnsupported, syscall.ENOENT)
	}
	return c, nil
}

// WriteKnob writes a knob as the kernel takes it: limits are rounded down to
// pages, memory.high below what is used is reclaimed down to at once where the
// kernel does not know O_NONBLOCK there, and what a cgroup has on nodes that
// cpuset.mems no longer allows moves to those it does. It moves no clock.
func (h *Host) WriteKnob(ctx context.Context, id memcg.ID, k memcg.Knob, value string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := "write " + strconv.Quote(value) + " to " + string(k) + " of " + id.Path
	set, err := h.knobSetter(what, k, value)
	if err != nil {
		return err
	}
	switch {
	case h.cfg.ReadOnly:
		return fmt.Errorf("sim: %s: %w", what, memcg.ErrReadOnly)
	case id.Path == "/" || h.cfg.Self == id.Path || strings.HasPrefix(h.cfg.Self, id.Path+"/"):
		return fmt.Errorf("sim: %s: %w: the root, the agent's own cgroup and those above it are never written", what, memcg.ErrDenied)
	case ctx.Err() != nil:
		return fmt.Errorf("sim: %s: %w: %w", what, memcg.ErrPartial, context.Cause(ctx))
	}
	f := h.fault(OpWriteKnob, id.Path)
	c, err := h.knobOf(what, id, k)
	if err != nil {
		return err
	}
	h.writes++
	if f.fails() {
		return f.error(what)
	}
	if err := set(c); err != nil {
		return err
	}
	if release := f.block(); release != nil {
		h.mu.Unlock()
		<-release
		h.mu.Lock()
	}
	return nil
}

// knobSetter reads a value and returns what writing it does.
func (h *Host) knobSetter(what string, k memcg.Knob, value string) (func(*cgroup) error, error) {
	bad := func(why string) error { return fmt.Errorf("sim: %s: %w: %s", what, memcg.ErrInvalid, why) }
	switch k {
	case memcg.KnobMems:
		nodes, err := memcg.ParseNodeMask(value)
		if err != nil || strings.ContainsRune(value, '\n') {
			return nil, bad("not a list of nodes")
		}
		return func(c *cgroup) error { return h.setMems(what, c, nodes) }, nil
	case memcg.KnobHigh, memcg.KnobSwapMax:
		l := memcg.Unlimited()
		if value != "max" {
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil || value[0] == '+' {
				return nil, bad(`neither a number of bytes nor "max"`)
			}
			l = memcg.LimitOf(n / PageSize * PageSize)
		}
		return func(c *cgroup) error { h.setLimit(c, k, l); return nil }, nil
	}
	return nil, bad("not one of the files that are written")
}

func (h *Host) setLimit(c *cgroup, k memcg.Knob, l memcg.Limit) {
	if k == memcg.KnobSwapMax {
		c.limits.SwapMax = l
		return
	}
	c.limits.High = l
	if h.kernel.HighNonblock {
		return
	}
	for vain := 0; c.usage > limitPages(l) && vain <= maxRetries; {
		if h.shrinkAll(c, c.usage-limitPages(l), direct).reclaimed == 0 {
			vain++
		}
	}
}

func (h *Host) setMems(what string, c *cgroup, nodes memcg.NodeMask) error {
	switch {
	case !nodes.Without(h.withMemory).Empty():
		return fmt.Errorf("sim: %s: %w: %w", what, memcg.ErrInvalid, syscall.EINVAL)
	case nodes.Empty() && !c.limits.Mems.Empty() && c.procs > 0 && !h.kernel.MemsEmptied:
		return fmt.Errorf("sim: %s: %w: %w", what, memcg.ErrInvalid, syscall.ENOSPC)
	}
	c.limits.Mems = nodes
	all := c.subtree(nil)
	before := make([]memcg.NodeMask, len(all))
	for i, g := range all {
		before[i] = g.allowed
	}
	c.grant(c.parent.allowed)
	for i, g := range all {
		for id := range before[i].Without(g.allowed).All {
			if n, ok := h.nodeIndex(id); ok {
				h.migrate(g, n)
			}
		}
	}
	return nil
}

// migrate moves a cgroup's private memory off a node, to the nearest one that
// it may use and that has room; where none has, it stays. The kernel moves
// mapped files too, and leaves the rest of the cache where it is.
func (h *Host) migrate(c *cgroup, from int) {
	for _, l := range []lru{inactiveAnon, activeAnon, unevictable} {
		// From the tail, each to the head of its new list: the order stays.
		for i := c.vecs[from].lists[l].tail; i != 0; {
			next := h.arena.pages[i].prev
			to, ok := h.roomAbove(h.nodes[from].order, c, func(n *node) uint64 { return n.low / 2 })
			if !ok {
				return
			}
			h.unlist(i)
			h.enlist(i, c, to)
			i = next
		}
	}
}

// EffectiveMems returns the nodes that a cgroup and its parent may use.
func (h *Host) EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := h.knobOf("read cpuset.mems.effective of "+id.Path, id, memcg.KnobMems)
	if err != nil {
		return own, parent, err
	}
	return c.allowed, h.byPath[path.Dir(id.Path)].allowed, nil
}
