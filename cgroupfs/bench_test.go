package cgroupfs

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// BenchmarkSample and BenchmarkBarePread read the same files of one cgroup, so
// that their ratio is what finding, parsing and knowing absence cost on top of
// the system calls. On plain files the kernel's own share is missing: on
// cgroupfs the same difference stands against much slower reads.

func BenchmarkSample(b *testing.B) {
	root := fixtureCopy(b, "", fullCgroup(b, "sys/fs/cgroup/app")...)
	fs := mustOpen(b, root)
	id := idOf(b, fs, "/app")
	var s memcg.Sample
	b.ReportAllocs()
	for b.Loop() {
		fs.BeginTick()
		if err := fs.Sample(id, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBarePread(b *testing.B) {
	root := fixtureCopy(b, "", fullCgroup(b, "sys/fs/cgroup/app")...)
	var fds []int
	for _, name := range fileNames {
		fd, err := unix.Open(filepath.Join(root, "sys/fs/cgroup/app", name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer unix.Close(fd)
		fds = append(fds, fd)
	}
	buf := make([]byte, scratchSize)
	b.ReportAllocs()
	for b.Loop() {
		for _, fd := range fds {
			if _, err := unix.Pread(fd, buf, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkParseStat(b *testing.B) {
	content := fixture(b, "c02/t0/sys/fs/cgroup/app.slice/memory.stat")
	var s memcg.Stats
	for b.Loop() {
		parseStat(content, &s)
	}
}

func BenchmarkParseNumaStat(b *testing.B) {
	content := fixture(b, "c07/v2/sys/fs/cgroup/pod/memory.numa_stat")
	var nodes []memcg.NodeStats
	for b.Loop() {
		nodes, _ = parseNumaStat(content, nodes)
	}
}
