package cgroupfs

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// FS is one host's kernel files, seen below one root. It is safe for use by
// several goroutines; samples of different cgroups run in parallel, two
// samples of the same cgroup one after the other.
type FS struct {
	k        kernel
	now      func() time.Time // the clock that bounds requests
	spent    func() time.Time // the clock of the calling thread's CPU time
	root     string           // where the host's "/" is seen
	rootDir  int              // descriptor of root, O_PATH
	mountDir int              // descriptor of the cgroup2 mount
	pageSize uint64           // bytes a page
	readOnly bool
	layout   Layout
	self     selfPath

	budget  atomic.Int64  // files that may still be kept open
	folders atomic.Int64  // directories that may still be kept open
	tick    atomic.Uint64 // 0 until BeginTick is called first
	writes  atomic.Uint64
	notes   notes
	scratch scratchPool
	lru     lruGen
	zones   reserves
	refused refusals
	damon   damon
	heard   listeners

	mu      sync.Mutex // guards the maps, never held over a kernel call
	cgroups map[memcg.ID]*cgroup
	paces   map[memcg.ID]*pace

	swapMu    sync.Mutex // guards ancestors and what they hold
	ancestors map[string]*ancestor
}

// Option changes how Open works.
type Option func(*FS)

// ReadOnly makes every method that would write return memcg.ErrReadOnly before
// it touches anything: observe mode.
func ReadOnly() Option { return func(fs *FS) { fs.readOnly = true } }

// OnNote hands every Note to hear the first time it comes up. hear is called
// from the goroutine that met the trouble and must not call back into the FS.
func OnNote(hear func(Note)) Option { return func(fs *FS) { fs.notes.hear = hear } }

// withKernel replaces the kernel, for tests that inject faults.
func withKernel(k kernel) Option { return func(fs *FS) { fs.k = k } }

// withClock replaces both clocks: that which bounds requests, and that of CPU time.
func withClock(now func() time.Time) Option { return func(fs *FS) { fs.now, fs.spent = now, now } }

// withBudget replaces the numbers of files and directories that may be kept.
func withBudget(files, folders int) Option {
	return func(fs *FS) {
		fs.budget.Store(int64(files))
		fs.folders.Store(int64(folders))
	}
}

// Open finds the cgroup v2 mount that holds the memory controller below root,
// which is where the host's "/" is seen: "/" itself, "/host" in a sidecar with
// the host's root mounted there, or a folder of recorded files in tests. It
// raises the soft limit of open files to the hard one.
//
// Where there is no such mount the error is a *NoMemoryController.
func Open(root string, opts ...Option) (*FS, error) {
	fs := &FS{
		k:         &linux{},
		now:       time.Now,
		spent:     threadTime,
		root:      path.Clean(root),
		rootDir:   -1,
		mountDir:  -1,
		pageSize:  uint64(unix.Getpagesize()),
		cgroups:   map[memcg.ID]*cgroup{},
		paces:     map[memcg.ID]*pace{},
		ancestors: map[string]*ancestor{},
	}
	fs.damon.wait = waitFor
	limit := raiseFileLimit()
	fs.budget.Store(min(limit/4, mostFiles))
	fs.folders.Store(limit / 2)
	for _, o := range opts {
		o(fs)
	}
	var err error
	if fs.rootDir, err = fs.k.open(unix.AT_FDCWD, fs.root, unix.O_PATH|unix.O_DIRECTORY, asGiven); err != nil {
		return nil, fmt.Errorf("the host's root, which --root names: open %s: %w", fs.root, err)
	}
	if err := fs.discover(); err != nil {
		fs.Close()
		return nil, err
	}
	return fs, nil
}

// Close closes every descriptor. The FS must not be used afterwards.
func (fs *FS) Close() {
	fs.mu.Lock()
	all := make([]*cgroup, 0, len(fs.cgroups))
	for _, c := range fs.cgroups {
		all = append(all, c)
	}
	clear(fs.cgroups)
	fs.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		fs.release(c)
		c.mu.Unlock()
	}
	for _, fd := range []*int{&fs.mountDir, &fs.rootDir} {
		if *fd >= 0 {
			_ = fs.k.close(*fd)
			*fd = -1
		}
	}
}

// ReadOnly reports whether the FS was opened for observing.
func (fs *FS) ReadOnly() bool { return fs.readOnly }

// Root returns where the host's "/" is seen.
func (fs *FS) Root() string { return fs.root }

// Writes returns how many write(2) calls were made on kernel files since Open.
// An FS that is ReadOnly stays at 0.
func (fs *FS) Writes() uint64 { return fs.writes.Load() }

// BeginTick tells that a new round of samples begins: what was read of
// ancestors for SwapRoom is read anew, once a tick. Before the first call it
// is read with every sample.
func (fs *FS) BeginTick() { fs.tick.Add(1) }

