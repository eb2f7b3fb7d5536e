package cgroupfs

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/memagent/memagent/memcg"
)

const (
	// defaultDeadline bounds a request that names no deadline. A request is
	// small against it; it is there for cgroups that give nothing.
	defaultDeadline = 2 * time.Second

	// maxInterrupts is how many interrupted writes in a row without progress
	// end a request. Signals in a worker thread are rare; a storm of them must
	// not become a loop.
	maxInterrupts = 3
)

// Reclaim asks the kernel to take memory from one cgroup, in chunks that are
// each one write(2) to memory.reclaim, and measures what came of it. It blocks
// for as long as the kernel works: call it from a worker, one request a cgroup
// at a time.
//
// Between chunks it stops when ctx is done, when the deadline has passed, when
// the cgroup is gone or nobody is left in it, when memory.current is down to
// the floor, or when enough is gone already, whatever the chunks have asked
// for: kernels may take more than they are asked.
//
// A request for memory of an age (OlderThan) or on some nodes (Nodes), and one
// with a swappiness that memory.reclaim does not take here, goes through
// lru_gen instead: each list of the cgroup and of those below it gives in
// proportion to what it has in such generations. See generationLists for what
// a swappiness means there. Where Nodes is set, lists that have too little to
// evict are aged for it, by as much as is needed; else nothing is aged, and a
// cgroup that was not aged for long may have nothing evictable.
//
// Where lru_gen is not to be had a request for nodes is carried out by a DAMON
// monitor, if AllowDAMON was given to Open: see monitor. Outcome.Refused then
// has why.
//
// Outcome.Err is nil when all was asked for or gone. It Is memcg.ErrPartial
// when the kernel gave up with EAGAIN, which is a normal end, and when the
// request was stopped, or when generations gave less than was asked of them;
// memcg.ErrUnsupported, or memcg.ErrDenied, when memory.reclaim, or the
// swappiness, age or nodes asked for, are not to be had on this host by any way
// (the request is then not repeated without them, and the error has the reason
// of each way); memcg.ErrGone, memcg.ErrDenied, memcg.ErrReadOnly as elsewhere.
func (fs *FS) Reclaim(ctx context.Context, r memcg.Reclaim) memcg.Outcome {
	o := memcg.Outcome{Request: r}
	began := fs.now()
	if o.Err = fs.reclaim(ctx, r, &o, began); o.Err != nil {
		where := ""
		if !r.Nodes.Empty() {
			where = " on nodes " + r.Nodes.String()
		}
		o.Err = fmt.Errorf("reclaim from %s%s: %w", quoteName(r.Cgroup.Path), where, o.Err)
	}
	o.Took = fs.now().Sub(began)
	return o
}

func (fs *FS) reclaim(ctx context.Context, r memcg.Reclaim, o *memcg.Outcome, began time.Time) error {
	t, err := fs.target(r.Cgroup)
	if err != nil {
		return err
	}
	defer t.close()
	run := request{
		t: t, r: r, o: o,
		gauge: newGauge(t),
		pace:  fs.paceOf(r.Cgroup),
		want:  r.Bytes / fs.pageSize * fs.pageSize,
		until: began.Add(defaultDeadline),
	}
	defer run.gauge.close()
	if r.Deadline > 0 {
		run.until = began.Add(r.Deadline)
	}
	if run.want == 0 {
		return &opError{Op: "write", File: fs.file(r.Cgroup.Path, reclaimFile), Kind: memcg.ErrInvalid,
			Hint: strconv.FormatUint(r.Bytes, 10) + " bytes are less than a page"}
	}
	if run.before, err = run.gauge.read(); err != nil {
		return err
	}
	nodes := run.gauge.nodes(r.Nodes)
	err = run.carryOut(ctx)
	after, mErr := run.gauge.read()
	switch {
	case mErr == nil:
		judge(o, run.before, after, fs.pageSize)
		o.Nodes = judgeNodes(nodes, run.gauge.nodes(r.Nodes), fs.pageSize)
	case err == nil || isGone(mErr): // a dying cgroup may answer EAGAIN first
		return mErr
	}
	return err
}

const reclaimFile = "memory.reclaim"

