package cgroupfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// evictBatch is how many pages lru_gen takes at a time (MIN_LRU_BATCH in
// mm/vmscan.c): with less asked it takes as many all the same, and with fewer
// slots free in swap it is of no use to send it for anon.
const evictBatch = 64

// lruvec is one list that a request may take from: one cgroup's on one node.
type lruvec struct {
	cgroup     memcg.ID
	id         uint64 // the cgroup's in lru_gen
	node       memcg.NodeID
	seq        uint64 // the youngest generation that may go
	anon, file uint64 // pages in it and in older ones
	asked      uint64 // pages that were asked of it
}

// pages returns how many pages a swappiness lets go.
func (v *lruvec) pages(swappiness int) uint64 {
	switch swappiness {
	case 0:
		return v.file
	case memcg.SwappinessMax:
		return v.anon
	}
	return v.anon + v.file
}

// eviction is a request that is carried out through lru_gen, one command a
// write. The kernel honours neither memory.min nor memory.low there, tries anon
// without room in swap, and reports success whatever it freed, so all of that
// is looked after here.
type eviction struct {
	*request
	swappiness int
	vecs       []lruvec // that have something to give, the largest first
	left       uint64   // pages that no list has been asked for yet
	now        measured
	reread     bool // the listing was read anew after EINVAL
	refused    error
	short      string // why a list gave less than it has, "" when none did
}

func (q *request) evict(ctx context.Context) error {
	err := q.evictLists(ctx)
	if err == nil || q.r.OlderThan > 0 || q.o.Asked > 0 || isGone(err) || errors.Is(err, memcg.ErrPartial) {
		return err
	}
	// Here because memory.reclaim refuses the swappiness: that is what the
	// operator must hear of first.
	return fmt.Errorf("%w; nor can it be done through lru_gen: %v", q.noSwappiness(), err)
}

func (q *request) evictLists(ctx context.Context) (err error) {
	fs := q.t.fs
	e := eviction{request: q, left: q.want / fs.pageSize, now: q.before}
	if e.swappiness, err = fs.swappinessFor(q.r.Swappiness); err != nil {
		return err
	}
	if err := e.look(false); err != nil {
		return err
	}
	if q.fd, err = fs.openLRUGen(unix.O_WRONLY); err != nil {
		return err
	}
	defer fs.k.close(q.fd)
	again := true
	for again {
		if again, err = e.round(ctx); err != nil {
			return err
		}
		if again {
			e.reread = true
			if err := e.look(true); err != nil {
				return err
			}
		}
	}
	return e.verdict()
}

// swappinessFor returns what a request must pass: its place in the command is
// before the number of pages, so where nothing is asked for it is the kernel's
// own.
func (fs *FS) swappinessFor(s memcg.Swappiness) (int, error) {
	if v, asked := s.Get(); asked {
		return v, nil
	}
	const file = "proc/sys/vm/swappiness"
	b, err := fs.readHostFile(file)
	if err != nil {
		return 0, err
	}
	v, ok := parseUint(trimLine(b))
	if !ok || v > 200 {
		return 0, &opError{Op: "read", File: path.Join(fs.root, file), Kind: memcg.ErrInvalid, Hint: "not 0 to 200: " + oneLine(b)}
	}
	return int(v), nil
}

// look finds the lists that may give, in this tick's reading or a fresh one.
func (e *eviction) look(fresh bool) error {
	fs := e.t.fs
	l := &fs.lru
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := fs.readLRUGen(fresh); err != nil {
		return err
	}
	e.vecs = e.vecs[:0]
	since := fs.now().Sub(l.read)
	first, last, _ := l.subtree(e.r.Cgroup)
	for i := first; i < last; i++ {
		kernelID, gens := l.entry(i)
		for list := range lists(gens) {
			v := lruvec{cgroup: l.ids[i], id: kernelID, node: list[0].Node}
			for _, g := range list {
				if !g.Evictable || g.Age+since < e.r.OlderThan {
					break
				}
				v.seq, v.anon, v.file = g.Seq, v.anon+g.AnonPages, v.file+g.FilePages
			}
			if v.pages(e.swappiness) > 0 {
				e.vecs = append(e.vecs, v)
			}
		}
	}
	slices.SortStableFunc(e.vecs, func(a, b lruvec) int { return cmp.Compare(b.pages(e.swappiness), a.pages(e.swappiness)) })
	return nil
}

// lists yields the generations of one node after the other.
func lists(gens []memcg.Generation) func(yield func([]memcg.Generation) bool) {
	return func(yield func([]memcg.Generation) bool) {
		for len(gens) > 0 {
			n := 1
			for n < len(gens) && gens[n].Node == gens[0].Node {
				n++
			}
			if !yield(gens[:n]) {
				return
			}
			gens = gens[n:]
		}
	}
}

