package sim

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// processors are the CPUs of a host that has a number of them. Work waits for
// the one that is free first, in the order in which it became ready; without
// any there is one for everybody.
type processors struct {
	free []time.Duration // when each is done with what it has
}

// first returns when work that is ready at now can begin.
func (p *processors) first(now time.Duration) time.Duration {
	if len(p.free) == 0 {
		return now
	}
	return max(now, p.free[p.next()])
}

// take has the CPU that is free first work for d from now on, or from when it
// is free.
func (p *processors) take(now, d time.Duration) {
	if len(p.free) == 0 || d <= 0 {
		return
	}
	i := p.next()
	p.free[i] = max(now, p.free[i]) + d
}

func (p *processors) next() int {
	best := 0
	for i, at := range p.free {
		if at < p.free[best] {
			best = i
		}
	}
	return best
}

// worksOnCPU reports whether bringing a page of a kind back keeps a CPU busy:
// decompression does, waiting for a device does not.
func (h *Host) worksOnCPU(kind int) bool {
	return kind == anonKind && (h.swapClass == memcg.SwapZram || h.swapClass == memcg.SwapZswap)
}
