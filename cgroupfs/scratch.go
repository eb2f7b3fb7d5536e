package cgroupfs

import "sync"

// scratchSize holds memory.stat (about 80 lines of 40 bytes) many times over,
// and memory.numa_stat of some 25 nodes. More nodes grow the buffer once.
const scratchSize = 32 << 10

// scratch is what one sampling goroutine reads into.
type scratch struct{ b []byte }

// scratchPool lends out as many buffers as there are goroutines sampling at
// the same time, usually one, and keeps them.
type scratchPool struct {
	mu   sync.Mutex
	free []*scratch
}

func (p *scratchPool) get() *scratch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s
	}
	return &scratch{b: make([]byte, scratchSize)}
}

func (p *scratchPool) put(s *scratch) {
	p.mu.Lock()
	p.free = append(p.free, s)
	p.mu.Unlock()
}
