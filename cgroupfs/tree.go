package cgroupfs

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// Cgroups appends every cgroup below the mount to dst, parents before their
// children, the root left out. Every directory is a cgroup, whatever its
// cgroup.type; a kernel file is none. Paths are bytes as the kernel has them:
// nothing is unescaped and no character is special (case c19).
//
// Cgroups that vanish meanwhile are left out. A directory that cannot be read
// is listed itself, what is below it is not, and the error says so; the list
// holds everything else. Where dst has capacity from an earlier listing, paths
// that did not change are taken from there instead of allocated.
func (fs *FS) Cgroups(dst []memcg.ID) ([]memcg.ID, error) { return fs.cgroupsBelow("/", dst) }

// cgroupsBelow is Cgroups for what is below one cgroup.
func (fs *FS) cgroupsBelow(cgroup string, dst []memcg.ID) ([]memcg.ID, error) {
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	w.k, w.file, w.stat = fs.k, fs.file, nil
	if !fs.layout.Fixture {
		w.stat = statAt
	}
	name, ok := relative(cgroup)
	if !ok {
		return dst, &opError{Op: "list", File: cgroup, Kind: memcg.ErrInvalid, Hint: "not the path of a cgroup"}
	}
	w.path = append(w.path[:0], strings.TrimSuffix(cgroup, "/")...)
	return w.walk(fs.mountDir, name, dst)
}

var walkers = sync.Pool{New: func() any {
	// A cgroup's directory has about 70 files, 2.5 KiB of entries; large ones
	// hold many children. 32 KiB is what libc reads at a time.
	return &walker{dirents: make([]byte, 32<<10)}
}}

// walker is one walk over the tree and the buffers it reuses.
type walker struct {
	k    kernel
	file func(cgroup, name string) string
	// stat looks at a child without opening it. On cgroup2 the link count of a
	// directory is 2 plus its subdirectories (kernfs_refresh_inode), so that a
	// leaf need not be opened and its 70 files need not be listed: most
	// cgroups are leaves. nil where link counts do not mean that.
	stat func(dir int, name string) (childStat, error)

	dst     []memcg.ID
	dev     uint64
	path    []byte  // of the directory that is being read
	dirents []byte  // one getdents64
	names   []byte  // of the children of all directories on the way
	found   []child // the same
	errs    walkErrors
}

// child is one entry of a directory; its name is names[at:end].
type child struct {
	inode   uint64 // as the directory has it, right on cgroup2, a guess elsewhere
	at, end int
	certain bool // is a directory, not just of unknown type
}

// childStat is what stat tells of a child.
type childStat struct {
	inode, dev, links uint64
}

func statAt(dir int, name string) (childStat, error) {
	for {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err != unix.EINTR {
			return childStat{inode: st.Ino, dev: uint64(st.Dev), links: uint64(st.Nlink)}, err
		}
	}
}

// walk lists what is below the directory that name leads to from mount, and
// whose path is w.path.
func (w *walker) walk(mount int, name string, dst []memcg.ID) ([]memcg.ID, error) {
	w.dst, w.errs = dst, walkErrors{}
	defer func() { w.dst, w.k, w.file, w.stat = nil, nil, nil, nil }()

	top, err := w.k.open(mount, name, unix.O_RDONLY|unix.O_DIRECTORY, beneath)
	if err != nil {
		return dst, newError("open", w.file(string(w.path), ""), err)
	}
	defer w.k.close(top)
	info, err := w.k.fstat(top)
	if err != nil {
		return dst, newError("stat", w.file(string(w.path), ""), err)
	}
	w.dev = info.dev
	w.below(top)
	return w.dst, w.errs.join()
}

