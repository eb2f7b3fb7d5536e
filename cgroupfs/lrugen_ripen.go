package cgroupfs

import (
	"cmp"
	"context"
	"slices"
	"syscall"

	"github.com/memagent/memagent/memcg"
)

// ripen ages the lists of a request for nodes that have too little to evict.
// The two youngest generations are never evicted from: what was touched last
// before there were others is among them, and goes only once newer ones are
// made. Each time the kernel looks which pages are in use and moves those to
// the newest, so what comes to be evictable is what was not.
//
// A list is aged at most twice for one request. That is enough to free what was
// in the youngest generation and idle, and what is in use is still safe, since
// it was moved by the first and is in the youngest but one after the second. One
// time more is allowed where only the oldest generation is taken from, to have
// the one before it merged into it: what is in use is never there. Lists are taken in order of what they would add, as many as are needed: each
// is a walk over the page tables of all processes of its cgroup.
func (e *eviction) ripen(ctx context.Context) error {
	most := youngest
	if e.mixes() {
		most++
	}
	for e.ages < most {
		var have uint64
		for i := range e.vecs {
			have += e.vecs[i].pages(e.counts)
		}
		if have >= e.left {
			return nil
		}
		byLate := slices.Clone(e.vecs)
		slices.SortStableFunc(byLate, func(a, b lruvec) int { return cmp.Compare(b.late.pages(e.counts), a.late.pages(e.counts)) })
		aged := false
		for i := range byLate {
			v := &byLate[i]
			if have >= e.left || v.late.pages(e.counts) == 0 {
				break
			}
			if err := e.mayGoOn(ctx, e.now); err != nil {
				return err
			}
			if !e.t.fs.lives(v.cgroup) {
				continue
			}
			if err := e.age(v); err != nil {
				return err
			}
			have += v.late.pages(e.counts)
			aged = true
		}
		if !aged {
			return nil
		}
		e.ages++
		if err := e.look(true); err != nil {
			return err
		}
	}
	return nil
}

// age makes one new generation on one list. Where somebody else did so since
// the reading it is left at that, and where the cgroup or the node went
// meanwhile the next reading shows it.
func (e *eviction) age(v *lruvec) error {
	old := *v
	old.seq = v.last
	var line [128]byte
	e.o.Writes++
	e.o.Via = memcg.ViaLRUGen
	err := e.t.fs.writeLRUGen(e.fd, appendAge(line[:0], &old))
	switch errnoOf(err) {
	case syscall.EEXIST, syscall.EINVAL, syscall.EINTR:
		return nil
	}
	return err
}
