package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPatience is how long a guest is waited for in silence. Shorter waits are common where
// several programs take turns, and nothing is wrong then.
const lockPatience = 5 * time.Second

// lock takes the right to run a guest, waiting while another process of this cache has it. The
// kernel wakes waiters in the order they came, so that nobody who asks more often gets ahead, and
// takes the lock back when this process ends, however it ends.
func (l *Lab) lock(ctx context.Context) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	path := filepath.Join(l.Cache, "guest.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	// flock(2) cannot be told to give up. A wait that is cancelled is left to its goroutine, which
	// gives the lock back at once if it ever gets it.
	locked := make(chan error)
	go func() {
		err := flock(f)
		select {
		case locked <- err:
		case <-ctx.Done():
			f.Close()
		}
	}()
	patience := time.NewTimer(l.patience())
	defer patience.Stop()
	for {
		select {
		case err := <-locked:
			if err != nil {
				f.Close()
				return nil, fmt.Errorf("locking %s: %w", path, err)
			}
			return func() { f.Close() }, nil
		case <-patience.C:
			l.Say("%s", waitingFor(path, os.Getpid()))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// patience is how long the lab waits for its turn before it says so.
func (l *Lab) patience() time.Duration {
	if l.Patience > 0 {
		return l.Patience
	}
	return lockPatience
}

// flock waits until the file is locked by this descriptor alone.
func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
