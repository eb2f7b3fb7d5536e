package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// DefaultDir is the state directory where none is named.
const DefaultDir = "/var/lib/memagent"

// Names in the state directory. Temporary files begin with tempPrefix.
const (
	journalName = "journal"
	lockName    = "lock"
	tempPrefix  = "." + journalName
)

// Store is a state directory that this process has to itself, and the journal
// in it. Give it to one Keeper.
type Store struct {
	dir     string
	lock    *os.File
	read    contents
	damaged error
	at      func(Step)
	write   func(file string, b []byte, at func(Step)) error
}

// Option changes how Open works.
type Option func(*Store)

// OnStep has every Step call visit, from the goroutine that passes it: the hook
// by which a crash at that step is tried out.
func OnStep(visit func(Step)) Option { return func(s *Store) { s.at = visit } }

// Open takes the state directory for this process, makes it if it is not there,
// and reads its journal. A directory without a journal is one with an empty
// journal. The errors are ErrLocked, ErrNewer, ErrFull, ErrReadOnly,
// memcg.ErrDenied and others of I/O, all of type *Error.
//
// A journal that is truncated or corrupt is renamed to journal.corrupt-N and
// counts as empty: see Damaged. A directory that is read-only opens where it
// was used before, so that what its journal says can be undone.
func Open(dir string, opts ...Option) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault("make", dir, err)
	}
	return OpenExisting(dir, opts...)
}

// OpenExisting is Open for a directory that is not made where it is missing:
// ErrMissing says that there is nothing to undo.
func OpenExisting(dir string, opts ...Option) (*Store, error) {
	s := &Store{dir: dir, at: func(Step) {}, write: replaceFile, read: contents{entries: map[Key]Entry{}}}
	for _, o := range opts {
		o(s)
	}
	if err := s.take(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Dir returns the state directory.
func (s *Store) Dir() string { return s.dir }

// Damaged returns nil, or what was wrong with the journal that was found: an
// *Error that Is ErrTruncated or ErrCorrupt and says where it is kept now.
// What it held is not undone.
func (s *Store) Damaged() error { return s.damaged }

// Entries returns what the journal held when it was opened.
func (s *Store) Entries() []Entry { return sorted(s.read.entries) }

// Close gives the state directory back. Nothing may be written afterwards.
func (s *Store) Close() {
	_ = s.lock.Close() // and with it the lock
}

// take locks the directory. The lock ends with the process, however that ends.
func (s *Store) take() error {
	name := filepath.Join(s.dir, lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.EROFS) {
		f, err = os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if isMissing(err) {
			err = unix.EROFS // the directory was never used
		}
	}
	if err != nil {
		return fault("open", name, err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EWOULDBLOCK {
		defer f.Close()
		return lockedBy(name, f)
	}
	if err != nil {
		f.Close()
		return fault("lock", name, err)
	}
	s.lock = f
	// Only for the message of who comes next; whether it can be written is for
	// the journal to find out.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return nil
}

// lockedBy tells who has the lock.
func lockedBy(name string, f *os.File) *Error {
	b := make([]byte, 20) // digits of a 64-bit number
	n, _ := f.ReadAt(b, 0)
	who := strings.TrimSpace(string(b[:n]))
	e := &Error{Op: "lock", File: name, Err: ErrLocked,
		Fix: "stop it first (systemctl stop memagent, or SIGTERM); it undoes its own changes when it stops"}
	if who != "" && strings.Trim(who, "0123456789") == "" {
		e.Err = fmt.Errorf("%w, process %s", ErrLocked, who)
	}
	return e
}

// load reads the journal and removes what a crash has left half written.
func (s *Store) load() error {
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return fault("list", s.dir, err)
	}
	for _, f := range list {
		if rest, ok := strings.CutPrefix(f.Name(), tempPrefix); ok && strings.Trim(rest, "0123456789") == "" {
			_ = os.Remove(filepath.Join(s.dir, f.Name()))
		}
	}
	name := filepath.Join(s.dir, journalName)
	b, err := readFile(name)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return fault("read", name, err)
	}
	c, err := decode(b)
	switch {
	case err == nil:
		s.read = c
		return nil
	case errors.Is(err, ErrNewer):
		return &Error{Op: "read", File: name, Err: err,
			Fix: "run memagent restore of that version, remove the file, and start this one again; until then no limit is written, reclaim goes on"}
	}
	aside, asideErr := setAside(name)
	if asideErr != nil {
		return &Error{Op: "read", File: name, Err: fmt.Errorf("%w, and it cannot be kept aside: %w", err, asideErr),
			Fix: "move it away yourself"}
	}
	s.damaged = &Error{Op: "read", File: name, Err: err, Fix: "it is kept as " + aside +
		"; compare memory.high, memory.swap.max and cpuset.mems of the cgroups it names with what they should be"}
	return nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// setAside renames a damaged journal to the first name that is free. The lock
// keeps anybody else from taking it in between.
func setAside(name string) (aside string, err error) {
	const most = 1000 // then an operator has looked away for long
	for n := 1; n <= most; n++ {
		aside = fmt.Sprintf("%s.corrupt-%d", name, n)
		if _, err := os.Lstat(aside); !isMissing(err) {
			continue
		}
		if err := os.Rename(name, aside); err != nil {
			return "", err
		}
		return aside, syncDir(filepath.Dir(name))
	}
	return "", fmt.Errorf("%d are kept already", most)
}

// save replaces the journal. It returns when the new one is on disk.
func (s *Store) save(c contents) error {
	name := filepath.Join(s.dir, journalName)
	b, err := encode(c)
	if err != nil {
		return &Error{Op: "write", File: name, Err: err, Fix: "no limit is written beyond that; reclaim goes on"}
	}
	if err := s.write(name, b, s.at); err != nil {
		return fault("write", name, err)
	}
	return nil
}

// replaceFile writes a file under a temporary name, syncs and renames it, and
// syncs the directory: a rename is on disk only then.
func replaceFile(name string, b []byte, at func(Step)) error {
	dir := filepath.Dir(name)
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	at(StepJournalWritten)
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	at(StepJournalRenamed)
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
