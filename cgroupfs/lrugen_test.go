package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// listingOf is an entry with one list on node 0: 10 pages of file that are old
// and anon that is the given number of pages.
func listingOf(id uint64, path string, anon int) string {
	return fmt.Sprintf("memcg %5d %s\n node     0\n %10d %10d %10d%c %10d%c\n %10d %10d %10d%c %10d%c\n %10d %10d %10d%c %10d%c\n", id, path,
		4, 60000, anon, ' ', 10, ' ', 5, 30000, 0, ' ', 0, ' ', 6, 0, 0, ' ', 0, ' ')
}

// anonOf returns the anon pages of all generations, list after list.
func anonOf(gens []memcg.Generation) (anon []uint64) {
	for _, g := range gens {
		if g.AnonPages > 0 {
			anon = append(anon, g.AnonPages)
		}
	}
	return anon
}

// atNoon is a clock that stands still: ages are as the listing has them, and a
// reading takes no time.
func atNoon() Option {
	return withClock(func() time.Time { return time.Unix(1e9, 0) })
}

func writeFile(t testing.TB, root, file, content string) {
	t.Helper()
	file = filepath.Join(root, file)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// lruGenTree makes a host with some cgroups and the multi-gen LRU switched on.
// list is given the inode of each cgroup.
func lruGenTree(t testing.TB, cgroups []string, list func(inode func(string) uint64) string) string {
	t.Helper()
	root := cgroupTree(t, cgroups...)
	writeFile(t, root, lruGenEnabled, "0x0007\n")
	host := openHost(t, root)
	writeFile(t, root, lruGenFile, list(func(cgroup string) uint64 { return matched(t, host, cgroup).Inode }))
	return root
}

func TestGenerationsAreThoseOfTheLivingCgroup(t *testing.T) {
	for _, tt := range []struct {
		name string
		list func(inode func(string) uint64) string
		of   string
		want []uint64 // anon pages
	}{
		{"private ids", func(func(string) uint64) string {
			return listingOf(1, "/", 1) + listingOf(20, "/a", 2) + listingOf(21, "/a/b c", 3) + listingOf(22, "/ab", 4)
		}, "/a", []uint64{2, 3}},
		{"inodes", func(i func(string) uint64) string {
			return listingOf(1, "/", 1) + listingOf(i("/a"), "/a", 2) + listingOf(i("/a/b c"), "/a/b c", 3) + listingOf(i("/ab"), "/ab", 4)
		}, "/a", []uint64{2, 3}},
		{"a leaf", func(func(string) uint64) string {
			return listingOf(20, "/a", 2) + listingOf(21, "/a/b c", 3)
		}, "/a/b c", []uint64{3}},
		{"the root has them all", func(func(string) uint64) string {
			return listingOf(1, "/", 1) + listingOf(20, "/a", 2) + listingOf(21, "/a/b c", 3) + listingOf(22, "/ab", 4)
		}, "/", []uint64{1, 2, 3, 4}},
		{"private ids, a removed cgroup without one", func(func(string) uint64) string {
			return listingOf(0, "/a", 9) + listingOf(20, "/a", 2) + listingOf(0, "/a/b c", 9) + listingOf(21, "/a/b c", 3)
		}, "/a", []uint64{2, 3}},
		{"private ids, a removed cgroup that kept its own: nothing tells which is which", func(func(string) uint64) string {
			return listingOf(20, "/a", 2) + listingOf(7, "/a/b c", 9) + listingOf(21, "/a/b c", 3)
		}, "/a", []uint64{2}},
		{"private ids, only a removed cgroup is listed", func(func(string) uint64) string {
			return listingOf(20, "/a", 2) + listingOf(0, "/a/b c", 9)
		}, "/a", []uint64{2}},
		{"inodes, removed cgroups before and after", func(i func(string) uint64) string {
			return listingOf(77777, "/a", 9) + listingOf(i("/a"), "/a", 2) + listingOf(88888, "/a", 9) + listingOf(99999, "/a", 9) +
				listingOf(i("/a/b c"), "/a/b c", 3) + listingOf(i("/ab"), "/ab", 4)
		}, "/a", []uint64{2, 3}},
		{"inodes, only a removed cgroup is listed", func(i func(string) uint64) string {
			return listingOf(i("/a"), "/a", 2) + listingOf(77777, "/a/b c", 9) + listingOf(i("/ab"), "/ab", 4)
		}, "/a", []uint64{2}},
		{"inodes, the memory controller was off meanwhile", func(i func(string) uint64) string {
			return listingOf(i("/a"), "/a", 2) + listingOf(i("/a/b c"), "/a/b c", 9) + listingOf(i("/a/b c"), "/a/b c", 3)
		}, "/a", []uint64{2}},
		{"a cgroup that does not exist any more", func(func(string) uint64) string {
			return listingOf(20, "/a", 2) + listingOf(30, "/a/gone", 9)
		}, "/a", []uint64{2}},
		{"a list without a page is left out", func(func(string) uint64) string {
			return listingOf(20, "/a", 2) + "memcg 21 /a/b c\n node 0\n 1 2 0  0 \n 2 1 0  0 \n"
		}, "/a", []uint64{2}},
		{"not listed", func(func(string) uint64) string { return listingOf(1, "/", 1) }, "/a", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := lruGenTree(t, []string{"a", "a/b c", "ab"}, tt.list)
			host := openHost(t, root, ReadOnly())
			got, err := host.Generations(*matched(t, host, tt.of), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, anonOf(got)); diff != "" {
				t.Errorf("anon pages (-want +got):\n%s", diff)
			}
			if host.Writes() != 0 {
				t.Error("a reading wrote")
			}
		})
	}
}

