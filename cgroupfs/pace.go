package cgroupfs

import (
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Sizes of one write to memory.reclaim. A write cannot be cut short, and while
// it lasts the removal of its cgroup waits with a lock that every cgroup
// operation of the host needs (before 7.3), so its time is what is aimed at.
// Many writes of 512 KiB instead make a hot set slower on 6.12: docs/performance.md,
// squeeze.
const (
	firstChunk = 8 << 20 // bytes: a few ms of clean file pages, well under a second of slow swap
	mostChunk  = 64 << 20
	leastChunk = 128 << 10 // bytes: 32 pages of 4 KiB, what the kernel reclaims at a time (SWAP_CLUSTER_MAX)

	aimedWrite = 50 * time.Millisecond // the longest that a write should last
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

// learn adapts to a write of size bytes that took a time: down to what would
// have fitted at once, up by doubling, and only where the chunk was used whole
// and took less than half the time. Chunks are multiples of the least one, so
// that cutting one to whole pages leaves it whole.
func (p *pace) learn(size uint64, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case took > aimedWrite:
		fits := uint64(float64(size) * float64(aimedWrite) / float64(took))
		p.size = max(leastChunk, fits/leastChunk*leastChunk)
	case took < aimedWrite/2 && size >= p.size:
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
