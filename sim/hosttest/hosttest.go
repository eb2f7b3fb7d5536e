package hosttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Host is the controller's seam, method for method. It is written down again
// because this package sits below the controller; a test beside the simulated
// host holds the two together.
type Host interface {
	BeginTick()
	Cgroups(dst []memcg.ID) ([]memcg.ID, error)
	Sample(id memcg.ID, s *memcg.Sample) error
	Current(id memcg.ID) (bytes uint64, err error)
	EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error)
	HostSample(h *memcg.HostSample) error
	Generations(id memcg.ID, dst []memcg.Generation) ([]memcg.Generation, error)
	Reclaim(ctx context.Context, r memcg.Reclaim) memcg.Outcome
	Age(ctx context.Context, id memcg.ID) (took time.Duration, err error)
	Forget(id memcg.ID)
	Watch(ctx context.Context) (<-chan struct{}, error)
	Listen(id memcg.ID) error
	Events(ctx context.Context) (<-chan memcg.ID, error)
	Self() (path string, ok bool)
	Writes() uint64
}

// Bench is a host to be tested and the hands that the suite needs.
type Bench struct {
	Host Host
	// Observer is the same host opened for observing only.
	Observer Host
	// Busy is a cgroup with a process in it and at least 4 MiB of memory that
	// reclaim can take and that nobody touches while the suite runs.
	Busy string
	// Make and Remove create and remove an empty cgroup.
	Make, Remove func(t testing.TB, path string)
	// Fresh is the path of a cgroup that does not exist and that Make can
	// make.
	Fresh string
	// Swappiness: memory.reclaim takes one here.
	Swappiness bool
}

// Run tests a host. mk is called once for every test and must give a host as
// it is when just opened.
func Run(t *testing.T, mk func(*testing.T) Bench) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, mk(t)) })
	}
}

type check struct {
	name string
	run  func(*testing.T, Bench)
}

var checks = []check{
	{"parents come before children and the root is left out", parentsFirst},
	{"a list is appended to what was there", listAppends},
	{"a sample says of every key what it is", sampleIsComplete},
	{"nothing of an earlier sample is left", sampleOverwrites},
	{"memory.current alone is what a sample says", currentAlone},
	{"counters do not go back", countersGrow},
	{"a cgroup that was removed is gone", removedIsGone},
	{"a path that comes back is another cgroup", pathComesBack},
	{"a forgotten cgroup can be sampled again", forgetAndSample},
	{"the host has memory on ascending nodes", hostSample},
	{"watching hears of a new cgroup", watchHears},
	{"less than a page is nothing", lessThanAPage},
	{"reclaim is judged by counters", reclaimJudged},
	{"reclaim stops at the floor", reclaimFloor},
	{"reclaim that was cut short says so", reclaimCut},
	{"reclaim from a gone cgroup says so", reclaimGone},
	{"reclaim without swap leaves anon alone", reclaimFileOnly},
	{"reclaim by node keeps to the nodes, or it is said why not", reclaimByNode},
	{"reclaim from a node without memory frees nothing", reclaimNoNode},
	{"generations are listed oldest first, or it is said why not", generationsInOrder},
	{"aging is counted, and is not for observers", agingAddsGenerations},
	{"an observer writes nothing", observerWritesNothing},
}

func (b *Bench) list(t *testing.T) []memcg.ID {
	t.Helper()
	ids, err := b.Host.Cgroups(nil)
	if err != nil {
		t.Fatalf("Cgroups: %v", err)
	}
	return ids
}

func (b *Bench) find(t *testing.T, path string) memcg.ID {
	t.Helper()
	for _, id := range b.list(t) {
		if id.Path == path {
			return id
		}
	}
	t.Fatalf("Cgroups does not list %s", path)
	return memcg.ID{}
}

func (b *Bench) sample(t *testing.T, id memcg.ID) *memcg.Sample {
	t.Helper()
	var s memcg.Sample
	b.Host.BeginTick()
	if err := b.Host.Sample(id, &s); err != nil {
		t.Fatalf("Sample(%v): %v", id, err)
	}
	return &s
}

func value(t *testing.T, what string, f memcg.Field) uint64 {
	t.Helper()
	v, ok := f.Get()
	if !ok {
		t.Fatalf("%s is %v", what, f)
	}
	return v
}

func wantKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v, want one of kind %q", what, err, kind)
	}
}

// patience is how long the suite waits for what must come by itself.
const patience = 10 * time.Second
