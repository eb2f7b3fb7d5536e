package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// MaxSpec bounds what is read of one file, in bytes. A config.json has some
// tens of KiB, most of it a seccomp filter; environments can make it larger.
const MaxSpec = 4 << 20

// root is the directory that is the host's "/". Nothing is opened outside of
// it.
type root struct {
	dir *os.File
	// walk is used instead of openat2(2) where that proved unusable: kernels
	// before 5.6 lack it, and seccomp filters of container runtimes refuse it. It
	// follows no absolute symlinks.
	walk *os.Root
}

func openRoot(path string) (*root, error) {
	dir, err := os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("host root: %w", err)
	}
	return &root{dir: dir}, nil
}

func (r *root) close() {
	_ = r.dir.Close()
	if r.walk != nil {
		_ = r.walk.Close()
	}
}

// openTries bounds how often a lookup is repeated that openat2 gave up with
// EAGAIN because something was renamed or mounted meanwhile.
const openTries = 8

// open opens name below the root for reading. It does not wait, as it would for
// a FIFO's other end.
func (r *root) open(name string, flags int) (*os.File, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	if r.walk == nil {
		how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := -1, error(unix.EAGAIN)
		for i := 0; i < openTries && (err == unix.EAGAIN || err == unix.EINTR); i++ {
			fd, err = unix.Openat2(int(r.dir.Fd()), name, &how)
		}
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if err != unix.ENOSYS && err != unix.EPERM {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		walk, err2 := os.OpenRoot(r.dir.Name())
		if err2 != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		r.walk = walk
	}
	return r.walk.OpenFile(strings.TrimLeft(name, "/"), flags, 0)
}

// read returns the content of the file name, which must be a regular one of at
// most MaxSpec bytes, owned by the user owner where that is not "". Errors wrap
// memcg.ErrDenied or memcg.ErrInvalid where they are of these kinds; a file that
// is not there is fs.ErrNotExist.
func (r *root) read(name, owner string) ([]byte, error) {
	f, err := r.open(name, unix.O_NOFOLLOW)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("%w: %w", err, memcg.ErrDenied)
		}
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("read %s: not a regular file: %w", name, memcg.ErrInvalid)
	case owner != "" && strconv.FormatUint(uint64(st.Uid), 10) != owner:
		return nil, fmt.Errorf("read %s: owned by user %d and not by %s: %w", name, st.Uid, owner, memcg.ErrDenied)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSpec+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > MaxSpec:
		return nil, fmt.Errorf("read %s: longer than %d bytes: %w", name, MaxSpec, memcg.ErrInvalid)
	}
	return data, nil
}

// names returns what a folder holds, at most most entries; none where it is not
// there or cannot be listed.
func (r *root) names(folder string, most int) []string {
	f, err := r.open(folder, unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.Readdirnames(most)
	return list
}

// has reports whether there is such a folder.
func (r *root) has(folder string) bool {
	f, err := r.open(folder, unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