func TestGenerationsAreAppendedOldestFirst(t *testing.T) {
	root := lruGenTree(t, []string{"a"}, func(func(string) uint64) string { return listingOf(20, "/a", 2) })
	host := openHost(t, root, atNoon())
	was := generation(3, 9, 0, 0, 0, false)
	got, err := host.Generations(*matched(t, host, "/a"), []memcg.Generation{was})
	want := []memcg.Generation{was, generation(0, 4, 60000, 2, 10, true), generation(0, 5, 30000, 0, 0, false), generation(0, 6, 0, 0, 0, false)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("err %v (-want +got):\n%s", err, diff)
	}
}

func TestGenerationsSayWhyThereAreNone(t *testing.T) {
	namespaced := []string{"sys/fs/cgroup/cgroup.type", "domain\n"}
	for _, tt := range []struct {
		name   string
		files  []string
		faults []fault
		kind   error
		text   string
	}{
		{"not built in", nil, nil, memcg.ErrUnsupported, "CONFIG_LRU_GEN"},
		{"switched off, as Debian 6.1 has it", []string{lruGenEnabled, "0x0000\n", lruGenFile, listingOff}, nil, memcg.ErrUnsupported, "write y to it"},
		{"debugfs not mounted", []string{lruGenEnabled, "0x0007\n"}, nil, memcg.ErrUnsupported, "mount -t debugfs"},
		{"locked down", []string{lruGenEnabled, "0x0007\n", lruGenFile, "", lockdownFile, "none [integrity] confidentiality\n"},
			[]fault{{op: "open", path: lruGenFile, errno: unix.EPERM}}, memcg.ErrDenied, "lockdown is integrity"},
		{"not for us", []string{lruGenEnabled, "0x0007\n", lruGenFile, ""},
			[]fault{{op: "open", path: lruGenFile, errno: unix.EACCES}}, memcg.ErrDenied, "for root alone"},
		{"a switch that is none", []string{lruGenEnabled, "maybe\n", lruGenFile, ""}, nil, memcg.ErrInvalid, "maybe"},
		{"a format that is not known", []string{lruGenEnabled, "0x0007\n", lruGenFile, "memcg 1 /\n page 0\n"}, nil, memcg.ErrInvalid, "page 0"},
		{"a reading that fails", []string{lruGenEnabled, "0x0007\n", lruGenFile, ""},
			[]fault{{op: "read", path: lruGenFile, errno: unix.EIO}}, unix.EIO, lruGenFile},
		{"in a cgroup namespace", append(namespaced, lruGenEnabled, "0x0007\n", lruGenFile, listingOf(20, "/a", 1)), nil, memcg.ErrUnsupported, "only a part of the hierarchy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fixtureCopy(t, "", append(tt.files, "sys/fs/cgroup/cgroup.controllers", "memory\n", "sys/fs/cgroup/a/memory.current", "1\n")...)
			host := openHost(t, root, withKernel(withFaults(t, root, tt.faults)))
			gens, err := host.Generations(*matched(t, host, "/a"), nil)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) || len(gens) != 0 {
				t.Errorf("%d generations, err = %v", len(gens), err)
			}
		})
	}
}

