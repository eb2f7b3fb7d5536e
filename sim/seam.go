package sim

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/memagent/memagent/memcg"
)

// BeginTick does nothing: no value is kept from one sample to the next.
func (h *Host) BeginTick() {}

// Cgroups appends every cgroup but the root, parents before children.
func (h *Host) Cgroups(dst []memcg.ID) ([]memcg.ID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.fault(OpList, "")
	if f.fails() {
		return dst, f.error("list cgroups")
	}
	return h.root().list(dst), nil
}

func (c *cgroup) list(dst []memcg.ID) []memcg.ID {
	for _, k := range c.kids {
		dst = k.list(append(dst, k.id))
	}
	return dst
}

// find returns the cgroup that an id handed out names; an error of kind
// memcg.ErrGone when it was removed since. An id that never was is misuse.
func (h *Host) find(what string, id memcg.ID) (*cgroup, error) {
	if c := h.byPath[id.Path]; c != nil && c.id == id {
		return c, nil
	}
	if !h.issued[id] {
		return nil, fmt.Errorf("%w: %w", memcg.ErrGone,
			h.misuse("%s %s (inode %d): this host never had such a cgroup", what, id.Path, id.Inode))
	}
	return nil, fmt.Errorf("sim: %s %s: %w: %w", what, id.Path, memcg.ErrGone, syscall.ENODEV)
}

// Forget stops listening to a cgroup. A cgroup that never was is misuse.
func (h *Host) Forget(id memcg.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.issued[id] {
		h.misuse("forget %s (inode %d): this host never had such a cgroup", id.Path, id.Inode)
	}
	delete(h.ear.on, id)
}

// Watch returns a channel that is signalled when a cgroup is made or removed,
// and closed when ctx ends.
func (h *Host) Watch(ctx context.Context) (<-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.fault(OpWatch, ""); f.fails() {
		return nil, f.error("watch cgroups")
	}
	ch := make(chan struct{}, 1)
	h.watchers = append(h.watchers, ch)
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, w := range h.watchers {
			if w == ch {
				h.watchers = append(h.watchers[:i], h.watchers[i+1:]...)
				break
			}
		}
		close(ch)
	})
	return ch, nil
}

func (h *Host) signal() {
	for _, w := range h.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Self returns the cgroup named in the configuration.
func (h *Host) Self() (path string, ok bool) { return h.cfg.Self, h.cfg.Self != "" }

// Writes returns how many writes to memory.reclaim were made.
func (h *Host) Writes() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writes
}

// Reclaim takes memory as writes to memory.reclaim would, in chunks. It moves
// no clock: Took is what the work would have taken, and how long it keeps one
// of the CPUs from the workloads, where their number is given. An end before
// all was done is of kind memcg.ErrPartial; a swappiness that the kernel does
// not take is memcg.ErrUnsupported. A request for nodes takes from these alone,
// unless Config.NoNodeReclaim refuses it. Two requests at once for one cgroup
// are misuse.
func (h *Host) Reclaim(ctx context.Context, r memcg.Reclaim) (o memcg.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.Request = r
	c, err := h.admit(r)
	if err != nil {
		o.Err = err
		return o
	}
	c.inFlight = true
	defer func() { c.inFlight = false }()

	f := h.fault(OpReclaim, r.Cgroup.Path)
	if release := f.block(); release != nil {
		h.writes++
		o.Writes++
		o.Via = via(r)
		h.mu.Unlock()
		<-release
		h.mu.Lock()
	}
	before, nodes := h.account(c), h.nodesOf(c, r)
	o.Err = h.chunks(ctx, c, &o, f)
	h.cpus.take(h.now, o.Took)
	after := h.account(c)
	o.Nodes = h.judgeNodes(c, nodes)
	o.Reclaimed = memcg.Value((after.stolen - before.stolen) * PageSize)
	o.Shrunk = memcg.Value((before.usage - min(before.usage, after.usage)) * PageSize)
	o.SwapOut = memcg.Value((after.swap - min(after.swap, before.swap)) * PageSize)
	o.Demoted = memcg.Absent(memcg.Unsupported)
	if h.kernel.Prints(memcg.StatDemoteDirect) {
		o.Demoted = memcg.Value(0)
	}
	if c.dead {
		o.Reclaimed, o.Shrunk, o.SwapOut, o.Demoted = memcg.Field{}, memcg.Field{}, memcg.Field{}, memcg.Field{}
		o.Nodes = nil
	}
	return o
}

