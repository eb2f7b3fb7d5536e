package cgroupfs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// Age makes a new youngest generation on every list of a cgroup and of those
// below it that has pages, so that what is found in use since the one before
// can be told from what is not. took is the CPU time that the kernel worked for
// it: each list of a cgroup costs a walk over the page tables of all its
// processes. It blocks for as long or, where CPUs are scarce, longer: call it
// from a worker.
//
// A list that somebody else aged since this tick's reading is left as it is,
// which is no error. The error is memcg.ErrPartial when ctx ended it between
// two lists or a signal within one; otherwise as for Generations, and for what
// is never written as for Reclaim.
func (fs *FS) Age(ctx context.Context, id memcg.ID) (took time.Duration, err error) {
	if took, err = fs.age(ctx, id); err != nil {
		err = fmt.Errorf("age %s: %w", quoteName(id.Path), err)
	}
	return took, err
}

func (fs *FS) age(ctx context.Context, id memcg.ID) (took time.Duration, err error) {
	t, err := fs.target(id)
	if err != nil {
		return 0, err
	}
	t.close()
	vecs, err := fs.listsToAge(id)
	if err != nil {
		return 0, err
	}
	fd, err := fs.openLRUGen(unix.O_WRONLY)
	if err != nil {
		return 0, err
	}
	defer fs.k.close(fd)
	runtime.LockOSThread() // whose CPU time is read
	defer runtime.UnlockOSThread()
	var refused error
	for i := range vecs {
		v := &vecs[i]
		if err := ctx.Err(); err != nil {
			return took, fmt.Errorf("stopped: %w: %w", err, memcg.ErrPartial)
		}
		if !fs.lives(v.cgroup) {
			if v.cgroup == id {
				return took, &opError{Op: "write", File: fs.file(id.Path, ""), Kind: memcg.ErrGone}
			}
			continue
		}
		var line [128]byte
		began := fs.spent()
		err := fs.writeLRUGen(fd, appendAge(line[:0], v))
		took += fs.spent().Sub(began)
		switch errnoOf(err) {
		case syscall.EEXIST: // from 7.x on: another walk is under way or done
		case syscall.EINVAL:
			// The cgroup or the node went meanwhile, which costs the others
			// nothing.
			if fs.lives(v.cgroup) {
				refused = errors.Join(refused, err)
			}
		default:
			if err != nil {
				return took, err
			}
		}
	}
	return took, refused
}

// listsToAge returns the lists of a cgroup and of those below it that have
// pages, seq being the youngest generation of each.
func (fs *FS) listsToAge(id memcg.ID) ([]lruvec, error) {
	l := &fs.lru
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := fs.readLRUGen(false); err != nil {
		return nil, err
	}
	var vecs []lruvec
	first, last, _ := l.subtree(id)
	for i := first; i < last; i++ {
		kernelID, gens := l.entry(i)
		for list := range lists(gens) {
			vecs = append(vecs, lruvec{cgroup: l.ids[i], id: kernelID, node: list[0].Node, seq: list[len(list)-1].Seq})
		}
	}
	return vecs, nil
}

// threadTime is the CPU time of the calling thread, since a moment that is the same for all calls on
// it: the time that a loaded machine makes it wait is not its own cost.
func threadTime() time.Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return time.Now() // every Linux has that clock
	}
	return time.Unix(ts.Unix())
}
