package cgroupfs

import (
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
)

const (
	// writePages is how much one write to memory.reclaim asks for. A write cannot be
	// cut short, and while it lasts the removal of its cgroup waits with a lock that
	// every cgroup operation of the host needs (before 7.3). The kernel goes about it
	// in quarters of at least 32 pages (SWAP_CLUSTER_MAX): more at a time only makes
	// it last longer, 14 s for 7 MiB on 7.3.4 where four tasks at their limit
	// reclaimed as well.
	writePages = 4 * 32
	// writePart is the part of memory.current that one write may ask for where that is
	// more: each quarter scans a 4096th of every list at least (DEF_PRIORITY), however
	// little it is for, and what that gives beyond it would be taken again and again.
	writePart = 1024

	// Sizes of a chunk: writes after which it is measured what they took.
	firstChunk = 8 << 20 // bytes: a few ms of clean file pages, well under a second of slow swap
	mostChunk  = 64 << 20
	leastChunk = 128 << 10 // bytes: 32 pages of 4 KiB

	aimedChunk = 50 * time.Millisecond // the longest that a chunk should last
)

// pace is how much is asked of one cgroup at a time. What a cgroup gives in
// 50 ms depends on its mix of memory and on its swap device, so it is learned
// for each and kept from request to request.
type pace struct {
	mu   sync.Mutex
	size uint64 // 0 until learned
}

func (p *pace) chunk() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size == 0 {
		p.size = firstChunk
	}
	return p.size
}

// learn adapts to a chunk of size bytes that took a time: down to what would
// have fitted at once, up by doubling, and only where the chunk was used whole
// and took less than half the time. Chunks are multiples of the least one, so
// that cutting one to whole pages leaves it whole.
func (p *pace) learn(size uint64, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case took > aimedChunk:
		fits := uint64(float64(size) * float64(aimedChunk) / float64(took))
		p.size = max(leastChunk, fits/leastChunk*leastChunk)
	case took < aimedChunk/2 && size >= p.size:
		p.size = min(mostChunk, 2*p.size)
	}
}

// paceOf returns the pace of a cgroup.
func (fs *FS) paceOf(id memcg.ID) *pace {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	p := fs.paces[id]
	if p == nil {
		p = &pace{}
		fs.paces[id] = p
	}
	return p
}
