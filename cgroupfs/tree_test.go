package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

// openHost opens the FS below root and closes it with the test.
func openHost(t testing.TB, root string, opts ...Option) *FS {
	t.Helper()
	fs, err := Open(root, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fs.Close)
	return fs
}

// cgroupTree makes a host with the given cgroups and returns its root.
func cgroupTree(t testing.TB, cgroups ...string) string {
	t.Helper()
	root := fixtureCopy(t, "", "sys/fs/cgroup/cgroup.controllers", "memory\n")
	for _, c := range cgroups {
		dir := filepath.Join(root, "sys/fs/cgroup", c)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "memory.current"), []byte("4096\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func paths(ids []memcg.ID) []string {
	p := make([]string, len(ids))
	for i, id := range ids {
		p[i] = id.Path
	}
	return p
}

// checkListing compares a listing with what the directories are: the same
// cgroups, right inodes, parents before their children.
func checkListing(t interface {
	Helper()
	Errorf(string, ...any)
}, root string, ids []memcg.ID) {
	t.Helper()
	mount := filepath.Join(root, "sys/fs/cgroup")
	want := map[memcg.ID]bool{}
	err := filepath.WalkDir(mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == mount {
			return err
		}
		info, err := d.Info()
		if err == nil {
			want[memcg.ID{Path: strings.TrimPrefix(path, mount), Inode: info.Sys().(*syscall.Stat_t).Ino}] = true
		}
		return err
	})
	if err != nil {
		t.Errorf("%v", err)
	}
	seen := map[string]bool{"/": true}
	for _, id := range ids {
		if !want[id] {
			t.Errorf("lists %q, inode %d, which is not there or there before", id.Path, id.Inode)
		}
		delete(want, id)
		if !seen[filepath.Dir(id.Path)] {
			t.Errorf("lists %q before its parent", id.Path)
		}
		seen[id.Path] = true
	}
	for id := range want {
		t.Errorf("does not list %q", id.Path)
	}
}

