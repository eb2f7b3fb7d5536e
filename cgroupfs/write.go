package cgroupfs

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// target is a cgroup opened for one request, apart from what samples keep
// open: a request may block for long, and must not hold up a sample.
type target struct {
	fs  *FS
	id  memcg.ID
	dir int
}

// target opens a cgroup for writing, or says why nothing may be written there.
// The root, the agent's own cgroup and its ancestors are never written.
func (fs *FS) target(id memcg.ID) (*target, error) {
	if err := fs.Enforceable(); err != nil {
		return nil, err
	}
	if id.Path == "/" || fs.Owns(id.Path) {
		return nil, &opError{Op: "write", File: fs.file(id.Path, ""), Kind: memcg.ErrDenied,
			Hint: "the root, the agent's own cgroup and those above it are never written"}
	}
	dir, err := fs.open(id)
	if err != nil {
		return nil, err
	}
	return &target{fs: fs, id: id, dir: dir}, nil
}

func (t *target) close() { _ = t.fs.k.close(t.dir) }

// openWrite opens a file of the cgroup for writing, on a descriptor that
// blocks. A missing file is memcg.ErrGone or memcg.ErrUnsupported, as the
// cgroup is gone or lives.
func (t *target) openWrite(name string) (fd int, err error) { return t.openWriteAs(name, 0) }

// openWriteAs is openWrite with more flags for open(2).
func (t *target) openWriteAs(name string, flags int) (fd int, err error) {
	if fd, err = t.fs.k.open(t.dir, name, unix.O_WRONLY|flags, beneath); err == nil {
		return fd, nil
	}
	e := newError("open", t.fs.file(t.id.Path, name), err)
	if e.Kind == memcg.ErrGone && t.fs.lives(t.id) {
		e.Kind = memcg.ErrUnsupported
	}
	return -1, e
}

// write is one write(2) of payload on a descriptor that blocks, repeated by
// nobody: os.File would park on EAGAIN, and repeat after EINTR with the whole
// amount (case c29). Payload is never empty: an empty line reads as a limit of
// 0 or as "everything" (page_counter_memparse).
func (t *target) write(fd int, name string, payload []byte) error {
	if len(payload) == 0 {
		return &opError{Op: "write", File: t.fs.file(t.id.Path, name), Kind: memcg.ErrInvalid, Hint: "nothing to write"}
	}
	t.fs.writes.Add(1)
	_, err := t.fs.k.write(fd, payload)
	if err == nil {
		return nil
	}
	return newError("write", t.fs.file(t.id.Path, name), err)
}

// errnoOf returns the errno in an error, 0 when there is none.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
