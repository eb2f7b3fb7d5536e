package controller

import (
	"context"

	"github.com/memagent/memagent/memcg"
)

// Host is all that the controller knows of a kernel. The real one is
// cgroupfs.FS, the simulated one is sim.Host; the controller cannot tell them
// apart.
//
// Errors wrap one of the memcg.Err kinds. The loop calls everything but
// Reclaim from one goroutine; Reclaim may be called from several at once, for
// different cgroups.
type Host interface {
	// BeginTick tells the host that a new tick begins: what it caches across
	// the samples of one tick (ancestors' swap limits) is read anew.
	BeginTick()
	// Cgroups appends every cgroup below the mount, parents before children,
	// the root left out. With an error the list holds what could be read.
	Cgroups(dst []memcg.ID) ([]memcg.ID, error)
	// Sample reads all memory files of one cgroup into s. memcg.ErrGone: it
	// no longer exists.
	Sample(id memcg.ID, s *memcg.Sample) error
	// HostSample reads what the host has.
	HostSample(h *memcg.HostSample) error
	// Reclaim asks for memory and blocks until the request is done, cut short
	// by ctx or over its deadline. It judges the outcome by counters.
	Reclaim(ctx context.Context, r memcg.Reclaim) memcg.Outcome
	// Forget lets go of what the host holds open for a cgroup.
	Forget(id memcg.ID)
	// Watch returns a channel that is signalled, without blocking the sender,
	// when cgroups may have come or gone. It ends with ctx.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Self returns the path of the cgroup that memagent itself runs in; ok is
	// false when it is outside what the host shows.
	Self() (path string, ok bool)
	// Writes returns how many write(2) calls were made since the host was
	// opened: the proof that observing writes nothing.
	Writes() uint64
}
