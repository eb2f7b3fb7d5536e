package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func TestC24PressureIsMissingInThreeWays(t *testing.T) {
	root := fixtureCopy(t, "c24", "absent/sys/fs/cgroup/p/memory.current", "4096\n")
	for _, variant := range []string{"disabled", "absent", "per-cgroup-off"} {
		t.Run(variant, func(t *testing.T) {
			fs := mustOpen(t, filepath.Join(root, variant), withKernel(withFaults(t, root, faultsOf(t, "c24"))))
			for range 3 {
				var s memcg.Sample
				if err := fs.Sample(idOf(t, fs, "/p"), &s); err != nil {
					t.Fatal(err)
				}
				if got := s.Pressure.Some.Total.State(); got != memcg.Unsupported {
					t.Errorf("pressure is %v", got)
				}
			}
			if notes := fs.Notes(); len(notes) != 0 {
				t.Errorf("a supported mode is reported as trouble: %+v", notes)
			}
		})
	}
	s := sampleOf(t, filepath.Join(root, "per-cgroup-off"), "/q")
	if s.Pressure.Some.Total != memcg.Value(5) {
		t.Errorf("the other cgroup: %v", s.Pressure.Some.Total)
	}
}

// hooked is the real kernel with a hook before opens and reads.
type hooked struct {
	*faulty
	before func(op, path string) error
}

func (k *hooked) open(dir int, name string, flags int, how resolve) (int, error) {
	if err := k.before("open", k.path(dir, name)); err != nil {
		return -1, err
	}
	return k.faulty.open(dir, name, flags, how)
}

func (k *hooked) pread(fd int, b []byte, offset int64) (int, error) {
	if err := k.before("read", k.path(fd, "")); err != nil {
		return 0, err
	}
	return k.faulty.pread(fd, b, offset)
}

func TestC24AccountingSwitchedOffLaterIsNotTheEndOfTheCgroup(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	off := false
	k := &hooked{faulty: withFaults(t, root, nil)}
	k.before = func(op, path string) error {
		if off && path == "sys/fs/cgroup/p/memory.pressure" {
			return map[string]error{"open": unix.ENOENT, "read": unix.ENODEV}[op]
		}
		return nil
	}
	fs := mustOpen(t, root, withKernel(k))
	id := idOf(t, fs, "/p")
	var s memcg.Sample
	for i, want := range []memcg.State{memcg.Present, memcg.Unsupported, memcg.Unsupported} {
		off = i > 0
		if err := fs.Sample(id, &s); err != nil || s.Pressure.Some.Total.State() != want || !s.Current.Known() {
			t.Errorf("reading %d: pressure %v, current %v, %v", i, s.Pressure.Some.Total, s.Current, err)
		}
	}
	off = false
	for range recheck {
		if err := fs.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Pressure.Some.Total.Known() {
		t.Errorf("switched on again, after %d readings: %v", recheck, s.Pressure.Some.Total)
	}
}

func TestC25ACgroupThatVanishesIsGoneAndNeverZero(t *testing.T) {
	root := fixtureCopy(t, "c25", append(fullCgroup(t, "sys/fs/cgroup/p"), fullCgroup(t, "sys/fs/cgroup/q")...)...)
	k := withFaults(t, root, nil)
	fs := mustOpen(t, root, withKernel(k))
	p, q := idOf(t, fs, "/p"), idOf(t, fs, "/q")
	var s memcg.Sample
	for _, id := range []memcg.ID{p, q} {
		if err := fs.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
	}
	k.faults = faultsOf(t, "c25")
	err := fs.Sample(p, &s)
	if !errors.Is(err, memcg.ErrGone) || s.Current.State() != memcg.Missing || s.Stat.Get(memcg.StatAnon).State() != memcg.Missing || len(s.Nodes) != 0 {
		t.Errorf("ENODEV on read: %v, current %v", err, s.Current)
	}
	if err := fs.Sample(q, &s); err != nil {
		t.Errorf("the other cgroup of the tick: %v", err)
	}
	fs.Forget(q)
	if err := os.RemoveAll(filepath.Join(root, "sys/fs/cgroup/q")); err != nil {
		t.Fatal(err)
	}
	if err := fs.Sample(q, &s); !errors.Is(err, memcg.ErrGone) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("removed before open: %v", err)
	}
}

