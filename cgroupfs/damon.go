package cgroupfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
)

// monitor is page-out by DAMON: a monitor of the physical memory of the
// request's nodes, with a scheme for the cgroup and one for each below it that
// pages out what is theirs. It needs neither debugfs nor the multi-gen LRU, and
// works under lockdown. It is used only where AllowDAMON was given and nobody
// else uses DAMON: one that runs is never stopped to make room.
//
// It goes through the nodes window after window, each gone through once. A
// window is no larger than what is left to take, so a request overshoots by a
// quarter at most, and never crosses its floor. What was used since DAMON looked
// at it last is spared and only marked as seen: of memory that was never looked
// at, a first request frees next to nothing, and a later one what was not used
// in between. Requests go on where the one before ended.
//
// There is no balance of anon and file. A swappiness of 0 or 1 takes file alone,
// 200 and max anon alone, any other what is idle of both. pgsteal does not
// count what goes this way, so Outcome.Reclaimed has none of it: see Shrunk and
// Nodes. Memory of cgroups that memory.min or memory.low protect to within what
// is asked is left alone altogether.
//
// The kernel finds a cgroup by its path and takes the first that has it. That
// may be a removed one that lingers; then only its memory goes.
type monitor struct{}

func (monitor) name() string { return memcg.ViaDAMON }

// AllowDAMON lets requests for nodes be carried out by a DAMON monitor where
// lru_gen is not to be had.
func AllowDAMON() Option { return func(fs *FS) { fs.damon.allowed = true } }

// withWait replaces the wait for a monitor's work, for tests.
func withWait(wait func(context.Context, time.Duration)) Option {
	return func(fs *FS) { fs.damon.wait = wait }
}

// damon is what an FS keeps of DAMON from request to request.
type damon struct {
	allowed bool
	wait    func(context.Context, time.Duration)
	mu      sync.Mutex // held over a request: there is one monitor
	at      uint64     // physical address at which the next window begins
}

const (
	// damonSchemes is the most cgroups that one monitor pages out of: every
	// page of a window is looked at once for each.
	damonSchemes = 32
	// damonLeast is the least that a window is worth, in bytes.
	damonLeast = 256 << 10
	// damonPass is how long a monitor runs for a window: long enough to have
	// its schemes applied once, too short for a second time, which would take
	// what was merely not used for 40 ms.
	damonPass = damonInterval * 3 / 2 * time.Microsecond
)

func (monitor) run(ctx context.Context, q *request) (err error) {
	fs := q.t.fs
	switch {
	case !fs.damon.allowed:
		return &declined{&opError{Op: "use", File: fs.root + "/" + damonAdmin, Kind: memcg.ErrDenied, Hint: "the configuration does not allow it (host.damon)"}}
	case fs.layout.Namespaced:
		return &declined{&opError{Op: "use", File: fs.root + "/" + damonAdmin, Kind: memcg.ErrUnsupported,
			Hint: "it finds cgroups by the host's paths, and only a part of the hierarchy is visible at " + fs.layout.Mount}}
	}
	if !fs.damon.mu.TryLock() {
		return stopped("another request is using DAMON")
	}
	defer fs.damon.mu.Unlock()
	spans, err := fs.physicalMemory(q.r.Nodes)
	if err == nil {
		err = fs.damonFree()
	}
	if err != nil {
		return &declined{err}
	}
	of, err := q.kindsToPageOut()
	if err != nil {
		return err
	}
	schemes := q.schemes()
	if len(schemes) == 0 {
		return stopped("memory.min or memory.low protect all of it")
	}
	if err := q.mayGoOn(ctx, q.before); err != nil {
		return err
	}
	d := daemon{fs: fs, writes: &q.o.Writes}
	defer func() { err = errors.Join(err, d.takeDown()) }()
	if err := d.setUp(schemes, of); err != nil {
		return &declined{err}
	}
	return q.windows(ctx, &d, spans, len(schemes))
}

// kindsToPageOut returns what a swappiness lets go, for as long as swap has
// room.
func (q *request) kindsToPageOut() (kinds, error) {
	fs := q.t.fs
	v, err := fs.swappinessFor(q.r.Swappiness)
	switch {
	case err != nil:
		return 0, err
	case v == 0:
		return fileAlone, nil
	}
	room := fs.evictBounds(q.r.Cgroup.Path, q.r.Cgroup.Path).swap
	switch {
	case v >= anonFirst && room < q.want:
		return 0, stopped("swap has no room for anon")
	case v >= anonFirst:
		return anonAlone, nil
	case room < q.want:
		return fileAlone, nil
	}
	return bothKinds, nil
}

// schemes returns the cgroup and those below it, those with the most memory of
// their own first, without those that are protected.
func (q *request) schemes() []scheme {
	fs := q.t.fs
	all, _ := fs.Cgroups(nil) // what could not be listed is told by who lists for the tick
	type candidate struct {
		scheme
		own uint64 // bytes, without those below
	}
	var list []candidate
	at := map[string]int{}
	buf := make([]byte, 256)
	for _, id := range all { // parents first
		if id != q.r.Cgroup && !isAbove(q.r.Cgroup.Path, id.Path) {
			continue
		}
		dir, err := fs.open(id)
		if err != nil {
			continue
		}
		current, _ := fs.limitIn(dir, memoryCurrent, buf).Bytes()
		_ = fs.k.close(dir)
		if parent, ok := at[path.Dir(id.Path)]; ok {
			list[parent].own -= min(list[parent].own, current)
		}
		at[id.Path] = len(list)
		list = append(list, candidate{scheme{id}, current})
	}
	list = slices.DeleteFunc(list, func(c candidate) bool {
		return c.own < fs.pageSize || fs.evictBounds(q.r.Cgroup.Path, c.cgroup.Path).spare < q.want
	})
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.own, a.own) })
	var out []scheme
	for _, c := range list[:min(len(list), damonSchemes)] {
		out = append(out, c.scheme)
	}
	return out
}

// windows goes through the nodes' memory once, or until enough is gone.
func (q *request) windows(ctx context.Context, d *daemon, spans []span, schemes int) error {
	fs := q.t.fs
	var all, tried uint64
	for _, s := range spans {
		all += s.end - s.start
	}
	for now := q.before; tried < all; {
		if err := q.mayGoOn(ctx, now); err != nil {
			return err
		}
		current, _ := now.current.Get()
		if current < q.r.Floor+min(q.want, damonLeast) {
			return stopped("memory.current is down to the floor")
		}
		size := min(max(q.want-q.gone, q.want/4), current-q.r.Floor) / fs.pageSize * fs.pageSize
		w := window(spans, fs.damon.at, max(size, fs.pageSize))
		if err := d.start(w, schemes); err != nil {
			if q.o.Asked > 0 {
				return err
			}
			return &declined{fmt.Errorf("another user of DAMON may have come first: %w", err)}
		}
		q.o.Via, q.o.Asked = memcg.ViaDAMON, q.want
		fs.damon.wait(ctx, damonPass)
		if err := d.stop(); err != nil {
			return err
		}
		fs.damon.at, tried = w.end, tried+(w.end-w.start)
		var err error
		if now, err = q.gauge.read(); err != nil {
			return err
		}
		if q.gone = now.taken(q.before, fs.pageSize); q.gone >= q.want {
			return nil
		}
	}
	return stopped("what is left was in use since it was last looked at")
}

// waitFor waits for a time or the end of ctx.
func waitFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
