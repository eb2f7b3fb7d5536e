package controller

import (
	"context"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Host is all that the controller knows of a kernel. The real one is
// cgroupfs.FS, the simulated one is sim.Host; the controller cannot tell them
// apart.
//
// Errors wrap one of the memcg.Err kinds. The loop calls everything but
// Reclaim and Age from one goroutine; those two may be called from several at
// once, for different cgroups.
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
	// Current reads memory.current alone, in bytes: what it costs is one read
	// that makes the kernel sum nothing up. memcg.ErrGone as for Sample; any
	// other error means that it is not known.
	Current(id memcg.ID) (bytes uint64, err error)
	// HostSample reads what the host has.
	HostSample(h *memcg.HostSample) error
	// Generations appends what the multi-gen LRU knows of a cgroup and of all
	// below it: list after list, each oldest generation first. It is of the
	// time of the tick's first call. memcg.ErrUnsupported, memcg.ErrDenied:
	// this host does not tell ages, and the error says what would change that;
	// policies that need none go on without.
	Generations(id memcg.ID, dst []memcg.Generation) ([]memcg.Generation, error)
	// EffectiveMems returns the nodes that a cgroup may use, and those that its
	// parent may (cpuset.mems.effective). memcg.ErrUnsupported: the cgroup has no
	// such file.
	EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error)
	// Reclaim asks for memory and blocks until the request is done, cut short
	// by ctx or over its deadline. It judges the outcome by counters. A request
	// that leaves nothing to do, of less than a page or at its floor, writes
	// nothing; the error, if any, says so.
	Reclaim(ctx context.Context, r memcg.Reclaim) memcg.Outcome
	// Age starts a new generation on every list of a cgroup and of all below
	// it. took is the CPU time that the kernel spends on page tables: who calls it
	// keeps a budget. It blocks for as long, or longer on a busy machine. Errors as for Generations; memcg.ErrPartial when
	// ctx cut it short.
	Age(ctx context.Context, id memcg.ID) (took time.Duration, err error)
	// Forget lets go of what the host holds open for a cgroup.
	Forget(id memcg.ID)
	// Watch returns a channel that is signalled, without blocking the sender,
	// when cgroups may have come or gone. It ends with ctx.
	Watch(ctx context.Context) (<-chan struct{}, error)
	// Listen has Events tell of a cgroup until it is forgotten or gone. An
	// error means only that nothing is heard of it between two samples.
	Listen(id memcg.ID) error
	// Events returns a channel of cgroups that are listened to and whose
	// memory.events changed: at a limit, or out of memory. It is a hint to
	// sample them early, told once however often they change, and its sender
	// never waits for its reader. It ends with ctx. memcg.ErrUnsupported: there
	// are none on this host. One channel may be open at a time.
	Events(ctx context.Context) (<-chan memcg.ID, error)
	// Self returns the path of the cgroup that memagent itself runs in; ok is
	// false when it is outside what the host shows.
	Self() (path string, ok bool)
	// Writes returns how many write(2) calls were made since the host was
	// opened: the proof that observing writes nothing.
	Writes() uint64
}