func TestC25RemovedBetweenTheDirectoryAndItsFiles(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	k := &hooked{faulty: withFaults(t, root, nil), before: func(string, string) error { return nil }}
	fs := mustOpen(t, root, withKernel(k))
	id := idOf(t, fs, "/p")
	k.before = func(op, path string) error {
		if path == "sys/fs/cgroup/p/memory.current" {
			return os.RemoveAll(filepath.Join(root, "sys/fs/cgroup/p"))
		}
		return nil
	}
	var s memcg.Sample
	if err := fs.Sample(id, &s); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("err = %v, current %v", err, s.Current)
	}
}

func TestC25APathThatComesBackIsAnotherCgroup(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/p")
	old := filepath.Join(root, "sys/fs/cgroup/p")
	if err := os.Rename(old, old+".kept"); err != nil { // so that the inode is not used again
		t.Fatal(err)
	}
	if err := os.Mkdir(old, 0o777); err != nil {
		t.Fatal(err)
	}
	var s memcg.Sample
	if err := fs.Sample(id, &s); !errors.Is(err, memcg.ErrGone) || !strings.Contains(err.Error(), "another cgroup has taken its path") {
		t.Errorf("err = %v", err)
	}
}

func TestC35ADeniedFileIsNamedOnceAndFailsOnlyWhatNeedsIt(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	var heard []Note
	k := withFaults(t, root, faultsOf(t, "c35"))
	fs := mustOpen(t, root, withKernel(k), OnNote(func(n Note) { heard = append(heard, n) }))
	id := idOf(t, fs, "/p")
	var s memcg.Sample
	for range 3 {
		if err := fs.Sample(id, &s); err != nil || s.High.State() != memcg.Missing || !s.Current.Known() {
			t.Errorf("high %v, current %v, %v", s.High, s.Current, err)
		}
	}
	if len(heard) != 1 || heard[0].First != "/p" || heard[0].Kind != memcg.ErrDenied || !strings.HasSuffix(heard[0].File, "memory.high") {
		t.Errorf("heard %+v", heard)
	}
	if n := fs.Notes(); len(n) != 1 || n[0].Count != 3 {
		t.Errorf("notes %+v", n)
	}
	for _, errno := range []error{unix.EACCES, unix.EPERM, unix.EROFS} {
		k := withFaults(t, root, []fault{{op: "open", path: "sys/fs/cgroup/p/memory.stat", errno: errno.(unix.Errno)}})
		fs := mustOpen(t, root, withKernel(k))
		err := fs.Sample(idOf(t, fs, "/p"), &s)
		if !errors.Is(err, memcg.ErrDenied) || !errors.Is(err, errno) || !strings.Contains(err.Error(), "p/memory.stat") {
			t.Errorf("err = %v", err)
		}
		if !s.Current.Known() || s.Stat.Get(memcg.StatAnon).State() != memcg.Missing {
			t.Errorf("current %v, anon %v", s.Current, s.Stat.Get(memcg.StatAnon))
		}
	}
}

func TestAControllerEnabledLaterIsFound(t *testing.T) {
	root := fixtureCopy(t, "", "sys/fs/cgroup/p/cgroup.events", "populated 1\n", "sys/fs/cgroup/cgroup.controllers", "memory\n")
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/p")
	var s memcg.Sample
	if err := fs.Sample(id, &s); err != nil || s.Current.State() != memcg.Unsupported || s.Stat.Get(memcg.StatAnon).State() != memcg.Unsupported {
		t.Fatalf("current %v, %v", s.Current, err)
	}
	addFiles(t, root, fullCgroup(t, "sys/fs/cgroup/p")...)
	if err := fs.Sample(id, &s); err != nil || !s.Current.Known() || !s.Stat.Get(memcg.StatAnon).Known() || s.NodesState != memcg.Present {
		t.Errorf("current %v, anon %v, nodes %v, %v", s.Current, s.Stat.Get(memcg.StatAnon), s.NodesState, err)
	}
}

// addFiles adds files to a tree, given as to fixtureCopy.
func addFiles(t testing.TB, root string, extra ...string) {
	t.Helper()
	for i := 0; i+1 < len(extra); i += 2 {
		file := filepath.Join(root, extra[i])
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(extra[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