func TestAReadingServesATick(t *testing.T) {
	root := lruGenTree(t, []string{"a", "b"}, func(func(string) uint64) string { return listingOf(20, "/a", 2) + listingOf(21, "/b", 3) })
	host := openHost(t, root, atNoon())
	a, b := *matched(t, host, "/a"), *matched(t, host, "/b")
	anon := func(id memcg.ID) []uint64 {
		t.Helper()
		gens, err := host.Generations(id, nil)
		if err != nil {
			t.Fatal(err)
		}
		return anonOf(gens)
	}
	change := func(anon int) {
		writeFile(t, root, lruGenFile, listingOf(20, "/a", anon)+listingOf(21, "/b", anon))
	}
	steps := []struct {
		do   func()
		id   memcg.ID
		want uint64
	}{
		{func() {}, a, 2},
		{func() { change(5) }, a, 5}, // no tick has begun yet
		{host.BeginTick, a, 5},
		{func() { change(6) }, b, 5},
		{host.BeginTick, b, 6},
	}
	for i, s := range steps {
		s.do()
		if got := anon(s.id); len(got) != 1 || got[0] != s.want {
			t.Errorf("step %d: %v, want %d", i, got, s.want)
		}
	}

	// What cannot be read is tried once a tick too.
	if err := os.Remove(filepath.Join(root, lruGenFile)); err != nil {
		t.Fatal(err)
	}
	host.BeginTick()
	if _, err := host.Generations(a, nil); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("err = %v", err)
	}
	change(7)
	if _, err := host.Generations(b, nil); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("within the tick err = %v", err)
	}
	host.BeginTick()
	if got := anon(a); len(got) != 1 || got[0] != 7 {
		t.Errorf("%v, want 7", got)
	}
}

func TestACgroupThatCameBackHasNoGenerationsOfItsForerunner(t *testing.T) {
	for name, inodes := range map[string]bool{"private ids": false, "inodes": true} {
		t.Run(name, func(t *testing.T) {
			root := lruGenTree(t, []string{"a", "b"}, func(i func(string) uint64) string {
				if inodes {
					return listingOf(i("/a"), "/a", 2) + listingOf(i("/b"), "/b", 3)
				}
				return listingOf(20, "/a", 2) + listingOf(21, "/b", 3)
			})
			host := openHost(t, root, atNoon())
			old := *matched(t, host, "/a")
			host.BeginTick()
			if _, err := host.Generations(old, nil); err != nil {
				t.Fatal(err)
			}
			// The old directory is kept elsewhere, so that its inode is not used again.
			if err := os.Rename(filepath.Join(root, "sys/fs/cgroup/a"), filepath.Join(root, "a")); err != nil {
				t.Fatal(err)
			}
			writeFile(t, root, "sys/fs/cgroup/a/memory.current", "1\n")
			gens, err := host.Generations(*matched(t, host, "/a"), nil)
			if err != nil || len(gens) != 0 {
				t.Errorf("the new one: %v, %v", gens, err)
			}
			host.BeginTick()
			if gens, err := host.Generations(old, nil); !errors.Is(err, memcg.ErrGone) || len(gens) != 0 {
				t.Errorf("the old one: %v, %v", gens, err)
			}
		})
	}
}
