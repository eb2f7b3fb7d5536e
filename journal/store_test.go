package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/memagent/memagent/memcg"
)

func mustOpen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestTwoAgentsDoNotShareAStateDirectory(t *testing.T) {
	dir := t.TempDir()
	first := mustOpen(t, dir)
	_, err := Open(dir)
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("the second one: %v", err)
	}
	for _, want := range []string{filepath.Join(dir, "lock"), "process ", "stop it first"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	first.Close()
	mustOpen(t, dir)
}

func TestAMissingDirectoryIsMadeOrSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "var", "memagent")
	if _, err := OpenExisting(dir); !errors.Is(err, ErrMissing) {
		t.Errorf("OpenExisting: %v, want ErrMissing", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("OpenExisting made it")
	}
	if s := mustOpen(t, dir); len(s.Entries()) != 0 || s.Damaged() != nil {
		t.Errorf("a new one holds %v, %v", s.Entries(), s.Damaged())
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); !errors.Is(err, ErrMissing) || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file for a directory: %v", err)
	}
}

func TestADamagedJournalIsKeptAside(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "journal")
	for _, d := range damaged(t) {
		if d.want == ErrNewer {
			continue
		}
		if err := os.WriteFile(name, d.file, 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, dir)
		err := s.Damaged()
		var e *Error
		if !errors.Is(err, d.want) || !errors.As(err, &e) {
			t.Fatalf("%s: %v, want %v", d.name, err, d.want)
		}
		_, aside, _ := strings.Cut(e.Fix, "kept as ")
		aside, _, _ = strings.Cut(aside, ";")
		if b, err := os.ReadFile(aside); err != nil || string(b) != string(d.file) {
			t.Errorf("%s: kept as %q, %v", d.name, b, err)
		}
		if len(s.Entries()) != 0 {
			t.Errorf("%s: gave %v", d.name, s.Entries())
		}
		s.Close()
	}
	kept, err := filepath.Glob(name + ".corrupt-*")
	if err != nil || len(kept) != len(damaged(t))-2 {
		t.Errorf("%d files are kept, %v: one took the place of another", len(kept), err)
	}
}

func TestANewerJournalIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "journal")
	const newer = "memagent-journal 2 3 abc\n{}\n"
	if err := os.WriteFile(name, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "memagent restore of that version") {
		t.Errorf("%v", err)
	}
	if b, _ := os.ReadFile(name); string(b) != newer {
		t.Errorf("it became %q", b)
	}
	if _, err := Open(dir); errors.Is(err, ErrLocked) {
		t.Error("the lock was kept")
	}
}

func TestAJournalThatIsNoFileIsLeftAsItIs(t *testing.T) {
	for what, plant := range map[string]func(name string) error{
		"a folder": func(name string) error { return os.Mkdir(name, 0o700) },
		"a link":   func(name string) error { return os.Symlink("/dev/null", name) },
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "journal")
		if err := plant(name); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "read "+name) || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatACrashLeftHalfWrittenIsRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".journal123", ".journal", "journal.corrupt-1", ".journalist"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, dir).Close()
	if _, err := os.Stat(filepath.Join(dir, ".journal123")); err == nil {
		t.Error(".journal123 is still there")
	}
	for _, name := range []string{"journal.corrupt-1", ".journalist"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoKnobIsWrittenWithoutAJournalOnDisk(t *testing.T) {
	for _, tt := range []struct {
		name  string
		errno syscall.Errno
		kind  error
	}{
		{"a full disk", syscall.ENOSPC, ErrFull},
		{"a quota", syscall.EDQUOT, ErrFull},
		{"a disk that was remounted read-only", syscall.EROFS, ErrReadOnly},
		{"a missing right", syscall.EACCES, memcg.ErrDenied},
		{"a directory that was removed", syscall.ENOENT, ErrMissing},
		{"a broken disk", syscall.EIO, syscall.EIO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			b := newBench(t)
			id := b.host.make("/pg")
			other := b.host.make("/other")
			k := b.start()
			defer k.store.Close()
			b.mustSet(k, other, memcg.KnobHigh, "1048576", Written)
			b.host.writes = nil
			k.store.write = func(file string, _ []byte, _ func(Step)) error {
				return &os.PathError{Op: "write", Path: file, Err: tt.errno}
			}
			r, err := k.Set(ctx, id, memcg.KnobHigh, "1048576", "test")
			if !errors.Is(err, tt.kind) || !errors.Is(err, tt.errno) || r.Outcome != Failed {
				t.Errorf("%v, %v", r.Outcome, err)
			}
			fault, ok := errors.AsType[*Error](err)
			if !ok || fault.File != filepath.Join(b.dir, "journal") || fault.Fix == "" || strings.Count(fault.Error(), tt.errno.Error()) != 1 {
				t.Errorf("%v; want the file, what came back, once, and what to do", err)
			}
			if len(b.host.writes) != 0 {
				t.Errorf("wrote %q", b.host.writes)
			}
			// What is lent already comes back in spite of it.
			report := k.Recover(ctx)
			if !errors.Is(report.Err, tt.errno) || len(report.Failed()) != 0 {
				t.Errorf("Recover: %+v", report)
			}
			b.wantKnob("/other", memcg.KnobHigh, "max")
			k = b.restart(k)
			defer k.store.Close()
			if r := k.Recover(ctx); len(r.Undone) != 1 || r.Undone[0].How != WasThere {
				t.Errorf("the next one: %+v", r)
			}
		})
	}
}

func TestAJournalIsForItsOwnerAlone(t *testing.T) {
	b := newBench(t)
	k := b.start()
	defer k.store.Close()
	b.mustSet(k, b.host.make("/pg"), memcg.KnobHigh, "1048576", Written)
	for _, name := range []string{"journal", "lock"} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}
