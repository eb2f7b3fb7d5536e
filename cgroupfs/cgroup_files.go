package cgroupfs

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// openCgroupFile opens one file of a cgroup given by its path alone, for
// looking around; samples and requests go by memcg.ID. A cgroup that is there
// without the file does not support what it holds: memcg.ErrUnsupported.
func (fs *FS) openCgroupFile(cgroup, name string, flags int) (fd int, err error) {
	dir, _, err := fs.openDir(cgroup)
	if err != nil {
		return -1, err
	}
	defer fs.k.close(dir)
	fd, err = fs.k.open(dir, name, flags, beneath)
	if err != nil {
		e := newError("open", fs.file(cgroup, name), err)
		if err == unix.ENOENT {
			e.Kind = memcg.ErrUnsupported
		}
		return -1, e
	}
	return fd, nil
}

// readCgroupFile returns the content of one file of a cgroup.
func (fs *FS) readCgroupFile(cgroup, name string) ([]byte, error) {
	fd, err := fs.openCgroupFile(cgroup, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer fs.k.close(fd)
	b, _, err := readAll(fs.k, fd, nil)
	if err != nil {
		return nil, newError("read", fs.file(cgroup, name), err)
	}
	return b, nil
}

// cgroupFileExists reports whether a cgroup has a file. An error other than
// the lack of the file means that it could not be told.
func (fs *FS) cgroupFileExists(cgroup, name string) (bool, error) {
	fd, err := fs.openCgroupFile(cgroup, name, unix.O_PATH)
	if err != nil {
		if errors.Is(err, memcg.ErrUnsupported) {
			return false, nil
		}
		return false, err
	}
	_ = fs.k.close(fd)
	return true, nil
}

// mayWriteCgroupFile opens one file of a cgroup for writing and closes it
// again: the kernel checks every right at the open, and nothing is written.
func (fs *FS) mayWriteCgroupFile(cgroup, name string) error {
	fd, err := fs.openCgroupFile(cgroup, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_ = fs.k.close(fd)
	return nil
}
