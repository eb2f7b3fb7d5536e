package cgroupfs

import (
	"context"
	"errors"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// generationLists is eviction through lru_gen of debugfs, list by list: exact
// as to cgroup, node, age and amount. The kernel honours neither memory.min nor
// memory.low there, tries anon without room in swap, and reports success
// whatever it freed, so all of that is looked after here.
//
// What a swappiness makes go was measured on 6.12.117 and 7.3.4 with both kinds
// in one generation and in different ones (docs/architecture.md):
//
//   - 0 takes file alone. 1 goes on with anon where file runs out, and 6.12 does
//     so wherever anon is in the older generation, so 0 is sent in its stead.
//   - max takes anon alone on 7.3. Kernels before 6.16 do not know it. There 200
//     comes nearest: it takes anon first of what is in the oldest generation,
//     but the oldest generation goes first whatever is in it, and file read
//     once is in the oldest. So they are asked for no more than the oldest
//     generation has of anon; and a request for nodes has lists aged until the
//     oldest generation, merged into the next each time, has enough.
//   - 200 is anon as with max, and file only where that is not enough.
//   - In between the kernel decides, by what came back of which.
type generationLists struct{}

func (generationLists) name() string { return memcg.ViaLRUGen }

// run declines with any error that came before anything was asked for, except
// those that another way would meet as well.
func (generationLists) run(ctx context.Context, q *request) error {
	err := q.evict(ctx)
	if err == nil || q.o.Asked > 0 || isGone(err) || errors.Is(err, memcg.ErrPartial) {
		return err
	}
	return &declined{err}
}

// evictBatch is how many pages lru_gen takes at a time (MIN_LRU_BATCH in
// mm/vmscan.c): with less asked it takes as many all the same, and with fewer
// slots free in swap it is of no use to send it for anon.
const evictBatch = 64

// eviction is a request that is carried out through lru_gen, one command a
// write.
type eviction struct {
	*request
	swappiness int      // as asked for, 0 for 1
	counts     int      // swappiness by which pages are counted in this round
	vecs       []lruvec // that have something to give, the largest first
	there      bool     // there are lists, whether or not they have something to give
	left       uint64   // pages that no list has been asked for yet
	now        measured
	reread     bool // the listing was read anew after EINVAL
	noMax      bool // the kernel seems not to know max
	ages       int  // how often lists were aged
	refused    error
	short      string // why a list gave less than it has, "" when none did
}

func (q *request) evict(ctx context.Context) (err error) {
	fs := q.t.fs
	e := eviction{request: q, left: q.want / fs.pageSize, now: q.before}
	if e.swappiness, err = fs.swappinessFor(q.r.Swappiness); err != nil {
		return err
	}
	e.counts = e.swappiness
	if e.swappiness == anonFirst {
		e.counts = memcg.SwappinessMax
	}
	if err := e.look(false); err != nil {
		return err
	}
	if q.fd, err = fs.openLRUGen(unix.O_WRONLY); err != nil {
		return err
	}
	defer fs.k.close(q.fd)
	if err := e.rounds(ctx); err != nil {
		return err
	}
	if e.swappiness == anonFirst && e.left > 0 && e.gone < e.want {
		e.counts, e.reread = anonFirst, false
		if err := e.look(true); err != nil {
			return err
		}
		if err := e.rounds(ctx); err != nil {
			return err
		}
	}
	return e.verdict()
}

// anonFirst is the swappiness with which file goes only where there is no
// anon.
const anonFirst = 200

// mostRounds bounds how often the lists of one request are gone through. Pages
// are passed over that are dirty, locked or found in use, and a few more
// commands bring a request to what it asked for.
const mostRounds = 4

// rounds asks the lists until enough is gone or they give no more. Only a
// request for nodes goes round again: others are repeated by who made them.
func (e *eviction) rounds(ctx context.Context) error {
	byNode := !e.r.Nodes.Empty()
	for n := 1; ; n++ {
		if byNode {
			if err := e.ripen(ctx); err != nil {
				return err
			}
		}
		before := e.gone
		again, err := e.round(ctx)
		switch {
		case err != nil:
			return err
		case again:
		case byNode && n < mostRounds && e.gone > before && e.gone+evictBatch*e.t.fs.pageSize < e.want:
			e.left = (e.want - e.gone) / e.t.fs.pageSize
			// What was asked for and not given is asked for anew.
			e.o.Asked = min(e.o.Asked, e.want-e.left*e.t.fs.pageSize)
		default:
			return nil
		}
		if err := e.look(true); err != nil {
			return err
		}
	}
}

// swappinessFor returns what a request must pass: its place in the command is
// before the number of pages, so where nothing is asked for it is the kernel's
// own.
func (fs *FS) swappinessFor(s memcg.Swappiness) (int, error) {
	if v, asked := s.Get(); asked {
		if v == 1 {
			v = 0
		}
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

// round asks each list for its share. What one cannot give passes on to those
// after it. again is true when the listing must be read anew first.
func (e *eviction) round(ctx context.Context) (again bool, err error) {
	var rest uint64 // pages in this and all later lists
	for i := range e.vecs {
		rest += e.vecs[i].pages(e.counts)
	}
	for i := range e.vecs {
		v := &e.vecs[i]
		has := v.pages(e.counts)
		if has == 0 {
			break // as have all later ones
		}
		share := min(max(uint64(float64(e.left)*(float64(has)/float64(rest))), evictBatch), has, e.left)
		rest -= has
		for share > 0 {
			n, err := e.take(ctx, v, share)
			switch {
			case errnoOf(err) == syscall.EINVAL && !e.t.fs.lives(v.cgroup):
				n = 0 // gone, and what it had with it
			case errnoOf(err) == syscall.EINVAL && !e.reread:
				e.reread = true
				return true, nil
			case errnoOf(err) == syscall.EINVAL && e.send() == memcg.SwappinessMax:
				// The list has changed again, or the kernel does not know the
				// word: the next command shows which.
				e.noMax = true
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
