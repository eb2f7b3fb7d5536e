package cgroupfs

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// hostFileError wraps what a call on a file below the host's root returned. A
// host without the file does not offer what it holds: nothing here can vanish
// the way a cgroup does.
func (fs *FS) hostFileError(op, name string, err error) *opError {
	e := newError(op, path.Join(fs.root, name), err)
	if e.Kind == memcg.ErrGone {
		e.Kind = memcg.ErrUnsupported
	}
	return e
}

// readHostFile returns the content of a file of proc or sysfs, named below the
// host's root. memcg.ErrUnsupported: there is none.
func (fs *FS) readHostFile(name string) ([]byte, error) {
	fd, err := fs.k.open(fs.rootDir, name, unix.O_RDONLY, inRoot)
	if err != nil {
		return nil, fs.hostFileError("open", name, err)
	}
	defer fs.k.close(fd)
	b, _, err := readAll(fs.k, fd, nil)
	if err != nil {
		return nil, fs.hostFileError("read", name, err)
	}
	return b, nil
}

// readHostPrefix returns what one read of at most size bytes gives.
func (fs *FS) readHostPrefix(name string, size int) ([]byte, error) {
	fd, err := fs.k.open(fs.rootDir, name, unix.O_RDONLY, inRoot)
	if err != nil {
		return nil, fs.hostFileError("open", name, err)
	}
	defer fs.k.close(fd)
	b := make([]byte, size)
	n, err := fs.k.pread(fd, b, 0)
	if err != nil {
		return nil, fs.hostFileError("read", name, err)
	}
	return b[:n], nil
}

// hostFileExists reports whether there is a file or directory of that name
// below the host's root.
func (fs *FS) hostFileExists(name string) (bool, error) {
	fd, err := fs.k.open(fs.rootDir, name, unix.O_PATH, inRoot)
	if err != nil {
		e := fs.hostFileError("open", name, err)
		if errors.Is(e, memcg.ErrUnsupported) {
			return false, nil
		}
		return false, e
	}
	_ = fs.k.close(fd)
	return true, nil
}

// listHostDir returns the names in a directory below the host's root.
func (fs *FS) listHostDir(name string) ([]string, error) {
	fd, err := fs.k.open(fs.rootDir, name, unix.O_RDONLY|unix.O_DIRECTORY, inRoot)
	if err != nil {
		return nil, fs.hostFileError("open", name, err)
	}
	defer fs.k.close(fd)
	var names []string
	b := make([]byte, 4096)
	for {
		n, err := fs.k.readDirents(fd, b)
		if err != nil {
			return nil, fs.hostFileError("read", name, err)
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(b[:n], -1, names)
	}
}