// Enforceable returns nil when requests can be carried out: not opened
// ReadOnly, the files are a kernel's cgroup2 and not recorded ones, the mount
// is writable, and it is known which cgroup is the agent's own. Otherwise the
// error says which of these fails and Is memcg.ErrReadOnly.
func (fs *FS) Enforceable() error {
	switch {
	case fs.readOnly:
		return memcg.ErrReadOnly
	case fs.layout.Fixture:
		return fmt.Errorf("%s holds plain files, not a cgroup2 mount: %w", fs.file("", ""), memcg.ErrReadOnly)
	case fs.layout.ReadOnlyMount:
		return fmt.Errorf("%s is mounted read-only, remount it rw or give the container a writable mount: %w", fs.file("", ""), memcg.ErrReadOnly)
	case !fs.self.known:
		return fmt.Errorf("it is not known which cgroup the agent itself runs in (%s), so it could not be spared; run the agent in the host's cgroup namespace: %w",
			fs.self.why, memcg.ErrReadOnly)
	}
	return nil
}

// Layout tells what was found at Open.
func (fs *FS) Layout() Layout { return fs.layout }

// file names a file of a cgroup as the operator finds it.
func (fs *FS) file(cgroup, name string) string {
	return path.Join(fs.root, fs.layout.Mount, cgroup, name)
}

// relative turns a cgroup's path into a name below the mount. Names are bytes:
// nothing is unescaped. A path that is not in its shortest form is refused, so
// that one cgroup has one path.
func relative(cgroup string) (name string, ok bool) {
	if cgroup == "/" {
		return ".", true
	}
	name, ok = strings.CutPrefix(cgroup, "/")
	if !ok || path.Clean(cgroup) != cgroup || strings.ContainsRune(name, 0) {
		return "", false
	}
	return name, true
}

// openDir opens the directory of a cgroup by path and returns its inode.
func (fs *FS) openDir(cgroup string) (dir int, inode uint64, err error) {
	name, ok := relative(cgroup)
	if !ok {
		return -1, 0, &opError{Op: "open", File: cgroup, Kind: memcg.ErrInvalid, Hint: "not the path of a cgroup"}
	}
	dir, err = fs.k.open(fs.mountDir, name, unix.O_PATH|unix.O_DIRECTORY, beneath)
	if err != nil {
		return -1, 0, newError("open", fs.file(cgroup, ""), err)
	}
	info, err := fs.k.fstat(dir)
	if err != nil {
		_ = fs.k.close(dir)
		return -1, 0, newError("stat", fs.file(cgroup, ""), err)
	}
	return dir, info.inode, nil
}

// open opens the directory of a cgroup. memcg.ErrGone: there is none at its
// path, or one with another inode.
func (fs *FS) open(id memcg.ID) (dir int, err error) {
	dir, inode, err := fs.openDir(id.Path)
	if err != nil {
		return -1, err
	}
	if inode != id.Inode {
		_ = fs.k.close(dir)
		return -1, &opError{Op: "open", File: fs.file(id.Path, ""), Kind: memcg.ErrGone, Hint: "another cgroup has taken its path"}
	}
	return dir, nil
}

// lives reports whether the cgroup is still at its path. Anything but a clear
// no counts as yes.
func (fs *FS) lives(id memcg.ID) bool {
	dir, inode, err := fs.openDir(id.Path)
	if err != nil {
		return !isGone(err)
	}
	_ = fs.k.close(dir)
	return inode == id.Inode
}

// Lookup returns the cgroup that is at a path now. memcg.ErrGone: none is.
func (fs *FS) Lookup(cgroup string) (memcg.ID, error) {
	dir, inode, err := fs.openDir(cgroup)
	if err != nil {
		return memcg.ID{}, err
	}
	_ = fs.k.close(dir)
	return memcg.ID{Path: cgroup, Inode: inode}, nil
}

// mostFiles bounds how many files are kept open over all cgroups, whatever the
// limit of open files is. Each holds 4.8 KiB of kernel memory once it was read,
// most of it the buffer of seq_file (seq_read_iter in fs/seq_file.c, measured on
// 6.18), which is charged to this process: 19 MiB, for the files of 256 cgroups.
// Of ten thousand it would be 800 MiB. The files of more cgroups are opened for
// each reading, which costs a few microseconds a file.
const mostFiles = 4096

// raiseFileLimit raises the soft limit of open files to the hard one and
// returns it. Three quarters are for what is kept of cgroups, a third of that for
// files; the rest is for requests, watches and the sockets of the daemon.
func raiseFileLimit() int64 {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 1024 // the kernel's default
	}
	if lim.Cur < lim.Max {
		raised := lim
		raised.Cur = lim.Max
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			lim = raised
		}
	}
	const most = 1 << 30 // "infinity" must not overflow the sum
	return int64(min(lim.Cur, most))
}
