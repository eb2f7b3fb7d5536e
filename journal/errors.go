package journal

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/memagent/memagent/memcg"
)

// Kinds of trouble with a state directory and its journal. Every error of this
// package wraps exactly one of them, one of the memcg.Err kinds, or none where
// the errno fits none; it wraps the errno beside, if there is one.
var (
	// ErrMissing: there is no such state directory. There is nothing to undo.
	ErrMissing = errors.New("no state directory")
	// ErrLocked: another memagent has the state directory.
	ErrLocked = errors.New("in use by another memagent")
	// ErrFull: no space left, or a quota is used up. No knob was written.
	ErrFull = errors.New("no space left for the journal")
	// ErrReadOnly: the state directory lies on a file system that is mounted
	// read-only, or was remounted so after an I/O error. No knob was written.
	ErrReadOnly = errors.New("read-only file system")
	// ErrNewer: a later version of memagent wrote the journal. It is left as
	// it is.
	ErrNewer = errors.New("written by a newer memagent")
	// ErrTruncated: the journal ends too early. It is kept under another name.
	ErrTruncated = errors.New("truncated")
	// ErrCorrupt: the journal is not what was written. It is kept under
	// another name.
	ErrCorrupt = errors.New("corrupt")
	// ErrTooMuch: the journal holds as many entries as it may. No knob was
	// written.
	ErrTooMuch = errors.New("the journal is at its bound")
	// ErrNotGranted: the kernel accepted a value and does not hold to it
	// (case c48).
	ErrNotGranted = errors.New("accepted, not granted")
	// ErrStopped: RestoreAll was called; no knob is written any more.
	ErrStopped = errors.New("the journal is being undone")
)

// Error is something that could not be done with the state directory.
type Error struct {
	Op   string // "open", "lock", "read", "write", ...
	File string
	Err  error  // wraps a kind and the errno
	Fix  string // what the operator can do, "" where the rest says it
}

// Error returns one line: what was done, to which file, what came back, and
// what can be done about it.
func (e *Error) Error() string {
	s := e.Op + " " + e.File + ": " + e.Err.Error()
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// Unwrap returns what came back.
func (e *Error) Unwrap() error { return e.Err }

// fault makes an Error of what a call on the state directory returned.
func fault(op, file string, err error) *Error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return &Error{Op: op, File: file, Err: err}
	}
	fix, kind := kindOf(errno)
	if kind == nil {
		return &Error{Op: op, File: file, Err: errno, Fix: fix}
	}
	return &Error{Op: op, File: file, Err: both{kind, errno}, Fix: fix}
}

// both is an error that is a kind and an errno.
type both struct {
	kind  error
	errno syscall.Errno
}

func (b both) Unwrap() []error { return []error{b.kind, b.errno} }

func (b both) Error() string {
	if b.kind.Error() == b.errno.Error() {
		return b.errno.Error()
	}
	return b.kind.Error() + " (" + b.errno.Error() + ")"
}

// kindOf gives an errno of the state directory its meaning.
func kindOf(errno syscall.Errno) (fix string, kind error) {
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return "make room there; until then no limit is written, reclaim goes on", ErrFull
	case syscall.EROFS:
		return "mount it writable, or set state_dir to a directory that is; until then no limit is written, reclaim goes on", ErrReadOnly
	case syscall.EACCES, syscall.EPERM:
		return "run as the user that owns it, or set state_dir to a directory of yours", memcg.ErrDenied
	case syscall.ENOENT, syscall.ENOTDIR:
		return "make it, or set state_dir to a directory that can be made", ErrMissing
	case syscall.EIO:
		return "the disk reports a fault, the kernel's log says which; until it works no limit is written, reclaim goes on", nil
	case syscall.EISDIR, syscall.ELOOP:
		return "it is not a file of memagent's: move it away", nil
	}
	return "", nil
}

// isMissing reports whether an error says that a file is not there.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
