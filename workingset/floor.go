package workingset

import (
	"math"

	"github.com/memagent/memagent/memcg"
)

// floor is what must stay of a cgroup, and how much swap may still take.
type floor struct {
	bytes uint64 // max(policy floor, memory.min + unreclaimable)
	stuck uint64 // of these, anon that swap cannot take
	room  uint64 // bytes of anon that may still go out
	// hostRoom is the host's part of room; limited is false where the host has
	// no swap at all, so that a request cannot swap whatever it asks for.
	hostRoom  uint64
	swapThere bool
}

// floorOf computes the floor:
//
//	floor = max(policy floor, memory.min + unreclaimable)
//	unreclaimable = kernel + unevictable + dirty + writeback + anon that swap cannot take
//
// Sizes that a kernel does not print count as 0 only where something else
// covers them. memory.stat lags behind memory.current by up to two seconds, so
// the floor is not exact; every doubt makes it higher, because memory kept too
// long is cheap and memory asked for in vain is not. ok is false when
// memory.current, anon, file or memory.min could not be read.
func floorOf(s *memcg.Sample, h *memcg.HostSample, p *Policy) (f floor, why memcg.State, ok bool) {
	current := s.Current
	anon, file := s.Stat.Get(memcg.StatAnon), s.Stat.Get(memcg.StatFile)
	if sum := memcg.Sum(current, anon, file); !sum.Known() {
		return floor{}, sum.State(), false
	}
	var protected uint64
	switch {
	case s.Min.IsMax():
		protected = math.MaxUint64
	case s.Min.State() == memcg.Present:
		protected, _ = s.Min.Bytes()
	case s.Min.State() != memcg.Unsupported:
		return floor{}, s.Min.State(), false
	}

	swapRoom(&f, s, h, p)
	backed := swapBacked(&s.Stat)
	switch {
	case p.Swappiness.neverSwaps():
		f.stuck = backed
	case backed > f.room:
		f.stuck = backed - f.room
	}
	keep := addAll(protected, kernelMemory(s), f.stuck,
		known(s.Stat.Get(memcg.StatUnevictable)),
		known(s.Stat.Get(memcg.StatFileDirty)),
		known(s.Stat.Get(memcg.StatFileWriteback)))
	f.bytes = max(p.Squeeze.Floor, keep)
	return f, memcg.Present, true
}

// kernelMemory is what the kernel itself holds on the cgroup's behalf, without
// the slab that shrinkers give back (case c66). Before 5.18 there is no
// "kernel" key, and some kernels print 0 for it; what memory.current holds
// beyond anon and file is counted then (case c03). The larger of both is taken:
// the difference also covers what no key names.
func kernelMemory(s *memcg.Sample) uint64 {
	current, _ := s.Current.Get()
	lru := addAll(known(s.Stat.Get(memcg.StatAnon)), known(s.Stat.Get(memcg.StatFile)))
	named := addAll(known(s.Stat.Get(memcg.StatKernel)), known(s.Stat.Get(memcg.StatSock)), known(s.Stat.Get(memcg.StatHugetlb)))
	return less(max(named, less(current, lru)), known(s.Stat.Get(memcg.StatSlabReclaimable)))
}

// swapBacked is what can only leave by way of swap: the anon lists, which hold
// tmpfs and shared memory too, though "file" counts those (case c38).
func swapBacked(st *memcg.Stats) uint64 {
	lists := memcg.Sum(st.Get(memcg.StatInactiveAnon), st.Get(memcg.StatActiveAnon))
	if v, ok := lists.Get(); ok {
		return v
	}
	return addAll(known(st.Get(memcg.StatAnon)), known(st.Get(memcg.StatShmem)))
}

// swapRoom fills in how much anon may still go out: the tightest of the swap
// limits on the way to the root (case c52) and of the host's free swap less
// what is kept free (case c53). What could not be read is no room (case c22).
func swapRoom(f *floor, s *memcg.Sample, h *memcg.HostSample, p *Policy) {
	free, _ := h.SwapFree.Get()
	total, _ := h.SwapTotal.Get()
	f.swapThere = free > 0
	f.hostRoom = less(free, bytesOf(p.SwapKeepFree*float64(total)))
	f.room = f.hostRoom
	switch {
	case s.SwapRoom.State() != memcg.Present:
		f.room = 0
	case !s.SwapRoom.IsMax():
		own, _ := s.SwapRoom.Bytes()
		f.room = min(f.room, own)
	}
}

// known returns a field's value, and 0 for one that is absent. Only for sizes
// whose absence something else makes up for.
func known(f memcg.Field) uint64 {
	v, _ := f.Get()
	return v
}

// less returns a - b, and 0 where b is larger.
func less(a, b uint64) uint64 {
	if b >= a {
		return 0
	}
	return a - b
}

// addAll adds without wrapping around.
func addAll(vs ...uint64) uint64 {
	var sum uint64
	for _, v := range vs {
		if sum+v < sum {
			return math.MaxUint64
		}
		sum += v
	}
	return sum
}
