package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/memagent/memagent/memcg"
)

func TestSampleAllocatesNothing(t *testing.T) {
	root := fixtureCopy(t, "", append(fullCgroup(t, "sys/fs/cgroup/a/b/app"),
		"sys/fs/cgroup/a/memory.swap.max", "max\n", "sys/fs/cgroup/a/memory.swap.current", "0\n")...)
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/a/b/app")
	var s memcg.Sample
	if n := testing.AllocsPerRun(2*recheck, func() {
		fs.BeginTick()
		if err := fs.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := fs.Current(id); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in a reading of memory.current", n)
	}
}

func TestBeyondTheBudgetFilesAreOpenedForEachReading(t *testing.T) {
	root := fixtureCopy(t, "", append(fullCgroup(t, "sys/fs/cgroup/a"), fullCgroup(t, "sys/fs/cgroup/b")...)...)
	fs := mustOpen(t, root, withBudget(5, 100))
	ids := []memcg.ID{idOf(t, fs, "/a"), idOf(t, fs, "/b")}
	before := openDescriptors(t)
	for range 3 {
		for _, id := range ids {
			var s memcg.Sample
			if err := fs.Sample(id, &s); err != nil || s.SwapEvents.Fail != memcg.Value(2) || s.MemsState != memcg.Present {
				t.Fatalf("%v: fail %v, mems %v, %v", id, s.SwapEvents.Fail, s.MemsState, err)
			}
		}
	}
	// Directories are kept regardless: of both cgroups and of the root.
	if got := openDescriptors(t) - before; got > 5+3 {
		t.Errorf("%d descriptors kept", got)
	}
	for _, id := range ids {
		fs.Forget(id)
	}
	if got := openDescriptors(t) - before; got != 0 {
		t.Errorf("%d descriptors left", got)
	}
	if files, folders := fs.budget.Load(), fs.folders.Load(); files != 5 || folders != 100 {
		t.Errorf("%d files and %d directories may be kept", files, folders)
	}
}

func TestWithMoreCgroupsThanDescriptorsEachIsReadAllTheSame(t *testing.T) {
	const cgroups = 40
	var files []string
	for i := range cgroups {
		files = append(files, fullCgroup(t, fmt.Sprintf("sys/fs/cgroup/c%d", i))...)
	}
	root := fixtureCopy(t, "", files...)
	fs := mustOpen(t, root, withBudget(5, 10))
	before := openDescriptors(t)
	var ids []memcg.ID
	for i := range cgroups {
		ids = append(ids, idOf(t, fs, fmt.Sprintf("/c%d", i)))
	}
	for range 3 {
		for _, id := range ids {
			var s memcg.Sample
			if err := fs.Sample(id, &s); err != nil || !s.Current.Known() || s.MemsState != memcg.Present {
				t.Fatalf("%v: %v, %v", id, s.Current, err)
			}
			if _, err := fs.Current(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := openDescriptors(t) - before; got > 5+10 {
		t.Errorf("%d descriptors kept", got)
	}
	// What is not kept open is proved anew: another cgroup at the path is no
	// longer the one that was asked for.
	last := ids[cgroups-1]
	dir := root + "/sys/fs/cgroup" + last.Path
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	var s memcg.Sample
	if err := fs.Sample(last, &s); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("a cgroup with another inode: %v", err)
	}
	for _, id := range ids {
		fs.Forget(id)
	}
	if files, folders := fs.budget.Load(), fs.folders.Load(); files != 5 || folders != 10 {
		t.Errorf("%d files and %d directories may be kept", files, folders)
	}
}

func TestFilesAreKeptWithinABoundWhateverTheLimitOfDescriptorsIs(t *testing.T) {
	fs := mustOpen(t, fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/a")...))
	if got := fs.budget.Load(); got < 1 || got > mostFiles {
		t.Errorf("%d files may be kept", got)
	}
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestAFileLargerThanTheBufferIsReadWhole(t *testing.T) {
	var b strings.Builder
	for _, key := range []string{"anon", "file"} {
		b.WriteString(key)
		for n := range 1024 {
			fmt.Fprintf(&b, " N%d=9223372036854775807", n)
		}
		b.WriteString("\n")
	}
	for size := scratchSize - 1; size <= scratchSize+1; size++ {
		root := fixtureCopy(t, "", "sys/fs/cgroup/p/memory.stat", "anon 1\n"+strings.Repeat("x", size-len("anon 1\n")-len("\nfile 2"))+"\nfile 2",
			"sys/fs/cgroup/p/memory.numa_stat", b.String())
		s := sampleOf(t, root, "/p")
		if s.Stat.Get(memcg.StatFile) != memcg.Value(2) {
			t.Errorf("%d bytes: the end was cut off", size)
		}
		if len(s.Nodes) != 1024 || s.Nodes[1023].Get(memcg.NodeFile) != memcg.Value(1<<63-1) {
			t.Errorf("%d nodes", len(s.Nodes))
		}
	}
}

func TestSamplesRunInParallel(t *testing.T) {
	var files []string
	for i := range 8 {
		files = append(files, fullCgroup(t, fmt.Sprintf("sys/fs/cgroup/s/c%d", i))...)
	}
	root := fixtureCopy(t, "", append(files, "sys/fs/cgroup/cgroup.controllers", "memory")...)
	fs := mustOpen(t, root)
	done := make(chan error)
	for g := range 4 {
		go func() {
			var s memcg.Sample
			for i := range 200 {
				id, err := fs.Lookup(fmt.Sprintf("/s/c%d", (i+g)%8))
				if err == nil {
					err = fs.Sample(id, &s)
				}
				if i%16 == 0 {
					fs.BeginTick()
					fs.Forget(id)
				}
				if err != nil && !errors.Is(err, memcg.ErrGone) {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
