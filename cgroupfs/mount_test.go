package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// mustOpen opens a tree and closes it with the test.
func mustOpen(t testing.TB, root string, opts ...Option) *FS {
	t.Helper()
	fs, err := Open(root, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fs.Close)
	return fs
}

func TestC14MountLines(t *testing.T) {
	for _, tt := range []struct {
		fixture string
		want    mount // of the cgroup2 line
	}{
		{"no-optional-field", mount{id: 386, parent: 384, root: "/", point: "/sys/fs/cgroup", options: "rw,nosuid,nodev,noexec,relatime", super: "rw,nsdelegate"}},
		{"two-optional-fields", mount{id: 470, parent: 465, root: "/", point: "/sys/fs/cgroup", options: "rw,nosuid,nodev,noexec,relatime", super: "rw,seclabel,nsdelegate"}},
		{"source-is-dash", mount{id: 25, parent: 17, root: "/", point: "/sys/fs/cgroup", options: "rw,relatime", super: "rw,nsdelegate"}},
		{"source-is-none", mount{id: 25, parent: 17, root: "/", point: "/sys/fs/cgroup", options: "rw,relatime", super: "rw"}},
		{"super-options-with-space", mount{id: 121, parent: 80, root: "/", point: "/sys/fs/cgroup", options: "rw,nosuid", super: "rw"}},
		{"escaped-mount-point", mount{id: 121, parent: 80, root: "/", point: "/mnt/my cgroups\ttab", options: "rw,nosuid", super: "rw,nsdelegate"}},
		{"odd-place", mount{id: 121, parent: 80, root: "/", point: "/host-cgroup", options: "rw,nosuid", super: "rw,nsdelegate,memory_localevents"}},
	} {
		t.Run(tt.fixture, func(t *testing.T) {
			tt.want.fstype = "cgroup2"
			var got []mount
			for _, m := range parseMountinfo(fixture(t, "c14", tt.fixture, "proc/self/mountinfo")) {
				if m.fstype == "cgroup2" {
					got = append(got, m)
				}
			}
			if want := []mount{tt.want}; !cmp.Equal(got, want, cmp.AllowUnexported(mount{})) {
				t.Error(cmp.Diff(want, got, cmp.AllowUnexported(mount{})))
			}
		})
	}
}

