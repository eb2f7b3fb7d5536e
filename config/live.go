package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// Live is a config that can be read again while it is in use: what is bad or
// refused leaves the one before in force. Safe for use by several goroutines.
type Live struct {
	path string

	mu      sync.Mutex
	current *Config
	status  Status
	seen    string // sum of what was read last, whatever became of it
}

// Status is how a Live stands.
type Status struct {
	Path string // of the main file
	// Sum is the SHA-256, in hex, of the files of the config in force, with
	// their names: the same for the same config on any host.
	Sum string
	// Since is when the config in force was taken.
	Since time.Time
	// Checked is when the files were read last.
	Checked time.Time
	// Err is why what the files say now is not in force; nil: it is.
	Err error
	// Taken and Refused count the times that files with something new in them
	// were read, the first included.
	Taken, Refused uint64
}

// Good reports whether what the files say is in force.
func (s Status) Good() bool { return s.Err == nil }

// OpenLive reads a config for the first time. Errors are those of Load.
func OpenLive(path string, now time.Time) (*Live, error) {
	l := &Live{path: path}
	_, _, err := l.Reload(now, nil)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Config returns the config in force.
func (l *Live) Config() *Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// Status returns how the config stands.
func (l *Live) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// Reload reads the files again. taken is false with a nil error where they say
// what they said last time. A config is in force only once accept, where there
// is one, has returned nil for it; its error, or one of Load, is returned and
// kept in Status, and the config before stays. While the files stay as they are,
// the error is not returned again.
func (l *Live) Reload(now time.Time, accept func(was, now *Config) error) (c *Config, taken bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	files, err := readAll(l.path)
	sum := sumOf(files, err)
	l.status.Path, l.status.Checked = l.path, now
	if sum == l.seen {
		return l.current, false, nil
	}
	l.seen = sum
	if sum == l.status.Sum { // back to what is in force
		l.status.Err = nil
		return l.current, false, nil
	}
	var next *Config
	if err == nil {
		next, err = parseFiles(files)
	}
	if err == nil && accept != nil {
		err = accept(l.current, next)
	}
	if err != nil {
		l.status.Err = err
		l.status.Refused++
		return l.current, false, err
	}
	l.current = next
	l.status.Sum, l.status.Since, l.status.Err = sum, now, nil
	l.status.Taken++
	return next, true, nil
}

// sumOf tells whether anything has changed. What cannot be read is told apart by
// its error.
func sumOf(files []source, err error) string {
	h := sha256.New()
	if err != nil {
		return err.Error()
	}
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", f.name, len(f.data))
		h.Write(f.data)
	}
	return hex.EncodeToString(h.Sum(nil))
}
