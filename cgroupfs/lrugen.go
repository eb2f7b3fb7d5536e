package cgroupfs

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// lruGen is the latest reading of the lru_gen listing, which holds all cgroups
// of the host. A reading costs the kernel a walk over all of them for every
// page of text (seq_file hands out one page a read and begins anew each time),
// so one serves a whole tick, and several where there are so many cgroups that
// it takes long.
//
// An older reading is safe to act on: numbers of generations only grow, pages
// leave an old generation for younger ones and never come back to it, and the
// kernel's id of a cgroup does not change while the cgroup lives.
type lruGen struct {
	mu   sync.Mutex // held over a reading
	tick uint64     // of the reading
	err  error      // why there is none
	read time.Time  // when it was begun: ages are as of then
	took time.Duration

	lruGenListing
	ids, spare []memcg.ID       // living cgroups as they were before the listing, parents first, the root at 0
	place      map[string]int32 // in ids, by path
	chosen     []int32          // for each of ids its entry in listed, or one of the values below
	buf        []byte
}

// lruGenRest is how many times as long as a reading took the next one waits:
// readings take a fiftieth of one CPU at most. It is felt from some thousands
// of cgroups on; below, a reading takes a few milliseconds.
const lruGenRest = 50

// Values of chosen that are no place.
const (
	unlisted  int32 = -1
	ambiguous int32 = -2
)

// Generations appends the generations of a cgroup and of every cgroup below
// it, each of which has a list on each node: list after list, oldest
// generation first. Lists without a page are left out, and so are cgroups made
// since the reading and removed ones whose pages linger.
//
// The listing is read at most once after each BeginTick, by the first call
// that needs it; where ticks follow on each other fast, or where there are so
// many cgroups that it takes long, in some ticks only. Ages are those of now all the same, numbers of pages those
// of the reading. Before the first BeginTick it is read with every call.
//
// memcg.ErrUnsupported: the multi-gen LRU is not built in or is switched off,
// debugfs is not mounted, or the paths in the listing cannot be matched with
// those of a namespaced mount. memcg.ErrDenied: debugfs may not be read, as
// under lockdown. The error tells the remedy. memcg.ErrGone: there is no such
// cgroup. memcg.ErrInvalid: the listing is not in the known format.
func (fs *FS) Generations(id memcg.ID, dst []memcg.Generation) ([]memcg.Generation, error) {
	l := &fs.lru
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := fs.readLRUGen(false); err != nil {
		return dst, fmt.Errorf("generations of %s: %w", quoteName(id.Path), err)
	}
	first, last, ok := l.subtree(id)
	if !ok {
		dir, err := fs.open(id)
		if err != nil {
			return dst, fmt.Errorf("generations of %s: %w", quoteName(id.Path), err)
		}
		_ = fs.k.close(dir)
		return dst, nil
	}
	since := fs.now().Sub(l.read)
	for i := first; i < last; i++ {
		_, gens := l.entry(i)
		for _, g := range gens {
			g.Age += since
			dst = append(dst, g)
		}
	}
	return dst, nil
}

// subtree returns the places in ids of a cgroup and all below it.
func (l *lruGen) subtree(id memcg.ID) (first, last int, ok bool) {
	at, found := l.place[id.Path]
	if !found || l.ids[at] != id {
		return 0, 0, false
	}
	first = int(at)
	for last = first + 1; last < len(l.ids) && isAbove(id.Path, l.ids[last].Path); last++ {
	}
	return first, last, true
}

// entry returns the kernel's id of the cgroup at a place of ids, and its
// generations: none when the listing has nothing that is certain.
func (l *lruGen) entry(at int) (id uint64, gens []memcg.Generation) {
	if l.chosen[at] < 0 {
		return 0, nil
	}
	e := l.listed[l.chosen[at]]
	return e.id, l.gens[e.first:e.end]
}

// readLRUGen makes sure of a reading of this tick, or of a fresh one. The
// caller holds fs.lru.mu.
func (fs *FS) readLRUGen(fresh bool) error {
	l := &fs.lru
	tick, now := fs.tick.Load(), fs.now()
	if !fresh && tick != 0 && (l.tick == tick || l.err == nil && now.Sub(l.read) < lruGenRest*l.took) {
		return l.err
	}
	l.tick, l.read = tick, now
	l.err = fs.loadLRUGen(l)
	if l.took = fs.now().Sub(now); l.err != nil {
		l.lruGenListing.reset()
		l.ids = l.ids[:0]
		clear(l.place)
	}
	return l.err
}