// request is one Reclaim under way.
type request struct {
	t      *target
	r      memcg.Reclaim
	o      *memcg.Outcome
	fd     int // memory.reclaim
	gauge  *gauge
	pace   *pace
	before measured

	want  uint64 // bytes in all, whole pages
	until time.Time

	granted    uint64 // bytes the kernel says it took: chunks that returned success
	gone       uint64 // bytes that are gone by measurement, at the latest look
	ceiling    uint64 // of the next chunk, after an interrupted one; 0 is none
	interrupts int    // in a row without progress
}

// chunks writes chunk after chunk.
func (q *request) chunks(ctx context.Context) error {
	now := q.before
	for {
		if err := q.mayGoOn(ctx, now); err != nil {
			return err
		}
		size, err := q.next(now)
		if size == 0 {
			return err
		}
		if err := q.write(size); err != nil {
			return err
		}
		if now, err = q.gauge.read(); err != nil {
			return err
		}
		gone := now.taken(q.before, q.t.fs.pageSize)
		if gone > q.gone {
			q.interrupts = 0
		}
		q.gone = gone
	}
}

// mayGoOn returns why the request must stop before its next chunk.
func (q *request) mayGoOn(ctx context.Context, now measured) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped: %w: %w", err, memcg.ErrPartial)
	}
	if !q.t.fs.now().Before(q.until) {
		return stopped("out of time")
	}
	if n, ok := now.populated.Get(); ok && n == 0 {
		// Long writes on a dying cgroup hold up its removal and with it every
		// cgroup operation of the host (case c37).
		return stopped("nobody is left in the cgroup")
	}
	if !q.t.fs.lives(q.t.id) {
		return &opError{Op: "write", File: q.t.fs.file(q.t.id.Path, reclaimFile), Kind: memcg.ErrGone}
	}
	if q.interrupts >= maxInterrupts {
		return stopped("interrupted again and again")
	}
	return nil
}

// next returns the bytes of the next chunk, 0 when there is none and why.
func (q *request) next(now measured) (uint64, error) {
	done := max(q.granted, q.gone)
	if done >= q.want {
		return 0, nil
	}
	size := min(q.want-done, q.pace.chunk())
	if q.ceiling > 0 {
		size = min(size, q.ceiling)
	}
	current, _ := now.current.Get()
	if current <= q.r.Floor {
		return 0, stopped("memory.current is down to the floor")
	}
	size = min(size, current-q.r.Floor) / q.t.fs.pageSize * q.t.fs.pageSize
	if size == 0 {
		if current-q.r.Floor < q.t.fs.pageSize {
			return 0, stopped("memory.current is down to the floor")
		}
		return 0, nil // less than a page is left
	}
	return size, nil
}

// write asks for one chunk. Only an error that ends the request is returned.
func (q *request) write(size uint64) error {
	var line [64]byte
	payload := appendRequest(line[:0], size, q.r.Swappiness)
	began := q.t.fs.now()
	q.o.Writes++
	q.o.Via = memcg.ViaReclaim
	err := q.t.write(q.fd, reclaimFile, payload)
	took := q.t.fs.now().Sub(began)
	switch errnoOf(err) {
	case 0:
		if err != nil {
			return err
		}
		q.o.Asked += size
		q.granted += size
		q.ceiling = 0
		q.pace.learn(size, took)
		return nil
	case syscall.EINTR:
		// Some of it may have been done, only counters tell. What is left is
		// asked for anew, never as much at once as was interrupted.
		q.o.Asked += size
		q.interrupts++
		if q.ceiling = size / 2; q.ceiling < q.t.fs.pageSize {
			return err
		}
		return nil
	case syscall.EAGAIN:
		q.o.Asked += size
		q.pace.learn(size, took)
	case syscall.EINVAL:
		if _, asked := q.r.Swappiness.Get(); asked {
			return q.noSwappiness()
		}
	}
	return err
}

// appendRequest appends the line that asks for n bytes. It never names nodes
// (case c32).
func appendRequest(b []byte, n uint64, s memcg.Swappiness) []byte {
	b = strconv.AppendUint(b, n, 10)
	if _, asked := s.Get(); asked {
		b = append(b, " swappiness="...)
		b = append(b, s.String()...)
	}
	return b
}

// stopped is the partial end of a request that the agent ended itself.
func stopped(why string) error { return fmt.Errorf("stopped, %s: %w", why, memcg.ErrPartial) }