func TestC14EveryKindOfMountLineLeadsToTheMount(t *testing.T) {
	for variant, point := range map[string]string{
		"no-optional-field": "/sys/fs/cgroup", "two-optional-fields": "/sys/fs/cgroup", "source-is-dash": "/sys/fs/cgroup",
		"source-is-none": "/sys/fs/cgroup", "super-options-with-space": "/sys/fs/cgroup",
		"escaped-mount-point": "/mnt/my cgroups\ttab", "odd-place": "/host-cgroup",
	} {
		t.Run(variant, func(t *testing.T) {
			root := fixtureCopy(t, "c14/"+variant, point+"/cgroup.controllers", "cpuset cpu memory\n")
			want := Layout{Mode: ModeUnified, Mount: point, Controllers: []string{"cpuset", "cpu", "memory"},
				MemoryOn: OnV2, CpusetOn: OnV2, Fixture: true}
			if got := mustOpen(t, root).Layout(); !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func TestOddMountLinesAreSkippedAlone(t *testing.T) {
	const good = "25 17 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
	for _, odd := range []string{
		"", "garbage", "x 17 0:27 / /a rw - cgroup2 c rw", "1 2 3 4 5", "1 2 0:3 / /a rw shared:1 cgroup2 cgroup2 rw",
		"1 2 0:3 / relative rw - cgroup2 cgroup2 rw", "1 2 0:3 / /a rw -", "1 2 0:3 / /a rw - cgroup2",
	} {
		got := parseMountinfo([]byte(odd + "\n" + good + "\n"))
		if len(got) != 1 || got[0].point != "/sys/fs/cgroup" {
			t.Errorf("after %q: %+v", odd, got)
		}
	}
}

func TestC16MemoryOnV1IsRefusedWithTheRemedy(t *testing.T) {
	_, err := Open("testdata/c16/controllers-on-v1")
	var none *NoMemoryController
	if !errors.As(err, &none) || !errors.Is(err, memcg.ErrUnsupported) {
		t.Fatalf("err = %v", err)
	}
	if l := none.Layout; l.Mode != ModeHybrid || l.MemoryOn != OnV1 || l.CpusetOn != OnV1 {
		t.Errorf("layout %+v", l)
	}
	for _, part := range []string{"hybrid", "cgroup v1", "systemd.unified_cgroup_hierarchy=1", "cgroup_no_v1=memory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestC16MemoryAloneOnV2IsUsedWithoutCpuset(t *testing.T) {
	fs := mustOpen(t, "testdata/c16/memory-on-v2-only")
	l := fs.Layout()
	if l.Mode != ModeHybrid || l.Mount != "/sys/fs/cgroup/unified" || l.MemoryOn != OnV2 || l.CpusetOn != OnV1 {
		t.Errorf("layout %+v", l)
	}
	if want := "recorded cgroup files at /sys/fs/cgroup/unified, for reading only, with the memory controller, cpuset is on v1."; l.Describe() != want {
		t.Errorf("Describe() = %q", l.Describe())
	}
	var s memcg.Sample
	if err := fs.Sample(idOf(t, fs, "/system.slice"), &s); err != nil || s.Current != memcg.Value(104857600) {
		t.Errorf("memory.current = %v, %v", s.Current, err)
	}
}

func TestC17ALeftOverLineIsNoMount(t *testing.T) {
	_, err := Open("testdata/c17")
	var none *NoMemoryController
	if !errors.As(err, &none) || none.Layout.Mode != ModeV1 || !none.Layout.Unmounted || none.Layout.MemoryOn != OnV1 {
		t.Fatalf("err = %v, layout %+v", err, none)
	}
	if !strings.Contains(err.Error(), "cgroup2 is not mounted, though /proc/self/cgroup has a 0:: line") {
		t.Error(err)
	}
}

const cgroup2At = " rw - cgroup2 cgroup2 rw\n"

func TestWhyThereIsNoMemoryController(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		want  string
	}{
		{"an empty folder", []string{"README", ""}, "no cgroup filesystem is mounted"},
		{"nothing mounted", []string{"proc/self/mountinfo", "1 0 8:1 / / rw - ext4 sda rw\n"}, "no cgroup filesystem is mounted"},
		{"v1 alone", []string{"proc/self/mountinfo", "2 1 0:3 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"}, "this host uses cgroup v1"},
		{"a named v1 hierarchy has no controllers", []string{"proc/self/mountinfo", "2 1 0:3 / /s rw - cgroup cgroup rw,xattr,name=systemd\n"}, "no cgroup filesystem is mounted"},
		{"memory not delegated into a namespace", []string{
			"proc/self/mountinfo", "2 1 0:3 / /sys/fs/cgroup" + cgroup2At,
			"sys/fs/cgroup/cgroup.controllers", "cpu pids\n", "sys/fs/cgroup/cgroup.type", "domain\n",
		}, "only a part of the hierarchy is visible at /sys/fs/cgroup and memory is not delegated"},
		{"memory disabled", []string{
			"proc/self/mountinfo", "2 1 0:3 / /sys/fs/cgroup" + cgroup2At, "sys/fs/cgroup/cgroup.controllers", "cpu pids\n",
		}, "memory is not in cgroup.controllers at /sys/fs/cgroup (cpu pids)"},
		{"listed and out of reach", []string{"proc/1/mountinfo", "2 1 0:3 / /sys/fs/cgroup" + cgroup2At}, "cannot be reached there"},
		{"a tree of v1", []string{"sys/fs/cgroup/memory/pod/memory.numa_stat", "total=1 N0=1\n"}, "no cgroup filesystem is mounted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs, err := Open(fixtureCopy(t, "", tt.files...))
			if err == nil {
				fs.Close()
				t.Fatalf("opened: %s", fs.Layout().Describe())
			}
			var none *NoMemoryController
			if !errors.As(err, &none) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheBestOfSeveralMountsIsUsed(t *testing.T) {
	const controllers = "/cgroup.controllers"
	for _, tt := range []struct {
		name, table string
		files       []string
		want        Layout
	}{
		{"the one that has memory", "2 1 0:3 / /a" + cgroup2At + "3 1 0:3 / /b" + cgroup2At,
			[]string{"a" + controllers, "cpu", "b" + controllers, "memory"}, Layout{Mount: "/b"}},
		{"the whole hierarchy before a part", "2 1 0:3 /kubepods /a" + cgroup2At + "3 1 0:3 / /b" + cgroup2At,
			[]string{"a" + controllers, "memory", "b" + controllers, "memory"}, Layout{Mount: "/b"}},
		{"a part where there is no more", "2 1 0:3 /kubepods /a" + cgroup2At,
			[]string{"a" + controllers, "memory"}, Layout{Mount: "/a", Namespaced: true}},
		{"a namespace, whose mount table says it is whole", "2 1 0:3 / /a" + cgroup2At,
			[]string{"a" + controllers, "memory", "a/cgroup.type", "domain"}, Layout{Mount: "/a", Namespaced: true}},
		{"what lies above the reader's namespace", "2 1 0:3 /../.. /a" + cgroup2At,
			[]string{"a" + controllers, "memory"}, Layout{Mount: "/a"}},
		{"the writable one", "2 1 0:3 / /a ro - cgroup2 cgroup2 rw\n3 1 0:3 / /b" + cgroup2At,
			[]string{"a" + controllers, "memory", "b" + controllers, "memory"}, Layout{Mount: "/b"}},
		{"the read-only one where there is no other", "2 1 0:3 / /a ro - cgroup2 cgroup2 rw\n",
			[]string{"a" + controllers, "memory"}, Layout{Mount: "/a", ReadOnlyMount: true}},
		{"not the one that another is stacked on", "2 1 0:3 /part /a" + cgroup2At + "3 2 0:3 / /a" + cgroup2At,
			[]string{"a" + controllers, "memory"}, Layout{Mount: "/a"}},
		{"not the one below a directory mounted over", "2 1 0:3 / /a/x" + cgroup2At + "3 1 0:3 / /b" + cgroup2At + "4 1 0:9 / /a rw - tmpfs t rw\n",
			[]string{"a/x" + controllers, "memory", "b" + controllers, "memory"}, Layout{Mount: "/b", Hidden: []string{"/a/x"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fixtureCopy(t, "", append(tt.files, "proc/self/mountinfo", "1 0 8:1 / / rw - ext4 sda rw\n"+tt.table)...)
			tt.want.Mode, tt.want.Controllers, tt.want.MemoryOn, tt.want.Fixture = ModeUnified, []string{"memory"}, OnV2, true
			if got := mustOpen(t, root).Layout(); !cmp.Equal(got, tt.want) {
				t.Error(cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestASidecarReadsTheMountTableOfTheHost(t *testing.T) {
	root := fixtureCopy(t, "", "sys/fs/cgroup/cgroup.controllers", "memory",
		"proc/1/mountinfo", "2 1 0:3 / /sys/fs/cgroup"+cgroup2At,
		"proc/self/mountinfo", "2 1 0:3 /docker/x /sys/fs/cgroup"+cgroup2At)
	if l := mustOpen(t, root).Layout(); l.Namespaced || l.Mount != "/sys/fs/cgroup" {
		t.Errorf("layout %+v", l)
	}
	// Where process 1 cannot be seen, the agent's own table has the root as a prefix.
	root = fixtureCopy(t, "", "sys/fs/cgroup/cgroup.controllers", "memory")
	table := filepath.Join(root, "proc/self/mountinfo")
	if err := os.MkdirAll(filepath.Dir(table), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, []byte("2 1 0:3 / "+root+"/sys/fs/cgroup"+cgroup2At), 0o666); err != nil {
		t.Fatal(err)
	}
	if l := mustOpen(t, root).Layout(); l.Mount != "/sys/fs/cgroup" {
		t.Errorf("layout %+v", l)
	}
}

func TestRecordedFilesAreNeverEnforceable(t *testing.T) {
	fs := mustOpen(t, "testdata/c01")
	if !fs.Layout().Fixture || fs.Layout().Mount != "/sys/fs/cgroup" {
		t.Errorf("layout %+v", fs.Layout())
	}
	if err := fs.Enforceable(); !errors.Is(err, memcg.ErrReadOnly) || !strings.Contains(err.Error(), "plain files") {
		t.Errorf("Enforceable() = %v", err)
	}
	if err := mustOpen(t, "testdata/c01", ReadOnly()).Enforceable(); !errors.Is(err, memcg.ErrReadOnly) {
		t.Errorf("observing: %v", err)
	}
}

func TestUnescapeLeavesOtherBackslashesAlone(t *testing.T) {
	for in, want := range map[string]string{
		`/a\040b`: "/a b", `\011\012\134\043`: "\t\n\\#", `/a\`: `/a\`, `/a\04`: `/a\04`, `\x2d`: `\x2d`, `\777`: `\777`, `\0400`: " 0",
	} {
		if got := unescape(in); got != want {
			t.Errorf("unescape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzMountinfo(f *testing.F) {
	for _, v := range []string{"escaped-mount-point", "source-is-dash", "super-options-with-space", "two-optional-fields"} {
		f.Add(fixture(f, "c14", v, "proc/self/mountinfo"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all := parseMountinfo(b)
		for _, m := range all {
			if m.fstype == "" || !strings.HasPrefix(m.point, "/") {
				t.Errorf("%+v", m)
			}
			hidden(m, all)
		}
		// A naive reader finds the same lines by their fields.
		n := 0
		for _, line := range strings.Split(string(b), "\n") {
			head, tail, ok := strings.Cut(line, " - ")
			if h := strings.Split(head, " "); ok && len(h) >= 6 && len(strings.SplitN(tail, " ", 3)) >= 2 && tail[0] != ' ' {
				_, err1 := strconv.Atoi(h[0])
				_, err2 := strconv.Atoi(h[1])
				if err1 == nil && err2 == nil && strings.HasPrefix(unescape(h[4]), "/") && strings.SplitN(tail, " ", 3)[1] != "" {
					n++
				}
			}
		}
		if len(all) < n {
			t.Errorf("%d lines read, %d are there", len(all), n)
		}
	})
}

func TestTheWalkKeepsWhatOpenat2Enforces(t *testing.T) {
	root := fixtureCopy(t, "", "a/b/file", "x", "outside", "secret")
	if err := os.Symlink("../outside", filepath.Join(root, "a/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", filepath.Join(root, "a/dirlink")); err != nil {
		t.Fatal(err)
	}
	walking := &linux{}
	walking.walks.Store(true)
	for name, k := range map[string]*linux{"openat2": {}, "walk": walking} {
		t.Run(name, func(t *testing.T) {
			dir, err := unix.Open(filepath.Join(root, "a"), unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(dir)
			for _, tt := range []struct {
				name string
				ok   bool
			}{
				{"b/file", true}, {".", true}, {"b", true}, {"link", false}, {"dirlink/file", false}, {"../outside", false},
				{"b/../../outside", false}, {"/etc/passwd", false}, {"missing", false},
			} {
				fd, err := k.open(dir, tt.name, unix.O_RDONLY, beneath)
				if (err == nil) != tt.ok {
					t.Errorf("open %s: %v", tt.name, err)
				}
				if err == nil {
					_ = unix.Close(fd)
				}
			}
		})
	}
}
