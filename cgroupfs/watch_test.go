package cgroupfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// awaitSignal blocks until the watch signals.
func awaitSignal(t *testing.T, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-changed:
		if !open {
			t.Fatalf("the watch ended before: %s", what)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no signal: %s", what)
	}
}

func TestWatchSignalsWhatComesAndGoes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	root := cgroupTree(t, "a", "a/deep")
	mount := filepath.Join(root, "sys/fs/cgroup")
	host := openHost(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, err := host.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Each step is taken after the signal of the one before, so that no two
	// are one signal.
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a cgroup at the top", func() error { return os.Mkdir(filepath.Join(mount, "b"), 0o777) }},
		{"a child of a cgroup that was there", func() error { return os.Mkdir(filepath.Join(mount, "a/deep/new"), 0o777) }},
		{"a child of a cgroup that is new", func() error { return os.Mkdir(filepath.Join(mount, "b/c"), 0o777) }},
		{"a grandchild", func() error { return os.Mkdir(filepath.Join(mount, "b/c/d"), 0o777) }},
		{"a removal", func() error { return os.Remove(filepath.Join(mount, "b/c/d")) }},
		{"another removal", func() error { return os.Remove(filepath.Join(mount, "b/c")) }},
		{"the same name again", func() error { return os.Mkdir(filepath.Join(mount, "b/c"), 0o777) }},
		{"a child below the same name", func() error { return os.Mkdir(filepath.Join(mount, "b/c/d"), 0o777) }},
		{"a move", func() error { return os.Rename(filepath.Join(mount, "b"), filepath.Join(mount, "moved")) }},
		{"a child below what moved", func() error { return os.Mkdir(filepath.Join(mount, "moved/c/d/e"), 0o777) }},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		awaitSignal(t, changed, step.what)
		if step.what == "a move" {
			// It is two events, which one read may part.
			if err := os.Mkdir(filepath.Join(mount, "after"), 0o777); err != nil {
				t.Fatal(err)
			}
			awaitSignal(t, changed, "after a move")
		}
	}
	cancel()
	for range changed { // closed when the watch has ended
	}
}

func TestWatchNeverWaitsForItsReader(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	root := cgroupTree(t, "a")
	mount := filepath.Join(root, "sys/fs/cgroup")
	ctx, cancel := context.WithCancel(t.Context())
	changed, err := openHost(t, root).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 { // nobody takes a signal meanwhile
		if err := os.Mkdir(filepath.Join(mount, "a", strconv.Itoa(i)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	awaitSignal(t, changed, "many cgroups")
	cancel()
	for range changed {
	}
}

func TestWatchIgnoresFiles(t *testing.T) {
	root := cgroupTree(t, "a")
	host := openHost(t, root)
	w := &treeWatch{fs: host, paths: map[int32]string{1: "/"}, known: map[memcg.ID]bool{}}
	if w.handle(rawEvent(1, unix.IN_CREATE, "file")) {
		t.Error("a file counts as a change of the tree")
	}
	if !w.handle(rawEvent(1, unix.IN_DELETE|unix.IN_ISDIR, "dir")) {
		t.Error("a removed directory does not count")
	}
	if w.handle(rawEvent(1, unix.IN_IGNORED, "")) || len(w.paths) != 0 {
		t.Error("a watch that has ended is kept")
	}
	if !w.handle([]byte{1, 2, 3}) {
		t.Error("half an event does not count as a change")
	}
}

func TestWatchLooksAtEverythingAfterLostEvents(t *testing.T) {
	root := cgroupTree(t, "a", "a/b")
	host := openHost(t, root)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	w := &treeWatch{fs: host, paths: map[int32]string{}, known: map[memcg.ID]bool{},
		watch: func(path string) (int, error) { return unix.InotifyAddWatch(fd, path, watchMask) }}
	if !w.handle(rawEvent(-1, unix.IN_Q_OVERFLOW, "")) {
		t.Error("lost events do not count as a change")
	}
	if len(w.paths) != 3 {
		t.Errorf("watches %v, want the root, /a and /a/b", w.paths)
	}
}

func TestRunningOutOfWatchesIsToldOnce(t *testing.T) {
	root := cgroupTree(t, "a", "b", "c")
	var heard []Note
	host := openHost(t, root, OnNote(func(n Note) { heard = append(heard, n) }))
	w := &treeWatch{fs: host, paths: map[int32]string{}, known: map[memcg.ID]bool{},
		watch: func(string) (int, error) {
			return -1, unix.ENOSPC
		}}
	w.addTree("/")
	if len(heard) != 1 {
		t.Fatalf("%d notes: %v", len(heard), heard)
	}
	if err := heard[0].Err; !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "fs.inotify.max_user_watches") {
		t.Errorf("note %v does not tell the limit", err)
	}
}

func TestWatchEndsAtOnceWhenTheContextIsDone(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	changed, err := openHost(t, cgroupTree(t, "a")).Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range changed {
	}
}

func rawEvent(watch int32, mask uint32, name string) []byte {
	padded := (len(name) + 16) / 16 * 16
	b := make([]byte, unix.SizeofInotifyEvent, unix.SizeofInotifyEvent+padded)
	binary.NativeEndian.PutUint32(b, uint32(watch))
	binary.NativeEndian.PutUint32(b[4:], mask)
	binary.NativeEndian.PutUint32(b[12:], uint32(padded))
	return append(append(b, name...), make([]byte, padded-len(name))...)
}

func FuzzNextEvent(f *testing.F) {
	f.Add(rawEvent(1, unix.IN_CREATE|unix.IN_ISDIR, "a"))
	f.Add(append(rawEvent(1, unix.IN_IGNORED, ""), rawEvent(2, unix.IN_DELETE, "b")...))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		for {
			e, rest, ok := nextEvent(b)
			if !ok {
				return
			}
			if len(rest) >= len(b) || bytes.IndexByte(e.name, 0) >= 0 {
				t.Fatalf("event %q leaves %d of %d bytes", e.name, len(rest), len(b))
			}
			b = rest
		}
	})
}
