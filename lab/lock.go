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

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 500 * time.Millisecond

// lock takes the right to run a guest, waiting while another process of this cache has it. The
// kernel takes it back when this process ends, however it ends.
func (l *Lab) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(l.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache folder: %w", err)
	}
	path := filepath.Join(l.Cache, "guest.lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	said := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !said {
			said = true
			l.Say("another guest is running; waiting for it (lock %s)", path)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
