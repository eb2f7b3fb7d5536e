package cgroupfs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/memagent/memagent/memcg"
)

// opError is a failed call on a kernel file. It answers errors.Is for its kind
// and for its errno.
type opError struct {
	Op    string        // "open", "read", "write"
	File  string        // as the operator would look for it: below the root that was opened
	Kind  error         // one of memcg.Err*, nil when the errno fits none
	Errno syscall.Errno // 0 when no call failed
	Hint  string        // what was wrong or what can be done, "" when the rest says it all
}

// Error returns one line: what was done, to which file, what came back.
func (e *opError) Error() string {
	s := e.Op + " " + quoteName(e.File)
	if e.Kind != nil {
		s += ": " + e.Kind.Error()
	}
	if e.Errno != 0 {
		if e.Kind != nil {
			s += " (" + e.Errno.Error() + ")"
		} else {
			s += ": " + e.Errno.Error()
		}
	}
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Is reports whether target is the kind of this error.
func (e *opError) Is(target error) bool { return e.Kind != nil && target == e.Kind }

// Unwrap returns the errno, nil when there is none.
func (e *opError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// newError wraps what a kernel call returned.
func newError(op, file string, err error) *opError {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return &opError{Op: op, File: file, Kind: memcg.ErrInvalid, Hint: err.Error()}
	}
	return &opError{Op: op, File: file, Kind: kindOf(errno), Errno: errno}
}

// enotsupp is ENOTSUPP, an errno internal to the kernel that leaks to user
// space from some file operations (include/linux/errno.h).
const enotsupp = syscall.Errno(524)

// kindOf is the one place where an errno gets its meaning. Two errnos mean
// different things in different calls; those callers overrule it: EINVAL of a
// request with a swappiness, and ENOENT of a file in a cgroup that lives.
func kindOf(errno syscall.Errno) error {
	switch errno {
	case syscall.ENOENT, // removed before the open
		syscall.ENODEV: // removed between open and read or write (kernfs)
		return memcg.ErrGone
	case syscall.ENOTDIR, // a path that leads through a file
		syscall.EOPNOTSUPP, // PSI built in but off (psi=1 missing); same number as ENOTSUP
		enotsupp,
		syscall.ENOSYS:
		return memcg.ErrUnsupported
	case syscall.EAGAIN, // memory.reclaim: 17 passes without progress, or a dying cgroup (7.3)
		syscall.EINTR: // a signal was pending in the writing thread
		return memcg.ErrPartial
	case syscall.EACCES, // file mode, or a right dropped after the start
		syscall.EPERM, // root of a cgroup namespace (nsdelegate), lockdown, seccomp
		syscall.EROFS: // a container's read-only cgroup mount
		return memcg.ErrDenied
	case syscall.EINVAL, // a key or value this kernel does not take
		syscall.ERANGE, // cpuset.mems beyond the highest node
		syscall.ENOSPC, // cpuset.mems emptied while populated (before 7.2)
		syscall.ELOOP,  // a symlink where none may be
		syscall.EXDEV,  // a path that leads out of the cgroup mount
		syscall.ENAMETOOLONG:
		return memcg.ErrInvalid
	}
	return nil
}

// quoteName returns a name as it can stand in a line of text: cgroup names are
// bytes and may hold blanks and control characters.
func quoteName(name string) string {
	for _, r := range name {
		if r <= ' ' || r == 0x7f || r == '"' || r == '\uFFFD' {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}
