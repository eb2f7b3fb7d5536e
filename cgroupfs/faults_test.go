package cgroupfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fault is one line of a faults.txt: what a plain file cannot show. Lines are
//
//	<op> <path> <errno>                                   read, open, write
//	write <path> <errno> when payload contains "<text>"
//	write <path> <errno> when payload is a bare number
//	write <path> <errno> for "<payload>"
//	write <path> "<payload>" <errno>
//
// with errno OK for a call that succeeds. Paths are relative to the folder of
// the file. What follows a # or the condition is for people.
type fault struct {
	op, path string
	errno    syscall.Errno             // 0 is OK
	when     func(payload string) bool // nil: always
}

// faultErrnos are the errnos that faults.txt may name.
var faultErrnos = map[string]syscall.Errno{
	"OK": 0, "EACCES": unix.EACCES, "EAGAIN": unix.EAGAIN, "EBUSY": unix.EBUSY, "EINTR": unix.EINTR,
	"EINVAL": unix.EINVAL, "EIO": unix.EIO, "ENODEV": unix.ENODEV, "ENOENT": unix.ENOENT, "ENOSPC": unix.ENOSPC,
	"EOPNOTSUPP": unix.EOPNOTSUPP, "EPERM": unix.EPERM, "ERANGE": unix.ERANGE, "EROFS": unix.EROFS,
}

// parseFault reads one line; ok is false for blank lines and comments.
func parseFault(line string) (f fault, ok bool, err error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return fault{}, false, nil
	}
	bad := func() (fault, bool, error) { return fault{}, false, fmt.Errorf("not a fault: %q", line) }
	word := func() (w string) {
		line = strings.TrimLeft(line, " \t")
		if end := strings.IndexAny(line, " \t"); end >= 0 {
			w, line = line[:end], line[end:]
		} else {
			w, line = line, ""
		}
		return w
	}
	quoted := func() (string, bool) {
		line = strings.TrimLeft(line, " \t")
		q, err := strconv.QuotedPrefix(line)
		if err != nil {
			return "", false
		}
		line = line[len(q):]
		s, err := strconv.Unquote(q)
		return s, err == nil
	}
	is := func(want string) func(string) bool {
		return func(payload string) bool { return strings.TrimSuffix(payload, "\n") == want }
	}

	f.op, f.path = word(), word()
	if f.op != "open" && f.op != "read" && f.op != "write" {
		return bad()
	}
	if payload, ok := quoted(); ok {
		f.when = is(payload)
	}
	f.errno, ok = faultErrnos[word()]
	if !ok {
		return bad()
	}
	switch rest := strings.Join(strings.Fields(line), " "); {
	case rest == "" || rest[0] == '#':
	case strings.HasPrefix(rest, "when payload is a bare number"):
		f.when = func(payload string) bool {
			_, err := strconv.ParseUint(strings.TrimSuffix(payload, "\n"), 10, 64)
			return err == nil
		}
	default:
		contains := strings.HasPrefix(rest, "when payload contains ")
		if !contains && !strings.HasPrefix(rest, "for ") {
			return bad()
		}
		line = line[strings.IndexByte(line, '"'):]
		text, ok := quoted()
		if !ok {
			return bad()
		}
		f.when = is(text)
		if contains {
			f.when = func(payload string) bool { return strings.Contains(payload, text) }
		}
	}
	return f, true, nil
}

// faultsOf returns the faults of testdata/<id>.
func faultsOf(t testing.TB, id string) []fault {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", id, "faults.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var faults []fault
	for line := range strings.Lines(string(b)) {
		f, ok, err := parseFault(line)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			faults = append(faults, f)
		}
	}
	return faults
}

// faulty is the kernel with faults: the first fault that fits a call answers
// it. Opens and reads that none fits go to the real files. Writes never do:
// they are kept in writes, and succeed when no fault fits.
type faulty struct {
	kernel
	base   string // absolute: what the faults' paths are relative to
	faults []fault
	// cgroup2 makes every file claim to lie on a real cgroup2 mount.
	cgroup2 bool

	mu     sync.Mutex
	writes []string // "path payload", the path relative to base
}

// withFaults returns a layer over the real kernel for the files below base.
func withFaults(t testing.TB, base string, faults []fault) *faulty {
	t.Helper()
	abs, err := filepath.Abs(base)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &faulty{kernel: &linux{}, base: abs, faults: faults}
}

