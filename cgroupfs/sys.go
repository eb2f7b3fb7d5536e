package cgroupfs

import (
	"errors"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// resolve says how a name is looked up from a directory descriptor.
type resolve uint8

const (
	// beneath never leaves the directory: no symlink, no "..", no other
	// filesystem. For everything below the cgroup mount, whose directory names
	// are chosen by others.
	beneath resolve = iota
	// inRoot takes the directory for "/": symlinks are followed within it. For
	// proc and sysfs, where /proc/self and /sys/class are symlinks.
	inRoot
	// asGiven is a plain lookup, for the root that the operator names.
	asGiven
)

// fileInfo is what is asked of an open descriptor.
type fileInfo struct {
	inode uint64
	dev   uint64
	dir   bool
}

// kernel is every call this package makes on files. The real one is *linux;
// tests put a layer over it that answers chosen calls with chosen errnos.
// Errors are bare errnos.
type kernel interface {
	// open opens name as seen from the descriptor dir. O_CLOEXEC is added.
	open(dir int, name string, flags int, how resolve) (fd int, err error)
	// pread reads once at offset; interrupted calls are repeated.
	pread(fd int, b []byte, offset int64) (n int, err error)
	// write is one write(2), never repeated.
	write(fd int, b []byte) (n int, err error)
	// readDirents is one getdents64(2) into b.
	readDirents(fd int, b []byte) (n int, err error)
	fstat(fd int) (fileInfo, error)
	// magic returns the type of the filesystem the descriptor lies on.
	magic(fd int) (int64, error)
	close(fd int) error
}

// linux is the kernel itself.
type linux struct {
	// walks is set once openat2(2) has proved unusable: kernels before 5.6
	// lack it, and seccomp filters of container runtimes refuse it.
	walks atomic.Bool
}

// openTries bounds how often a lookup is repeated that openat2 gave up with
// EAGAIN because something was renamed or mounted meanwhile.
const openTries = 8

func (l *linux) open(dir int, name string, flags int, how resolve) (int, error) {
	flags |= unix.O_CLOEXEC
	if how == asGiven {
		return openat(dir, name, flags)
	}
	if l.walks.Load() {
		return l.openByWalk(dir, name, flags, how)
	}
	spec := unix.OpenHow{Flags: uint64(flags)}
	switch how {
	case beneath:
		spec.Resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
	case inRoot:
		spec.Resolve = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	}
	var fd int
	var err error
	for range openTries {
		fd, err = unix.Openat2(dir, name, &spec)
		if err != unix.EINTR && err != unix.EAGAIN {
			break
		}
	}
	switch err {
	case unix.ENOSYS:
		l.walks.Store(true)
		return l.openByWalk(dir, name, flags, how)
	case unix.EPERM:
		// Either a filter refuses the call, or the file refuses us. Only a
		// walk that succeeds proves the former.
		fd, err = l.openByWalk(dir, name, flags, how)
		if err == nil {
			l.walks.Store(true)
		}
	}
	return fd, err
}

// openByWalk is open without openat2. What openat2 enforces in the kernel is
// checked here, one component after the other.
func (l *linux) openByWalk(dir int, name string, flags int, how resolve) (int, error) {
	if how == inRoot {
		// Proc and sysfs have relative symlinks only, which stay inside.
		name = strings.TrimLeft(name, "/")
		if name == "" {
			name = "."
		}
		return openat(dir, name, flags)
	}
	start, err := l.fstat(dir)
	if err != nil {
		return -1, err
	}
	at := dir
	for {
		part, rest, more := strings.Cut(name, "/")
		if part == "" || part == ".." {
			err = unix.EXDEV // what RESOLVE_BENEATH answers to a way out
			break
		}
		var fd int
		if !more {
			fd, err = openat(at, part, flags|unix.O_NOFOLLOW)
		} else {
			fd, err = openat(at, part, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		}
		if at != dir {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		info, err := l.fstat(fd)
		if err == nil && info.dev != start.dev {
			err = unix.EXDEV
		}
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		if !more {
			return fd, nil
		}
		at, name = fd, rest
	}
	if at != dir {
		_ = unix.Close(at)
	}
	return -1, err
}

func openat(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (l *linux) pread(fd int, b []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(fd, b, offset)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func (l *linux) write(fd int, b []byte) (int, error) { return unix.Write(fd, b) }

func (l *linux) readDirents(fd int, b []byte) (int, error) {
	for {
		n, err := unix.ReadDirent(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func (l *linux) fstat(fd int) (fileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fileInfo{}, err
	}
	return fileInfo{inode: st.Ino, dev: uint64(st.Dev), dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

func (l *linux) magic(fd int) (int64, error) {
	for {
		var st unix.Statfs_t
		err := unix.Fstatfs(fd, &st)
		if err == nil {
			return int64(st.Type), nil
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}

func (l *linux) close(fd int) error { return unix.Close(fd) }

// maxFile bounds what is read of one file. The largest known is
// memory.numa_stat on 1,024 nodes, about 60 keys of 25 bytes a node: 1.5 MiB.
const maxFile = 16 << 20

var errTooLong = errors.New("longer than 16 MiB")

// readAll reads the open file fd from its start to its end into buf, which
// grows as needed, and returns the bytes read and the buffer for the next
// call. It goes on until the kernel reports the end, because files of several
// records (mountinfo) are handed out in pieces.
func readAll(k kernel, fd int, buf []byte) (content, grown []byte, err error) {
	if len(buf) == 0 {
		buf = make([]byte, 4096)
	}
	n := 0
	for {
		if n == len(buf) {
			if n >= maxFile {
				return nil, buf, errTooLong
			}
			buf = append(buf, make([]byte, len(buf))...)
		}
		m, err := k.pread(fd, buf[n:], int64(n))
		if err != nil {
			return nil, buf, err
		}
		if m == 0 {
			return buf[:n], buf, nil
		}
		n += m
	}
}

// readFileAt opens, reads and closes one file of proc or sysfs below the
// directory dir, into buf as readAll does. A file that is not there is
// memcg.ErrUnsupported: this kernel does not have it.
func readFileAt(k kernel, dir int, name string, buf []byte) (content, grown []byte, err error) {
	fd, err := k.open(dir, name, unix.O_RDONLY, inRoot)
	if err == unix.ENOENT {
		return nil, buf, &opError{Op: "open", File: name, Kind: memcg.ErrUnsupported, Errno: unix.ENOENT}
	}
	if err != nil {
		return nil, buf, newError("open", name, err)
	}
	defer k.close(fd)
	content, buf, err = readAll(k, fd, buf)
	if err != nil {
		return nil, buf, newError("read", name, err)
	}
	return content, buf, nil
}