func TestC19NamesAreBytesToTheWalk(t *testing.T) {
	b, err := os.ReadFile("testdata/c19/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(string(b)), "\n")
	names = append(names, "odd/not\xffutf8", "odd/tab\there", "odd/ (deleted)", "odd/..dots", "odd/memory.high")
	root := cgroupTree(t, names...)
	host := openHost(t, root)
	ids, err := host.Cgroups(nil)
	if err != nil {
		t.Fatal(err)
	}
	checkListing(t, root, ids)
	got := paths(ids)
	slices.Sort(got)
	want := make([]string, len(names))
	for i, n := range names {
		want[i] = "/" + n
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("names differ (-want +got):\n%s", d)
	}
	for _, id := range ids {
		if found, err := host.Lookup(id.Path); err != nil || found != id {
			t.Errorf("Lookup(%q) = %v, %v", id.Path, found, err)
		}
	}
}

func TestTheWalkListsDirectoriesOnly(t *testing.T) {
	root := cgroupTree(t, "a", "a/b")
	mount := filepath.Join(root, "sys/fs/cgroup")
	if err := os.Symlink("../a", filepath.Join(mount, "a/b/loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mount, "a/cgroup.type"), []byte("domain invalid\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	ids, err := openHost(t, root).Cgroups(nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/a", "/a/b"}, paths(ids)); d != "" {
		t.Error(d)
	}
}

func TestLinkCountsSpareOpeningLeaves(t *testing.T) {
	cgroups := []string{"a", "a/b", "a/b/c", "d", "e", "e/f"}
	root := cgroupTree(t, cgroups...)
	opened := map[string]bool{}
	k := withFaults(t, root, nil)
	k.cgroup2 = true
	host := openHost(t, root, withKernel(&opening{kernel: k, before: func(name string) { opened[name] = true }}))
	clear(opened)
	ids, err := host.Cgroups(nil)
	if err != nil {
		t.Fatal(err)
	}
	checkListing(t, root, ids)
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(root, "sys/fs/cgroup/d"), &st); err != nil {
		t.Fatal(err)
	}
	if st.Nlink == 2 && opened["d"] {
		t.Error("opened a leaf")
	}
	if !opened["a"] || !opened["e"] {
		t.Error("did not open a cgroup that has children")
	}
}

// opening calls before with the name of everything that is about to be opened.
type opening struct {
	kernel
	before func(name string)
}

func (k *opening) open(dir int, name string, flags int, how resolve) (int, error) {
	k.before(name)
	return k.kernel.open(dir, name, flags, how)
}

func TestC25VanishingCgroupsAreLeftOutOfTheWalk(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(fmt.Sprintf("cgroup2=%v", real), func(t *testing.T) {
			root := cgroupTree(t, "a", "a/x", "b", "b/x", "c", "c/x", "d", "d/x")
			k := withFaults(t, root, []fault{
				{op: "read", path: "sys/fs/cgroup/c", errno: unix.ENODEV}, // removed once it was open
			})
			k.cgroup2 = real
			host := openHost(t, root, withKernel(&opening{kernel: k, before: func(name string) {
				if name == "b" { // removed between the listing of its parent and its own
					if err := os.RemoveAll(filepath.Join(root, "sys/fs/cgroup/b")); err != nil {
						t.Error(err)
					}
				}
			}}))
			ids, err := host.Cgroups(nil)
			if err != nil {
				t.Errorf("a vanished cgroup is reported: %v", err)
			}
			got := paths(ids)
			slices.Sort(got)
			if d := cmp.Diff([]string{"/a", "/a/x", "/d", "/d/x"}, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnUnreadableDirectoryCostsNoOtherCgroupItsPlace(t *testing.T) {
	root := cgroupTree(t, "a", "a/x", "secret", "secret/x", "z", "z/x")
	host := openHost(t, root, withKernel(withFaults(t, root, []fault{
		{op: "open", path: "sys/fs/cgroup/secret", errno: unix.EACCES},
		{op: "read", path: "sys/fs/cgroup/z", errno: unix.EIO},
	})))
	ids, err := host.Cgroups(nil)
	got := paths(ids)
	slices.Sort(got)
	if d := cmp.Diff([]string{"/a", "/a/x", "/secret", "/z"}, got); d != "" {
		t.Error(d)
	}
	if !errors.Is(err, memcg.ErrDenied) || !errors.Is(err, unix.EACCES) || !errors.Is(err, unix.EIO) {
		t.Errorf("err = %v, want both causes", err)
	}
	if err != nil && !strings.Contains(err.Error(), filepath.Join(root, "sys/fs/cgroup/secret")) {
		t.Errorf("%q does not name the directory", err)
	}
}

func TestManyFailuresOfOneWalkMakeAShortError(t *testing.T) {
	var cgroups []string
	var faults []fault
	for i := range 100 {
		cgroups = append(cgroups, fmt.Sprintf("g%d", i))
		faults = append(faults, fault{op: "open", path: "sys/fs/cgroup/" + cgroups[i], errno: unix.EMFILE})
	}
	root := cgroupTree(t, cgroups...)
	k := withFaults(t, root, nil)
	host := openHost(t, root, withKernel(k))
	k.faults = faults
	ids, err := host.Cgroups(nil)
	if len(ids) != 100 || !errors.Is(err, unix.EMFILE) {
		t.Errorf("%d cgroups, %v", len(ids), err)
	}
	if n := strings.Count(err.Error(), "\n"); n > walkErrorsKept {
		t.Errorf("%d lines of error", n+1)
	}
	if !strings.Contains(err.Error(), "and 92 more") {
		t.Errorf("%v does not tell how many more", err)
	}
}

func TestAppendsToWhatIsThere(t *testing.T) {
	before := memcg.ID{Path: "/before", Inode: 1}
	ids, err := openHost(t, cgroupTree(t, "a")).Cgroups([]memcg.ID{before})
	if err != nil || len(ids) != 2 || ids[0] != before || ids[1].Path != "/a" {
		t.Errorf("Cgroups = %v, %v", ids, err)
	}
}

func TestASecondListingDoesNotAllocatePaths(t *testing.T) {
	root := manyCgroups(t, 200)
	host := openHost(t, root)
	ids, err := host.Cgroups(nil)
	if err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(10, func() {
		if ids, err = host.Cgroups(ids[:0]); err != nil {
			t.Fatal(err)
		}
	})
	// Each open hands the kernel a copy of the name that ends in a zero.
	if per := allocs / float64(len(ids)); per > 1.2 {
		t.Errorf("%.2f allocations for each cgroup", per)
	}
	checkListing(t, root, ids)
}

func TestAnyTreeIsListedWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp("", "tree")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		mount := filepath.Join(root, "sys/fs/cgroup")
		if err := os.MkdirAll(mount, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(mount, "cgroup.controllers"), []byte("memory\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		name := rapid.StringMatching(`[a-c:*\\ \[\-]{1,3}`)
		for range rapid.IntRange(0, 20).Draw(t, "cgroups") {
			parts := rapid.SliceOfN(name, 1, 4).Draw(t, "parts")
			if err := os.MkdirAll(filepath.Join(mount, filepath.Join(parts...)), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		k := &faulty{kernel: &linux{}, cgroup2: rapid.Bool().Draw(t, "cgroup2")}
		host, err := Open(root, withKernel(k))
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		ids, err := host.Cgroups(nil)
		if err != nil {
			t.Fatal(err)
		}
		checkListing(t, root, ids)
	})
}

func FuzzNextDirent(f *testing.F) {
	entry := func(size uint16, name string) []byte {
		b := make([]byte, direntHeader, 64)
		b[0], b[16], b[17], b[18] = 42, byte(size), byte(size>>8), unix.DT_DIR
		return append(b, name...)
	}
	f.Add(entry(24, "abc\x00\x00"))
	f.Add(entry(24, "abcde"))
	f.Add(entry(19, ""))
	f.Add(entry(65535, "abc\x00\x00"))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			e, rest, err := nextDirent(b)
			if err != nil {
				if !errors.Is(err, memcg.ErrInvalid) {
					t.Errorf("%v is of no kind", err)
				}
				return
			}
			if len(rest) >= len(b) || len(e.name) == 0 || slices.Contains(e.name, 0) {
				t.Fatalf("entry %q leaves %d of %d bytes", e.name, len(rest), len(b))
			}
			b = rest
		}
	})
}

// manyCgroups makes a host with n cgroups, ten to a parent.
func manyCgroups(t testing.TB, n int) string {
	t.Helper()
	cgroups := make([]string, 0, n)
	for i := 0; len(cgroups) < n; i++ {
		cgroups = append(cgroups, fmt.Sprintf("machine.slice/group-%04d.slice", i/10))
		for j := 0; j < 9 && len(cgroups) < n; j++ {
			cgroups = append(cgroups, fmt.Sprintf("%s/container-%d.scope", cgroups[len(cgroups)-1-j], j))
		}
		i += 9
	}
	return cgroupTree(t, cgroups...)
}

func BenchmarkCgroups(b *testing.B) {
	root := manyCgroups(b, 10_000)
	for _, real := range []bool{false, true} {
		b.Run(fmt.Sprintf("cgroup2=%v", real), func(b *testing.B) {
			host := openHost(b, root)
			host.layout.Fixture = !real
			ids, err := host.Cgroups(nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ids, err = host.Cgroups(ids[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/cgroup")
		})
	}
}
