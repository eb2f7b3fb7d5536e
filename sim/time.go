package sim

import (
	"container/heap"
	"time"
)

// Now returns the virtual time since the host was made.
func (h *Host) Now() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Run lets d of virtual time pass: every workload does what it does in it.
func (h *Host) Run(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d < 0 {
		h.misuse("run %v: time does not go back", d)
		return
	}
	end := h.now + d
	for {
		next := end
		if len(h.queue) > 0 {
			next = min(next, h.queue[0].due)
		}
		if h.renew <= next {
			h.now = max(h.now, h.renew)
			h.renewPressure()
			continue
		}
		h.now = next
		if len(h.queue) == 0 || h.queue[0].due >= end {
			return
		}
		j := h.queue[0]
		if at := h.cpus.first(h.now); at > h.now {
			j.due = at
			heap.Fix(&h.queue, j.place)
			continue
		}
		j.work = 0
		after, over := j.program.step(h, j)
		switch {
		case j.finished: // it was killed
		case over:
			h.finish(j)
		default:
			h.cpus.take(h.now, j.work)
			j.due = h.now + after
			j.ready = j.due
			heap.Fix(&h.queue, j.place)
		}
	}
}

func (h *Host) renewPressure() {
	for _, c := range h.groups {
		if c != nil {
			c.some.renew(h.now)
			c.full.renew(h.now)
		}
	}
	h.renew += psiPeriod
}
