package cgroupfs

import (
	"context"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// Listen has Events tell of a cgroup from now on, until it is forgotten or
// removed. It may be called before Events; listening twice is listening once.
//
// memcg.ErrGone: there is no such cgroup. memcg.ErrUnsupported: it has no
// memory.events, or no more watches can be had, which is also told once as a
// Note; Listen may be called again later.
func (fs *FS) Listen(id memcg.ID) error {
	l := &fs.heard
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.watches[id]; known {
		return nil
	}
	if l.watches == nil {
		l.watches = map[memcg.ID]int32{}
	}
	l.watches[id] = notWatched
	if l.inotify == nil {
		return nil
	}
	if err := fs.listen(id); err != nil {
		delete(l.watches, id)
		return err
	}
	return nil
}

// Events returns a channel of the cgroups whose memory.events changed, their
// own or that of one below them. A cgroup that changes again and again waits
// in it once, and the next time only after that was taken; how fast the reader
// takes them does not matter. It is closed when ctx is done, or when inotify
// failed for good.
//
// The kernel tells of a file once in 10 ms at most (CGROUP_FILE_NOTIFY_MIN_INTV),
// and not what changed in it. Where the queue of inotify overflowed, every
// cgroup that is listened to is told of. Only one such channel can be open.
//
// memcg.ErrUnsupported: inotify is not to be had. memcg.ErrInvalid: another
// channel is open.
func (fs *FS) Events(ctx context.Context) (<-chan memcg.ID, error) {
	l := &fs.heard
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inotify != nil {
		return nil, &opError{Op: "listen to", File: fileNames[memoryEvents], Kind: memcg.ErrInvalid, Hint: "somebody else does already"}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		e := newError("inotify_init1", fileNames[memoryEvents], err)
		e.Kind = memcg.ErrUnsupported
		if err == unix.EMFILE {
			e.Hint = "raise fs.inotify.max_user_instances"
		}
		return nil, e
	}
	l.inotify, l.add = os.NewFile(uintptr(fd), "inotify"), unix.InotifyAddWatch
	l.fd = fd
	l.ids = map[int32]memcg.ID{}
	for id := range l.watches {
		// Who has gone meanwhile is told of by samples, lack of watches by a
		// Note.
		if fs.listen(id) != nil {
			delete(l.watches, id)
		}
	}
	q := &eventQueue{waiting: map[memcg.ID]bool{}, wake: make(chan struct{}, 1)}
	out := make(chan memcg.ID)
	inotify := l.inotify
	stop := context.AfterFunc(ctx, func() { l.end(inotify) })
	go func() {
		defer close(q.wake)
		defer stop()
		l.hear(inotify, q)
		l.end(inotify)
	}()
	go func() {
		defer close(out)
		q.handOut(ctx, out)
	}()
	return out, nil
}

// listeners are the cgroups that are listened to.
type listeners struct {
	mu      sync.Mutex
	inotify *os.File // nil while there is no channel; its Close ends a Read that waits
	fd      int      // of inotify
	watches map[memcg.ID]int32
	ids     map[int32]memcg.ID // by watch
	full    bool               // that a watch could not be had was told
	// add is inotify_add_watch(2), which tests replace.
	add func(fd int, path string, mask uint32) (wd int, err error)
}

// notWatched stands for the watch of a cgroup while there is no channel.
const notWatched int32 = -1

// listen watches the memory.events of a cgroup. The file is named through the
// open directory, so that what is watched is the cgroup that is meant. The
// caller holds l.mu.
func (fs *FS) listen(id memcg.ID) error {
	l := &fs.heard
	dir, err := fs.open(id)
	if err != nil {
		return err
	}
	defer fs.k.close(dir)
	name := fileNames[memoryEvents]
	wd, err := l.add(l.fd, "/proc/self/fd/"+strconv.Itoa(dir)+"/"+name, unix.IN_MODIFY)
	if err == nil {
		l.watches[id], l.ids[int32(wd)] = int32(wd), id
		return nil
	}
	e := newError("watch", fs.file(id.Path, name), err)
	switch {
	case err == unix.ENOSPC:
		e.Kind = memcg.ErrUnsupported
		e.Hint = "no more can be watched, what happens there is seen when its turn comes; raise fs.inotify.max_user_watches"
		if !l.full && fs.notes.hear != nil {
			fs.notes.hear(Note{File: "inotify", First: id.Path, Err: e, Count: 1})
		}
		l.full = true
	case e.Kind == memcg.ErrGone && fs.lives(id):
		e.Kind = memcg.ErrUnsupported
	}
	return e
}

// remove stops listening to a cgroup.
func (l *listeners) remove(id memcg.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wd, known := l.watches[id]
	if !known {
		return
	}
	delete(l.watches, id)
	if wd != notWatched {
		delete(l.ids, wd)
		// Fails where the kernel has removed it together with the file.
		_, _ = unix.InotifyRmWatch(l.fd, uint32(wd))
	}
}

// end closes one channel's inotify. It does so under the lock: the number of
// the descriptor may be somebody else's from then on.
func (l *listeners) end(inotify *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inotify != inotify {
		return
	}
	_ = inotify.Close()
	l.inotify, l.ids = nil, nil
	for id := range l.watches {
		l.watches[id] = notWatched
	}
}

// hear takes events in until the inotify descriptor is closed.
func (l *listeners) hear(inotify *os.File, q *eventQueue) {
	buf := make([]byte, 16<<10) // a thousand events: files have no name in them
	for {
		n, err := inotify.Read(buf)
		if err != nil {
			return
		}
		l.take(inotify, buf[:n], q)
	}
}

// take puts the cgroups of one read into the queue.
func (l *listeners) take(inotify *os.File, b []byte, q *eventQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inotify != inotify { // the channel has ended, numbers of watches mean others
		return
	}
	for len(b) > 0 {
		e, rest, ok := nextEvent(b)
		if !ok {
			return
		}
		b = rest
		switch id, known := l.ids[e.watch]; {
		case e.mask&unix.IN_Q_OVERFLOW != 0:
			for id := range l.watches {
				q.add(id)
			}
		case !known: // forgotten meanwhile
		case e.mask&unix.IN_IGNORED != 0: // the file is gone, and so is its watch
			delete(l.ids, e.watch)
			delete(l.watches, id)
		default:
			q.add(id)
		}
	}
}

// eventQueue holds the cgroups that have not been handed out, each once: it is
// no longer than the list of those that are listened to.
type eventQueue struct {
	mu      sync.Mutex
	waiting map[memcg.ID]bool
	order   []memcg.ID
	wake    chan struct{} // holds a signal when something was added; closed at the end
}

func (q *eventQueue) add(id memcg.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[id] {
		return
	}
	q.waiting[id] = true
	q.order = append(q.order, id)
	select {
	case q.wake <- struct{}{}:
	default: // one is waiting to be taken
	}
}

// next takes the cgroup that has waited longest out of the queue. It does so
// before it is handed out: what changes while the reader looks must be told.
func (q *eventQueue) next() (id memcg.ID, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return memcg.ID{}, false
	}
	id = q.order[0]
	q.order = q.order[1:]
	delete(q.waiting, id)
	return id, true
}

func (q *eventQueue) handOut(ctx context.Context, out chan<- memcg.ID) {
	for range q.wake {
		for {
			id, ok := q.next()
			if !ok {
				break
			}
			select {
			case out <- id:
			case <-ctx.Done():
				return
			}
		}
	}
}