func (fs *FS) loadLRUGen(l *lruGen) error {
	if err := fs.lruGenOn(); err != nil {
		return err
	}
	if err := fs.listLiving(l); err != nil {
		return err
	}
	fd, err := fs.openLRUGen(unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer fs.k.close(fd)
	p := lruGenParser{place: l.place, to: &l.lruGenListing}
	l.lruGenListing.reset()
	if l.buf, err = p.read(fs.k, fd, l.buf); err != nil {
		return fs.hostFileError("read", lruGenFile, err)
	}
	l.choose()
	return nil
}

// listLiving lists all cgroups. It comes before the listing is read, so that a
// cgroup with the same inode at the same path afterwards was there meanwhile.
func (fs *FS) listLiving(l *lruGen) error {
	root, err := fs.Lookup("/")
	if err != nil {
		return err
	}
	// What could not be listed is told by who lists for the tick.
	ids, err := fs.Cgroups(append(l.spare[:0], root))
	if err != nil && len(ids) == 1 {
		return err
	}
	l.spare, l.ids = l.ids, ids
	if l.place == nil || !slices.Equal(l.spare, l.ids) {
		l.place = make(map[string]int32, len(ids))
		for i, id := range ids {
			l.place[id.Path] = int32(i)
		}
	}
	return nil
}

// choose finds out which entry of the listing is which living cgroup's.
// Removed cgroups stay listed under their old path for as long as pages are
// charged to them, so a path may be there more than once.
//
// From 7.0 on an id is the inode of the cgroup's directory, and only the entry
// with the right one counts. Before, ids are private, small and recycled, and
// known from the listing alone; a removed cgroup has id 0, or keeps its own
// for as long as its pages are in swap. Then a path counts if it is listed
// with one id other than 0: the living cgroup was there before the reading, so
// the one is its. With more than one nothing tells which, and none is taken:
// what is evicted by the wrong id may be another cgroup's by then.
func (l *lruGen) choose() {
	l.chosen = slices.Grow(l.chosen[:0], len(l.ids))[:len(l.ids)]
	for i := range l.chosen {
		l.chosen[i] = unlisted
	}
	// Which scheme it is shows in what most cgroups have.
	for i, e := range l.listed {
		if e.id == l.ids[e.place].Inode {
			l.chosen[e.place] = int32(i)
		} else if l.chosen[e.place] == unlisted {
			l.chosen[e.place] = ambiguous
		}
	}
	byInode := 0
	for _, c := range l.chosen[1:] { // the root is 1 in both
		switch {
		case c == ambiguous:
			byInode--
		case c >= 0:
			byInode++
		}
	}
	inodes := byInode > 0
	for i := range l.chosen {
		l.chosen[i] = unlisted
	}
	for i, e := range l.listed {
		switch at := e.place; {
		case e.id == 0 || inodes && e.id != l.ids[at].Inode:
		case l.chosen[at] == unlisted:
			l.chosen[at] = int32(i)
		default:
			l.chosen[at] = ambiguous
		}
	}
}

// lruGenOn returns nil where the multi-gen LRU is switched on. The files of
// one that is off are there all the same, and do nothing.
func (fs *FS) lruGenOn() error {
	unsupported := func(file, hint string) error {
		return &opError{Op: "use", File: path.Join(fs.root, file), Kind: memcg.ErrUnsupported, Hint: hint}
	}
	if fs.layout.Namespaced {
		return unsupported(lruGenFile, "it has the host's paths of cgroups, and only a part of the hierarchy is visible at "+
			fs.layout.Mount+"; run the agent in the host's cgroup namespace with the host's /sys/fs/cgroup")
	}
	b, err := fs.readHostFile(lruGenEnabled)
	switch {
	case errors.Is(err, memcg.ErrUnsupported):
		return unsupported(lruGenEnabled, "there is none: the multi-gen LRU needs a kernel from 6.1 on, built with CONFIG_LRU_GEN")
	case err != nil:
		return err
	}
	bits, err := strconv.ParseUint(oneLine(b), 0, 16)
	switch {
	case err != nil:
		return &opError{Op: "read", File: path.Join(fs.root, lruGenEnabled), Kind: memcg.ErrInvalid, Hint: "not a set of bits: " + strconv.Quote(oneLine(b))}
	case bits&1 == 0:
		return unsupported(lruGenEnabled, "the multi-gen LRU is switched off; write y to it")
	}
	return nil
}

// openLRUGen opens the file for reading or writing; it tells what the operator
// can do where it may not.
func (fs *FS) openLRUGen(flags int) (fd int, err error) {
	fd, err = fs.k.open(fs.rootDir, lruGenFile, flags, inRoot)
	if err == nil {
		return fd, nil
	}
	e := fs.hostFileError("open", lruGenFile, err)
	switch e.Kind {
	case memcg.ErrUnsupported:
		e.Hint = "mount debugfs: mount -t debugfs none /sys/kernel/debug"
	case memcg.ErrDenied:
		e.Hint = "debugfs is for root alone, and in a container it must be the host's"
		if mode := (&prober{fs: fs}).lockdown(); mode != "" && mode != "none" {
			e.Hint = "lockdown is " + mode + ", which forbids it; Secure Boot turns that on"
		}
	}
	return -1, e
}
