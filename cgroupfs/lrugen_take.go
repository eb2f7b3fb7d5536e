package cgroupfs

import (
	"context"
	"syscall"
	"time"

	"github.com/memagent/memagent/memcg"
)

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
	send, has := e.send(), v.pages(e.counts)
	pages = min(most, bytes/fs.pageSize, bounds.spare/fs.pageSize)
	if room := bounds.swap / fs.pageSize; send > 0 && room < evictBatch {
		e.short = "swap has no room for anon"
		if e.counts == memcg.SwappinessMax {
			return 0, nil
		}
		send, has = 0, v.file
	} else if send > 0 {
		pages = min(pages, room)
	}
	if pages = min(pages, has-min(has, v.asked)); pages == 0 {
		return 0, nil
	}
	// Last of all: the id of a cgroup that has gone may be another's.
	if !fs.lives(v.cgroup) {
		return 0, nil
	}
	took, err := e.command(v, send, pages)
	if err != nil {
		return 0, err
	}
	if e.noMax {
		fs.refused.evictMax.Store(true)
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

// send returns the swappiness of the next command.
func (e *eviction) send() int {
	switch {
	case e.counts != memcg.SwappinessMax:
		return e.swappiness
	case e.mixes():
		return anonFirst
	}
	return memcg.SwappinessMax
}

// mixes reports whether anon alone is to be had from this kernel only by what
// it is asked for: see generationLists.
func (e *eviction) mixes() bool {
	return e.counts == memcg.SwappinessMax && (e.noMax || e.t.fs.refused.evictMax.Load())
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
		return e.refused
	case e.short != "":
		return stopped(e.short)
	case e.mixes():
		return stopped("file is in the oldest generation, which goes first, and this kernel knows no swappiness of max there (6.16)")
	case e.o.Asked > 0:
		return stopped("the generations gave less than was asked of them")
	case !e.there && !e.r.Nodes.Empty():
		return stopped("it has no memory there")
	case e.r.OlderThan > 0:
		return stopped("no generation is older than " + e.r.OlderThan.String())
	case !e.r.Nodes.Empty():
		return stopped("it has no memory there of the kind that a swappiness of " + memcg.SwappinessOf(e.swappiness).String() + " takes")
	}
	return stopped("no generation can be evicted before the cgroup is aged")
}
