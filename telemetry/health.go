package telemetry

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// lateTicks is how many intervals may pass without a tick before the loop
// counts as stuck, and lateSlack what is added for short intervals on a busy
// host. A tick over thousands of cgroups may take longer than one interval.
const (
	lateTicks = 3
	lateSlack = 10 * time.Second
)

// ErrNotTicked is what Health says before the first tick that decided.
var ErrNotTicked = errors.New("the first tick is not over")

// ErrStuck is what Health says of a loop that does not tick.
var ErrStuck = errors.New("the loop does not tick")

// Health knows whether the loop ticks. Its methods may be called from any
// goroutine and never wait for the loop.
type Health struct {
	interval atomic.Int64 // nanoseconds
	started  time.Time
	last     atomic.Pointer[time.Time] // end of the last regular tick
	decided  atomic.Bool
	failed   atomic.Pointer[error] // why the last tick decided nothing; nil: it did
}

// NewHealth returns the health of a loop that begins at now and is to tick
// every interval; a tick may tell of another interval.
func NewHealth(interval time.Duration, now time.Time) *Health {
	h := &Health{started: now}
	h.interval.Store(int64(interval))
	return h
}

// Ticked takes note of a regular tick; looks between ticks prove nothing.
func (h *Health) Ticked(t *Tick) {
	if t.Early {
		return
	}
	if t.Interval > 0 {
		h.interval.Store(int64(t.Interval))
	}
	at := t.Began.Add(t.Took)
	h.last.Store(&at)
	if t.Err != nil {
		h.failed.Store(&t.Err)
		return
	}
	h.failed.Store(nil)
	h.decided.Store(true)
}

// Late is how long the loop may go without a tick.
func (h *Health) Late() time.Duration {
	return lateTicks*time.Duration(h.interval.Load()) + lateSlack
}

// Alive returns nil when the loop ticked lately, whether or not the host could
// be read, and an error that is ErrStuck with figures otherwise.
func (h *Health) Alive(now time.Time) error {
	last, what := h.started, "since the start"
	if at := h.last.Load(); at != nil {
		last, what = *at, "since the last tick"
	}
	if age := now.Sub(last); age > h.Late() {
		return fmt.Errorf("%w: %s %s, at an interval of %s", ErrStuck, age.Round(time.Second), what, time.Duration(h.interval.Load()))
	}
	return nil
}

// Ready returns nil once a tick has decided, and goes on to do so. Before that
// the error is ErrNotTicked, with the reason where one is known.
func (h *Health) Ready() error {
	if h.decided.Load() {
		return nil
	}
	if err := h.failed.Load(); err != nil {
		return fmt.Errorf("%w: the host cannot be read: %w", ErrNotTicked, *err)
	}
	return ErrNotTicked
}
