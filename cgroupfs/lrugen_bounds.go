package cgroupfs

import (
	"errors"
	"math"
	"path"

	"github.com/memagent/memagent/memcg"
)

// evictBounds are what lru_gen must be kept from, in bytes.
type evictBounds struct {
	// spare is what a cgroup below the one of the request has, and those
	// between them, above the protection of memory.min and memory.low. The
	// request's own floor is not part of it.
	spare uint64
	// swap is how much anon the swap limits from the cgroup up, and the
	// host's free swap, let out.
	swap uint64
}

// evictBounds reads the bounds of a cgroup at or below that of a request. What
// cannot be read counts as the tightest bound, what is not there as none.
func (fs *FS) evictBounds(request, cgroup string) evictBounds {
	b := evictBounds{spare: math.MaxUint64, swap: math.MaxUint64}
	buf := make([]byte, 256) // each file is one number
	for p := cgroup; p != "/"; p = path.Dir(p) {
		dir, _, err := fs.openDir(p)
		if err != nil {
			return evictBounds{}
		}
		if isAbove(request, p) {
			b.spare = min(b.spare, fs.spare(dir, buf))
		}
		b.swap = min(b.swap, fs.swapRoomOf(dir, buf))
		_ = fs.k.close(dir)
	}
	var h memcg.HostSample
	free := uint64(0)
	if fs.readMeminfo(&h) == nil {
		free, _ = h.SwapFree.Get()
	}
	b.swap = min(b.swap, free)
	return b
}

// spare returns how far a cgroup is above its protection.
func (fs *FS) spare(dir int, buf []byte) uint64 {
	current, known := fs.limitIn(dir, memoryCurrent, buf).Bytes()
	if !known {
		return 0
	}
	kept := uint64(0)
	for _, f := range []file{memoryMin, memoryLow} {
		l := fs.limitIn(dir, f, buf)
		n, finite := l.Bytes()
		if !finite && l.State() != memcg.Unsupported { // "max", or not to be read
			return 0
		}
		kept = max(kept, n)
	}
	return current - min(current, kept)
}

// swapRoomOf returns what a cgroup's own memory.swap.max lets out.
func (fs *FS) swapRoomOf(dir int, buf []byte) uint64 {
	limit := fs.limitIn(dir, swapMax, buf)
	if limit.IsMax() || limit.State() == memcg.Unsupported {
		return math.MaxUint64
	}
	most, _ := limit.Bytes()
	now, finite := fs.limitIn(dir, swapCurrent, buf).Bytes()
	if !finite {
		return 0
	}
	return most - min(most, now)
}

// limitIn reads one file of a cgroup that holds a number of bytes or "max".
func (fs *FS) limitIn(dir int, f file, buf []byte) memcg.Limit {
	b, _, err := readFileAt(fs.k, dir, fileNames[f], buf)
	switch {
	case err == nil:
		return parseLimitFile(b)
	case errors.Is(err, memcg.ErrUnsupported):
		return memcg.NoLimitFile(memcg.Unsupported)
	}
	return memcg.NoLimitFile(memcg.Missing)
}
