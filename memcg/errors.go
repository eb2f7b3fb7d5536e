package memcg

import "errors"

// Kinds of failure when a kernel file is opened, read or written. Errors of
// the host wrap exactly one of them beside the errno, so callers ask
// errors.Is(err, memcg.ErrGone) and never compare an errno.
var (
	// ErrGone: the cgroup no longer exists (ENOENT on a file every cgroup of
	// its kind has, ENODEV on an open one), or its path now leads to another
	// inode. Its state must be dropped; nobody need hear of it.
	ErrGone = errors.New("cgroup is gone")
	// ErrUnsupported: this kernel or this cgroup does not have the file or the
	// operation (no such file in a living cgroup, EOPNOTSUPP, ENOTSUP, EINVAL
	// on a harmless request).
	ErrUnsupported = errors.New("not supported here")
	// ErrPartial: the request ended before all was done (EAGAIN, EINTR). Some
	// work may have happened; only counters tell how much. A normal result.
	ErrPartial = errors.New("ended before all was done")
	// ErrDenied: the file may not be opened or written (EACCES, EPERM, EROFS).
	ErrDenied = errors.New("access denied")
	// ErrInvalid: the kernel printed something that cannot be read, or refused
	// a value it should have taken.
	ErrInvalid = errors.New("invalid")
	// ErrReadOnly: the host was opened for observing; nothing is written, ever.
	ErrReadOnly = errors.New("opened for observing, nothing is written")
)
