package cgroupfs

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// recheck is after how many readings of a cgroup the files are tried again
// that were not there or could not be opened: a controller may be enabled or
// pressure accounting switched on later. At the default interval of 5 s that
// is every five minutes, staggered by inode so that not all cgroups do it in
// the same tick.
const recheck = 60

// fileState is what is known of one file of one cgroup.
type fileState uint8

const (
	notTried fileState = iota
	kept               // open, fd is its descriptor
	perRead            // it exists; opened for each reading, too many are open already
	absent             // not in this cgroup, until the next recheck
	refused            // may not be opened or read, errno says why, until the next recheck
)

// openFile is one file of a cgroup.
type openFile struct {
	fd    int32
	state fileState
	errno syscall.Errno // of refused
}

// files are the open files of one directory.
type files [numFiles]openFile

// cgroup is one cgroup that is being sampled: a directory descriptor, proved
// to have the inode of its id, and files opened relative to it.
type cgroup struct {
	id memcg.ID

	mu       sync.Mutex // held over a whole sample
	dir      int        // -1 while not open
	closed   bool
	readings uint64
	files    files
	above    *ancestor // of its parent, nil for the root and its children
	linked   bool      // above was looked up
}

// acquire returns the cgroup of an id, locked and with its directory open. The
// caller hands it back to done.
func (fs *FS) acquire(id memcg.ID) (*cgroup, error) {
	fs.mu.Lock()
	c := fs.cgroups[id]
	if c == nil {
		c = &cgroup{id: id, dir: -1}
		fs.cgroups[id] = c
	}
	fs.mu.Unlock()

	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, &opError{Op: "read", File: fs.file(id.Path, ""), Kind: memcg.ErrGone}
	}
	if c.dir >= 0 {
		return c, nil
	}
	dir, err := fs.open(id)
	if err != nil {
		fs.drop(c)
		c.mu.Unlock()
		return nil, err
	}
	c.dir = dir
	fs.folders.Add(-1)
	return c, nil
}

// done unlocks what acquire returned. Beyond the number of directories that may
// be kept it is closed, and opened and proved anew for the next reading.
func (fs *FS) done(c *cgroup) {
	if c.dir >= 0 && fs.folders.Load() < 0 {
		fs.closeDir(&c.dir)
	}
	c.mu.Unlock()
}

// closeDir closes a directory that was counted.
func (fs *FS) closeDir(dir *int) {
	_ = fs.k.close(*dir)
	fs.folders.Add(1)
	*dir = -1
}

// drop closes a cgroup that the caller holds locked and forgets it.
func (fs *FS) drop(c *cgroup) {
	fs.mu.Lock()
	if fs.cgroups[c.id] == c {
		delete(fs.cgroups, c.id)
		delete(fs.paces, c.id)
	}
	fs.mu.Unlock()
	fs.heard.remove(c.id)
	fs.release(c)
}

// release closes all descriptors of a cgroup that the caller holds locked.
func (fs *FS) release(c *cgroup) {
	if c.closed {
		return
	}
	c.closed = true
	for f := range c.files {
		fs.shut(&c.files[f])
	}
	if c.dir >= 0 {
		fs.closeDir(&c.dir)
	}
	fs.unlink(c)
}

// shut closes one file.
func (fs *FS) shut(o *openFile) {
	if o.state == kept {
		_ = fs.k.close(int(o.fd))
		fs.budget.Add(1)
	}
	*o = openFile{}
}

// Forget closes the descriptors of a cgroup, stops listening to it and drops
// what is remembered of it. Cgroups that turn out to be gone are forgotten
// without it.
func (fs *FS) Forget(id memcg.ID) {
	fs.mu.Lock()
	c := fs.cgroups[id]
	delete(fs.cgroups, id)
	delete(fs.paces, id)
	fs.mu.Unlock()
	fs.heard.remove(id)
	if c != nil {
		c.mu.Lock()
		fs.release(c)
		c.mu.Unlock()
	}
}

// isGone reports whether an error means that a cgroup does not exist any more.
func isGone(err error) bool { return errors.Is(err, memcg.ErrGone) }

// Results of readFile that need no errno of their own. Whether a missing file
// means that the cgroup is gone is for the caller to find out.
var (
	errAbsent   = errors.New("known not to be in this cgroup")
	errNoFile   = errors.New("no such file")
	errVanished = errors.New("the open file was removed")
)

// readFile reads one file of the directory dir whole. The content is valid
// until buf is used again. The error is errAbsent, errNoFile, errVanished,
// errTooLong or an errno.
func (fs *FS) readFile(dir int, o *openFile, f file, buf *scratch) ([]byte, error) {
	fd := int(o.fd)
	switch o.state {
	case absent:
		return nil, errAbsent
	case refused:
		return nil, o.errno
	case notTried, perRead:
		var err error
		if fd, err = fs.k.open(dir, fileNames[f], unix.O_RDONLY, beneath); err != nil {
			return nil, fs.refuse(o, err, errNoFile)
		}
		if fs.budget.Add(-1) >= 0 {
			o.fd, o.state = int32(fd), kept
		} else {
			fs.budget.Add(1)
			o.state = perRead
			defer fs.k.close(fd)
		}
	}
	for {
		n, err := fs.k.pread(fd, buf.b, 0)
		if err != nil {
			fs.shut(o)
			return nil, fs.refuse(o, err, errVanished)
		}
		// Files of a cgroup are one record, which the kernel hands out whole:
		// less than the buffer is all of it, a full buffer may be a part.
		if n < len(buf.b) {
			return buf.b[:n], nil
		}
		if n >= maxFile {
			return nil, errTooLong
		}
		buf.b = make([]byte, 2*len(buf.b))
	}
}

// refuse sorts what open or read returned, and remembers what will not change
// by the next reading. ENOENT and ENODEV become missing.
func (fs *FS) refuse(o *openFile, err, missing error) error {
	errno, ok := err.(syscall.Errno)
	if !ok {
		return err
	}
	switch kindOf(errno) {
	case memcg.ErrGone:
		return missing
	case memcg.ErrUnsupported:
		o.state = absent
		return errAbsent
	case memcg.ErrDenied:
		o.state, o.errno = refused, errno
	}
	return errno
}

// retry has the files tried again that were not there or were refused, when
// their turn has come. memory.current is tried with every reading: it is the
// first to tell that the memory controller was enabled.
func (c *cgroup) retry() {
	c.readings++
	if c.files[memoryCurrent].state == absent {
		c.files[memoryCurrent] = openFile{}
	}
	if (c.readings+c.id.Inode)%recheck == 0 {
		c.tryAgain()
	}
}

func (c *cgroup) tryAgain() {
	for f := range c.files {
		c.files[f].tryAgain()
	}
}

// tryAgain forgets that a file was not there, or could not be kept.
func (o *openFile) tryAgain() {
	if o.state != kept {
		*o = openFile{}
	}
}