// admit refuses what must not or cannot be done at all.
func (h *Host) admit(r memcg.Reclaim) (*cgroup, error) {
	if h.cfg.ReadOnly {
		return nil, fmt.Errorf("sim: reclaim from %s: %w", r.Cgroup.Path, memcg.ErrReadOnly)
	}
	c, err := h.find("reclaim from", r.Cgroup)
	if err != nil {
		return nil, err
	}
	if c.inFlight {
		return nil, fmt.Errorf("%w: %w", memcg.ErrInvalid,
			h.misuse("reclaim from %s: another request for it is in flight", r.Cgroup.Path))
	}
	if !h.kernel.Reclaim {
		return nil, fmt.Errorf("sim: reclaim from %s: kernel %s has no memory.reclaim: %w: %w",
			r.Cgroup.Path, h.kernel.Name, memcg.ErrUnsupported, syscall.ENOENT)
	}
	if r.OlderThan > 0 {
		return nil, fmt.Errorf("sim: reclaim from %s what is older than %v: %w", r.Cgroup.Path, r.OlderThan, errNoAges)
	}
	if !r.Nodes.Empty() {
		return c, h.admitNodes(r)
	}
	v, passed := r.Swappiness.Get()
	if passed && (!h.kernel.Swappiness || v == memcg.SwappinessMax && !h.kernel.SwappinessMax) {
		return nil, fmt.Errorf("sim: reclaim from %s: kernel %s takes no swappiness=%s: %w: %w",
			r.Cgroup.Path, h.kernel.Name, r.Swappiness, memcg.ErrUnsupported, syscall.EINVAL)
	}
	return c, nil
}

// chunkBytes is the most that one write asks for.
const chunkBytes = 8 << 20

// chunks writes until all is asked for, or there is a reason to stop.
func (h *Host) chunks(ctx context.Context, c *cgroup, o *memcg.Outcome, f *injected) error {
	r := o.Request
	left := r.Bytes / PageSize * PageSize
	if f.fails() {
		left = min(left, f.Done/PageSize*PageSize)
	}
	swappiness := h.swappiness
	if v, ok := r.Swappiness.Get(); ok {
		swappiness = v
	}
	for left > 0 {
		switch {
		case c.dead:
			return fmt.Errorf("sim: reclaim from %s: %w: %w", c.id.Path, memcg.ErrGone, syscall.ENODEV)
		case ctx.Err() != nil:
			return fmt.Errorf("sim: reclaim from %s: %w: %w", c.id.Path, memcg.ErrPartial, context.Cause(ctx))
		case r.Deadline > 0 && o.Took >= r.Deadline:
			return fmt.Errorf("sim: reclaim from %s: %w: over its %v", c.id.Path, memcg.ErrPartial, r.Deadline)
		case c.usage*PageSize <= r.Floor:
			return nil
		}
		chunk := min(left, chunkBytes)
		left -= chunk
		o.Asked += chunk
		o.Writes++
		o.Via = via(r)
		h.writes++
		work := h.write
		if !r.Nodes.Empty() {
			work = h.evictFrom(r.Nodes)
		}
		took, err := work(c, chunk/PageSize, swappiness)
		o.Took += took
		if err != nil {
			return err
		}
	}
	if f.fails() {
		return f.error("reclaim from " + c.id.Path)
	}
	return nil
}

// write is one write(2) to memory.reclaim.
func (h *Host) write(c *cgroup, pages uint64, swappiness int) (took time.Duration, err error) {
	var done uint64
	for vain := 0; done < pages; {
		goal := pages - done
		if h.kernel.Batched {
			goal /= 4
		}
		got := h.shrink(request{
			target: c, nodes: h.everyNode, goal: max(goal, batch), swappiness: swappiness, by: proactive,
		})
		took += h.toil(got)
		done += got.reclaimed
		if got.reclaimed > 0 {
			continue
		}
		if vain++; vain > maxRetries {
			return took, fmt.Errorf("sim: reclaim from %s: %w: %w", c.id.Path, memcg.ErrPartial, syscall.EAGAIN)
		}
	}
	return took, nil
}

type account struct{ stolen, usage, swap uint64 }

func (h *Host) account(c *cgroup) account {
	return account{
		stolen: c.sum(cStealKswapd) + c.sum(cStealDirect) + c.sum(cStealProactive), usage: c.usage, swap: c.swap,
	}
}