// round asks each list for its share. What one cannot give passes on to those
// after it. again is true when the listing must be read anew first.
func (e *eviction) round(ctx context.Context) (again bool, err error) {
	var rest uint64 // pages in this and all later lists
	for i := range e.vecs {
		rest += e.vecs[i].pages(e.swappiness)
	}
	for i := range e.vecs {
		v := &e.vecs[i]
		has := v.pages(e.swappiness)
		share := min(max(uint64(float64(e.left)*(float64(has)/float64(rest))), evictBatch), has, e.left)
		rest -= has
		for share > 0 {
			n, err := e.take(ctx, v, share)
			switch {
			case errnoOf(err) == syscall.EINVAL && !e.t.fs.lives(v.cgroup):
				n = 0 // gone, and what it had with it
			case errnoOf(err) == syscall.EINVAL && !e.reread:
				return true, nil
			case errnoOf(err) == syscall.EINVAL:
				n, e.refused = 0, err
			case err != nil:
				return false, err
			}
			if n == 0 {
				break
			}
			share -= n
			e.left -= n
		}
		if e.left == 0 || e.gone >= e.want {
			break
		}
	}
	return false, nil
}

// take asks one list for one chunk of at most so many pages and returns how
// many it asked for, 0 when the list may give no more.
func (e *eviction) take(ctx context.Context, v *lruvec, most uint64) (pages uint64, err error) {
	fs := e.t.fs
	if err := e.mayGoOn(ctx, e.now); err != nil {
		return 0, err
	}
	bytes, err := e.next(e.now)
	if bytes == 0 {
		return 0, err
	}
	bounds := fs.evictBounds(e.r.Cgroup.Path, v.cgroup.Path)
	if bounds.spare < fs.pageSize {
		e.short = "the rest is protected by memory.min or memory.low"
	}
	swappiness := e.swappiness
	pages = min(most, bytes/fs.pageSize, bounds.spare/fs.pageSize)
	if room := bounds.swap / fs.pageSize; swappiness > 0 && room < evictBatch {
		e.short = "swap has no room for anon"
		if swappiness == memcg.SwappinessMax {
			return 0, nil
		}
		swappiness = 0
	} else if swappiness > 0 {
		pages = min(pages, room)
	}
	has := v.pages(swappiness)
	if pages = min(pages, has-min(has, v.asked)); pages == 0 {
		return 0, nil
	}
	// Last of all: the id of a cgroup that has gone may be another's.
	if !fs.lives(v.cgroup) {
		return 0, nil
	}
	took, err := e.command(v, swappiness, pages)
	if err != nil {
		return 0, err
	}
	v.asked += pages
	if e.now, err = e.gauge.read(); err != nil {
		return 0, err
	}
	gone := e.now.taken(e.before, fs.pageSize)
	if gone > e.gone {
		e.interrupts = 0
	}
	// A command that freed little was quick for no other reason, and says
	// nothing of how long one that frees all takes.
	if size := pages * fs.pageSize; took > aimedWrite || gone >= e.gone+size/2 {
		e.pace.learn(size, took)
	}
	e.gone = gone
	return pages, nil
}

// command writes one command. An interrupted one may have done some of its
// work; the next is smaller.
func (e *eviction) command(v *lruvec, swappiness int, pages uint64) (took time.Duration, err error) {
	fs := e.t.fs
	var line [128]byte
	size := pages * fs.pageSize
	began := fs.now()
	e.o.Writes++
	e.o.Via = memcg.ViaLRUGen
	err = fs.writeLRUGen(e.fd, appendEvict(line[:0], v, swappiness, pages))
	took = fs.now().Sub(began)
	switch {
	case err == nil:
		e.ceiling = 0
	case errnoOf(err) == syscall.EINTR:
		e.interrupts++
		if e.ceiling = size / 2; e.ceiling < fs.pageSize {
			return took, err
		}
	default:
		return took, err
	}
	e.o.Asked += size
	return took, nil
}

// verdict tells how the request ended once every list was asked.
func (e *eviction) verdict() error {
	switch {
	case e.gone >= e.want:
		return nil
	case e.refused != nil && e.o.Asked == 0:
		if e.swappiness == memcg.SwappinessMax {
			return &opError{Op: "write", File: path.Join(e.t.fs.root, lruGenFile), Kind: memcg.ErrUnsupported, Errno: syscall.EINVAL,
				Hint: "this kernel takes no swappiness of max there (6.16)"}
		}
		return e.refused
	case e.short != "":
		return stopped(e.short)
	case e.o.Asked > 0:
		return stopped("the generations gave less than was asked of them")
	case e.r.OlderThan > 0:
		return stopped("no generation is older than " + e.r.OlderThan.String())
	}
	return stopped("no generation can be evicted before the cgroup is aged")
}
