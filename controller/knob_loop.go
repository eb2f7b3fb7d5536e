package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

const (
	// putBackWithin bounds the end, from the moment it is asked for until all
	// knobs are put back, and the way down of one cgroup whose policy went. What is
	// not done by then is in the journal, for the next start and for memagent
	// restore.
	putBackWithin = 5 * time.Second
	// shrinkWithin bounds one request for what was lent, and restoreLeast is what is
	// left of the end for undoing, whatever the reclaim before it took.
	shrinkWithin = 2 * time.Second
	restoreLeast = 2 * time.Second
)

// setKnob carries a setting out. It runs in a worker and may block.
func (l *Loop) setKnob(ctx context.Context, r Request) Result {
	if r.Reclaim.Bytes > 0 {
		l.wayDown(ctx, r.Reclaim)
	}
	ctx, cancel := context.WithTimeout(ctx, settingDeadline)
	defer cancel()
	started, s := time.Now(), r.Setting
	d := Result{Request: r}
	if s.Value == "" {
		d.Undone = l.Keeper.Restore(ctx, s.Cgroup, s.Knob)
		d.Err = d.Undone.Err
	} else {
		d.Set, d.Err = l.setBy(ctx, &d.Setting)
	}
	d.Took = time.Since(started)
	return d
}

// setBy has a knob hold a value, by way of another one if there is one to write
// first. Where that could not be written By is emptied, and nothing was.
func (l *Loop) setBy(ctx context.Context, s *Setting) (journal.Result, error) {
	if s.By != "" {
		if set, err := l.Keeper.Set(ctx, s.Cgroup, s.Knob, s.By, s.Why); err != nil {
			s.By = ""
			return set, err
		}
	}
	return l.Keeper.Set(ctx, s.Cgroup, s.Knob, s.Value, s.Why)
}

// wayDown reclaims what is above a limit that is about to be put back, in requests
// one after the other, until there is nothing to do, nothing comes, or time is up.
func (l *Loop) wayDown(ctx context.Context, r memcg.Reclaim) {
	ctx, cancel := context.WithTimeout(ctx, putBackWithin)
	defer cancel()
	r.Deadline = shrinkWithin
	for vain := 0; vain < lendStuck && ctx.Err() == nil; {
		o := l.Host.Reclaim(ctx, r)
		if o.Writes == 0 || o.Err != nil && !errors.Is(o.Err, memcg.ErrPartial) {
			return
		}
		if shrunk, ok := o.Shrunk.Get(); !ok || shrunk < lendLeast {
			vain++
		}
	}
}

// forgetKnobs drops what the journal has of a cgroup that is gone. Nobody waits
// for the disk, and an error means nothing: what is left names an inode that is
// gone.
func (l *Loop) forgetKnobs(id memcg.ID) {
	if l.Keeper == nil {
		return
	}
	for _, k := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems} {
		if _, ok := l.Keeper.Holds(id, k); ok {
			l.settles.Go(func() { _ = l.Keeper.Forget(id) })
			return
		}
	}
}

// putBack undoes every knob, and waits for that no longer than until a moment; a
// second more for what has begun by then.
func (l *Loop) putBack(until time.Time) {
	if l.Keeper == nil {
		return
	}
	l.shrink(time.Until(until) - restoreLeast)
	within := max(time.Until(until), restoreLeast)
	rests, changed := l.restsToKeep(time.Now())
	done := make(chan journal.Report, 1)
	go func() {
		l.settles.Wait()
		if changed {
			l.keepRests(rests)
		}
		done <- l.Keeper.RestoreAll(context.Background(), within)
	}()
	late := time.NewTimer(within + time.Second)
	defer late.Stop()
	select {
	case r := <-done:
		for _, u := range r.Failed() {
			l.Notify.Warn("restore "+u.Key.String(), u.Err, "this is still to be put back: run memagent restore")
		}
		if r.Err != nil {
			l.Notify.Warn("journal", r.Err, "all is put back, and the journal does not say so yet")
		}
	case <-late.C:
		l.Notify.Warn("restore", nil, "not everything was put back in time: run memagent restore")
	}
}

// shrink reclaims what is lent, for a bounded time, so that neither a borrower
// nor the write of its memory.high meets the operator's value at speed.
func (l *Loop) shrink(within time.Duration) {
	list := l.Core.Surplus()
	within = min(within, shrinkWithin)
	if len(list) == 0 || within <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	work := make(chan memcg.Reclaim, len(list))
	for _, r := range list {
		r.Deadline = within
		work <- r
	}
	close(work)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for r := range work {
				if ctx.Err() == nil {
					_ = l.Host.Reclaim(ctx, r) // what it does not get, the write of memory.high asks for
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