// below lists what is below the open directory dir, whose path is w.path. It
// returns false when dir has vanished.
func (w *walker) below(dir int) (lives bool) {
	firstName, firstChild := len(w.names), len(w.found)
	defer func() { w.names, w.found = w.names[:firstName], w.found[:firstChild] }()

	// Everything is read before the first child is visited: one buffer serves
	// all levels, and the kernel's position in a changing directory is used
	// for no longer than necessary.
	for {
		n, err := w.k.readDirents(dir, w.dirents)
		if err == nil && n == 0 {
			break
		}
		if err == nil {
			err = w.keepDirs(w.dirents[:n])
		}
		if err != nil {
			e := newError("list", w.file(string(w.path), ""), err)
			if errors.Is(e, memcg.ErrGone) {
				return false
			}
			w.errs.add(e)
			break
		}
	}
	parent := len(w.path)
	for i := firstChild; i < len(w.found); i++ {
		c := w.found[i]
		w.path = append(append(w.path[:parent], '/'), w.names[c.at:c.end]...)
		w.visit(dir, c)
		w.path = w.path[:parent]
	}
	return true
}

// visit lists one child of dir and what is below it.
func (w *walker) visit(dir int, c child) {
	here := len(w.dst)
	path := w.pathString()
	name := path[len(path)-(c.end-c.at):]
	if w.stat != nil {
		st, err := w.stat(dir, name)
		switch {
		case err == nil && st.dev != w.dev: // something is mounted here
			return
		case err == nil && st.links == 2:
			w.dst = append(w.dst, memcg.ID{Path: path, Inode: st.inode})
			return
		case err == nil:
			c.inode = st.inode
		case err == unix.ENOENT || err == unix.ENODEV:
			return
		}
	}
	fd, err := w.k.open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, beneath)
	if err != nil {
		switch e := newError("open", w.file(path, ""), err); {
		case errors.Is(e, memcg.ErrGone), err == unix.EXDEV, !c.certain && err == unix.ENOTDIR:
		case c.certain:
			w.dst = append(w.dst, memcg.ID{Path: path, Inode: c.inode})
			w.errs.add(e)
		default:
			w.errs.add(e)
		}
		return
	}
	defer w.k.close(fd)
	info, err := w.k.fstat(fd)
	if err != nil {
		w.errs.add(newError("stat", w.file(path, ""), err))
		return
	}
	w.dst = append(w.dst, memcg.ID{Path: path, Inode: info.inode})
	if !w.below(fd) {
		w.dst = w.dst[:here]
	}
}

// pathString returns w.path as a string: the one that an earlier listing left
// at this place of dst if it is the same.
func (w *walker) pathString() string {
	if i := len(w.dst); i < cap(w.dst) {
		if old := w.dst[: i+1 : i+1][i].Path; old == string(w.path) {
			return old
		}
	}
	return string(w.path)
}

// keepDirs appends the subdirectories among raw directory entries.
func (w *walker) keepDirs(b []byte) error {
	for len(b) > 0 {
		e, rest, err := nextDirent(b)
		if err != nil {
			return err
		}
		b = rest
		if e.kind != unix.DT_DIR && e.kind != unix.DT_UNKNOWN || string(e.name) == "." || string(e.name) == ".." {
			continue
		}
		at := len(w.names)
		w.names = append(w.names, e.name...)
		w.found = append(w.found, child{inode: e.inode, at: at, end: len(w.names), certain: e.kind == unix.DT_DIR})
	}
	return nil
}

// walkErrors keeps the first errors of a walk and counts the rest: when
// descriptors run out there may be one for every cgroup.
type walkErrors struct {
	errs []error
	more int
}

const walkErrorsKept = 8

func (e *walkErrors) add(err error) {
	if len(e.errs) == walkErrorsKept {
		e.more++
		return
	}
	e.errs = append(e.errs, err)
}

func (e *walkErrors) join() error {
	if e.more > 0 {
		return errors.Join(append(e.errs, fmt.Errorf("and %d more cgroups that could not be listed", e.more))...)
	}
	return errors.Join(e.errs...)
}