// path returns the name of an open file relative to base.
func (k *faulty) path(fd int, name string) string {
	dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(k.base, filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return rel
}

// answer returns the fault that fits a call.
func (k *faulty) answer(op, path, payload string) (error, bool) {
	for _, f := range k.faults {
		if f.op != op || f.path != path || f.when != nil && !f.when(payload) {
			continue
		}
		if f.errno == 0 {
			return nil, true
		}
		return f.errno, true
	}
	return nil, false
}

func (k *faulty) open(dir int, name string, flags int, how resolve) (int, error) {
	if err, ok := k.answer("open", k.path(dir, name), ""); ok && err != nil {
		return -1, err
	}
	return k.kernel.open(dir, name, flags, how)
}

func (k *faulty) pread(fd int, b []byte, offset int64) (int, error) {
	if err, ok := k.answer("read", k.path(fd, ""), ""); ok && err != nil {
		return 0, err
	}
	return k.kernel.pread(fd, b, offset)
}

func (k *faulty) readDirents(fd int, b []byte) (int, error) {
	if err, ok := k.answer("read", k.path(fd, ""), ""); ok && err != nil {
		return 0, err
	}
	return k.kernel.readDirents(fd, b)
}

func (k *faulty) magic(fd int) (int64, error) {
	if k.cgroup2 {
		return unix.CGROUP2_SUPER_MAGIC, nil
	}
	return k.kernel.magic(fd)
}

func (k *faulty) write(fd int, b []byte) (int, error) {
	path := k.path(fd, "")
	k.mu.Lock()
	k.writes = append(k.writes, path+" "+string(b))
	k.mu.Unlock()
	if err, ok := k.answer("write", path, string(b)); ok && err != nil {
		return -1, err
	}
	return len(b), nil
}

// fixtureCopy copies testdata/<id> to a folder of its own, so that a test may add
// to it, and returns that folder. Extra is pairs of a path below the folder
// and the content of a file to make there.
func fixtureCopy(t testing.TB, id string, extra ...string) string {
	t.Helper()
	dir := t.TempDir()
	if id != "" {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", id))); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i+1 < len(extra); i += 2 {
		file := filepath.Join(dir, extra[i])
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(extra[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFaultLinesAreUnderstood(t *testing.T) {
	const reclaim = "sys/fs/cgroup/p/memory.reclaim"
	for _, tt := range []struct {
		name, line     string
		payload, other string // other must not fit; "-" for always fits
		errno          syscall.Errno
	}{
		{"a plain fault always fits", "write " + reclaim + " ENODEV", "1", "-", unix.ENODEV},
		{"a comment is ignored", "write " + reclaim + " EACCES  # privilege dropped", "1", "-", unix.EACCES},
		{"a payload may be given in part", "write " + reclaim + ` EINVAL when payload contains "swappiness="`,
			"0 swappiness=60", "4096", unix.EINVAL},
		{"a bare number", "write " + reclaim + " OK     when payload is a bare number", "4096", "0 swappiness=60", 0},
		{"a payload may be given for a success", "write " + reclaim + ` OK for "1G" (demoted)`, "1G", "2G", 0},
		{"a payload may stand before the errno", "write " + reclaim + ` "0,1" ERANGE`, "0,1", "0", unix.ERANGE},
		{"an empty payload", "write " + reclaim + ` "" ENOSPC   # populated`, "", "0", unix.ENOSPC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, ok, err := parseFault(tt.line)
			if err != nil || !ok {
				t.Fatalf("parseFault = %v, %v", ok, err)
			}
			if f.op != "write" || f.path != reclaim || f.errno != tt.errno {
				t.Errorf("got %s %s %v", f.op, f.path, f.errno)
			}
			if f.when != nil && !f.when(tt.payload) {
				t.Errorf("does not fit %q", tt.payload)
			}
			if (f.when == nil) != (tt.other == "-") || f.when != nil && f.when(tt.other) {
				t.Errorf("fits %q", tt.other)
			}
		})
	}
	for _, line := range []string{"chmod a EACCES", "read a EWHAT", "write a OK because", `write a OK for "open`} {
		if _, _, err := parseFault(line); err == nil {
			t.Errorf("parseFault(%q) accepts it", line)
		}
	}
}

func TestEveryFaultsFileIsUnderstood(t *testing.T) {
	files, err := filepath.Glob("testdata/*/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if n := len(faultsOf(t, filepath.Base(filepath.Dir(file)))); n == 0 {
			t.Errorf("%s holds no fault", file)
		}
	}
}
