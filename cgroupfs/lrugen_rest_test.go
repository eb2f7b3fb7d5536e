package cgroupfs

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestAReadingThatTookLongServesSeveralTicks(t *testing.T) {
	root := lruGenTree(t, []string{"a"}, func(func(string) uint64) string { return listingOf(20, "/a", 2) })
	now := time.Unix(1e9, 0)
	slow := &slowReads{linux: &linux{}, wait: func() { now = now.Add(time.Second / 2) }} // of two reads the second finds the end
	host := openHost(t, root, withClock(func() time.Time { return now }), withKernel(slow))
	a := *matched(t, host, "/a")
	for i, tt := range []struct {
		later time.Duration
		anon  uint64
		age   time.Duration // of the oldest generation
	}{
		{0, 2, time.Minute + time.Second},
		{9 * time.Second, 2, time.Minute + 10*time.Second},
		{39*time.Second + 999*time.Millisecond, 2, time.Minute + 49*time.Second + 999*time.Millisecond},
		{time.Millisecond, 5, time.Minute + time.Second},
	} {
		now = now.Add(tt.later)
		host.BeginTick()
		gens, err := host.Generations(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		if gens[0].AnonPages != tt.anon || gens[0].Age != tt.age {
			t.Errorf("tick %d: %d anon pages of age %v, want %d of %v", i, gens[0].AnonPages, gens[0].Age, tt.anon, tt.age)
		}
		writeFile(t, root, lruGenFile, listingOf(20, "/a", 5))
	}
}

// slowReads lets time pass with every read of lru_gen.
type slowReads struct {
	*linux
	wait func()
	lru  int
}

func (k *slowReads) open(dir int, name string, flags int, how resolve) (int, error) {
	fd, err := k.linux.open(dir, name, flags, how)
	if name == lruGenFile {
		k.lru = fd
	}
	return fd, err
}

func (k *slowReads) pread(fd int, b []byte, offset int64) (int, error) {
	if k.lru != 0 && fd == k.lru {
		k.wait()
	}
	return k.linux.pread(fd, b, offset)
}

func (k *slowReads) close(fd int) error {
	if fd == k.lru {
		k.lru = 0
	}
	return k.linux.close(fd)
}

// A walk over the tree costs the copy of a name for each cgroup, for the kernel.
func TestAReadingAllocatesNoMoreThanAWalkForAnyNumberOfCgroups(t *testing.T) {
	allocs := func(n int) float64 {
		cgroups := make([]string, n)
		for i := range cgroups {
			cgroups[i] = "cgroup-with-a-name-" + strconv.Itoa(i)
		}
		root := lruGenTree(t, cgroups, func(func(string) uint64) string {
			var b strings.Builder
			for i, c := range cgroups {
				b.WriteString(listingOf(uint64(100+i), "/"+c, 1))
			}
			return b.String()
		})
		host := openHost(t, root, atNoon())
		last := *matched(t, host, "/"+cgroups[n-1])
		var gens []memcg.Generation
		read := func() {
			var err error
			host.BeginTick()
			if gens, err = host.Generations(last, gens[:0]); err != nil || len(gens) != 3 {
				t.Fatal(gens, err)
			}
		}
		read()
		read() // two listings take turns
		var ids, spare []memcg.ID
		walk := func() {
			var err error
			ids, spare = spare, ids
			if ids, err = host.Cgroups(ids[:0]); err != nil {
				t.Fatal(err)
			}
		}
		walk()
		walk()
		return testing.AllocsPerRun(10, read) - testing.AllocsPerRun(10, walk)
	}
	// The walker comes from a pool that may have lost it, with all its buffers.
	const pooled = 25
	if few, many := allocs(10), allocs(300); many > few+pooled {
		t.Errorf("%v allocations beyond the walk for 10 cgroups, %v for 300", few, many)
	}
}
