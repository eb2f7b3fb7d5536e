package cgroupfs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// watchMask is what is heard of a cgroup's directory: children that come and
// go. Nothing else may be in it: the kernel reports a modification of the
// directory with every change of any memory.events in it, and with every write
// of ours, which would wake the agent at the rate of the events it manages.
const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR

// Watch returns a channel that holds a signal when cgroups may have come or
// gone since the last one was taken: any number of changes make one signal,
// and the watcher never waits for its reader. The channel is closed when ctx
// is done, or when watching failed for good.
//
// A signal is a hint, and Cgroups is the truth: changes are missed where
// inotify runs out of watches (one for each cgroup). That is told once, as a
// Note, and only new cgroups that are children of those without a watch are
// missed. An error means that nothing is watched at all; the tree must then be
// listed from time to time.
func (fs *FS) Watch(ctx context.Context) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		e := newError("inotify_init1", "cgroup tree", err)
		if err == unix.EMFILE {
			e.Hint = "raise fs.inotify.max_user_instances"
		}
		return nil, e
	}
	w := &treeWatch{
		fs:      fs,
		watch:   func(path string) (int, error) { return unix.InotifyAddWatch(fd, path, watchMask) },
		inotify: os.NewFile(uintptr(fd), "inotify"),
		paths:   map[int32]string{},
		known:   map[memcg.ID]bool{},
		changed: make(chan struct{}, 1),
	}
	if err := w.add("/"); err != nil {
		_ = w.inotify.Close()
		return nil, fmt.Errorf("watch the root of the cgroup tree: %w", err)
	}
	w.addTree("/")

	stop := context.AfterFunc(ctx, func() { _ = w.inotify.Close() })
	go func() {
		defer close(w.changed)
		defer w.inotify.Close()
		defer stop()
		w.run()
	}()
	return w.changed, nil
}

// treeWatch holds one inotify watch for each cgroup's directory. All of it
// belongs to one goroutine once Watch has returned.
type treeWatch struct {
	fs      *FS
	inotify *os.File // its Close ends a Read that waits
	watch   func(path string) (wd int, err error)
	paths   map[int32]string // of the cgroup that each watch is on
	changed chan struct{}
	ids     []memcg.ID        // of one listing, reused
	known   map[memcg.ID]bool // of one addTree, reused
	full    bool              // that a watch could not be had was told
}

// add watches one cgroup's directory. The directory is named through an open
// descriptor: its path may be longer than a path may be, and what it leads to
// may have changed.
func (w *treeWatch) add(cgroup string) error {
	dir, _, err := w.fs.openDir(cgroup)
	if err != nil {
		return err
	}
	defer w.fs.k.close(dir)
	wd, err := w.watch("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return newError("watch", w.fs.file(cgroup, ""), err)
	}
	w.paths[int32(wd)] = cgroup
	return nil
}

// addAll is add for one of many: a cgroup that has gone is none of our
// business, and the rest is told once.
func (w *treeWatch) addAll(cgroup string) {
	err := w.add(cgroup)
	if err == nil || errors.Is(err, memcg.ErrGone) || w.full {
		return
	}
	w.full = true
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%d cgroups are watched and no more can be, new ones elsewhere are found by listing only; "+
			"raise fs.inotify.max_user_watches: %w", len(w.paths), err)
	}
	if w.fs.notes.hear != nil {
		w.fs.notes.hear(Note{File: "inotify", First: cgroup, Err: err, Count: 1})
	}
}

// addTree watches a cgroup and all below it. It lists again until nothing new
// is found: what is made below a directory before that has its watch is heard
// of in no other way.
func (w *treeWatch) addTree(cgroup string) {
	w.addAll(cgroup)
	clear(w.known)
	for {
		// What cannot be listed is told by who lists for the tick.
		ids, _ := w.fs.cgroupsBelow(cgroup, w.ids[:0])
		w.ids = ids
		found := false
		for _, id := range ids {
			if !w.known[id] {
				w.known[id], found = true, true
				w.addAll(id.Path)
			}
		}
		if !found {
			return
		}
	}
}

// run hears events until the inotify descriptor is closed.
func (w *treeWatch) run() {
	// The kernel hands out whole events only, of at most 16 + NAME_MAX + 1
	// bytes; 16 KiB hold hundreds of them.
	buf := make([]byte, 16<<10)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return
		}
		if w.handle(buf[:n]) {
			select {
			case w.changed <- struct{}{}:
			default: // one is waiting to be taken
			}
		}
	}
}

// handle takes in the events of one read and reports whether the tree changed.
func (w *treeWatch) handle(b []byte) (changed bool) {
	for len(b) > 0 {
		e, rest, ok := nextEvent(b)
		if !ok {
			return true
		}
		b = rest
		switch {
		case e.mask&unix.IN_Q_OVERFLOW != 0: // events were lost: look at everything
			changed = true
			w.addTree("/")
		case e.mask&unix.IN_IGNORED != 0: // the directory is gone, and so is its watch
			delete(w.paths, e.watch)
		case e.mask&unix.IN_ISDIR == 0: // not a cgroup
		default:
			changed = true
			parent, known := w.paths[e.watch]
			if known && e.mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
				w.addTree(strings.TrimSuffix(parent, "/") + "/" + string(e.name))
			}
		}
	}
	return changed
}

// event is one struct inotify_event (inotify(7)). The name lies in the buffer
// it was read from.
type event struct {
	watch int32
	mask  uint32
	name  []byte
}

// nextEvent cuts the first event off b; ok is false when b holds no whole one.
func nextEvent(b []byte) (e event, rest []byte, ok bool) {
	if len(b) < unix.SizeofInotifyEvent {
		return event{}, nil, false
	}
	size := unix.SizeofInotifyEvent + uint64(binary.NativeEndian.Uint32(b[12:]))
	if size > uint64(len(b)) {
		return event{}, nil, false
	}
	e.watch = int32(binary.NativeEndian.Uint32(b))
	e.mask = binary.NativeEndian.Uint32(b[4:])
	e.name, _, _ = bytes.Cut(b[unix.SizeofInotifyEvent:size], []byte{0}) // padded with zeros
	return e, b[size:], true
}
