package cgroupfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestC19TheOwnCgroupIsSplitAtTwoColonsOnly(t *testing.T) {
	for _, tt := range []struct {
		pid, want string
		removed   bool
	}{
		{"77", "/system.slice/kubepods-burstable-podaaaa_bbbb.slice:cri-containerd:0123abcd", false},
		{"78", "/gone.scope", true},
		{"79", "/", false},
	} {
		got, removed, ok := parseProcCgroup(fixture(t, "c19/proc", tt.pid, "cgroup"))
		if got != tt.want || removed != tt.removed || !ok {
			t.Errorf("proc/%s/cgroup: %q, removed %v, %v", tt.pid, got, removed, ok)
		}
	}
	hybrid, _, ok := parseProcCgroup(fixture(t, "c16/controllers-on-v1/proc/self/cgroup"))
	if want := "/user.slice/user-1000.slice/session-1.scope"; hybrid != want || !ok {
		t.Errorf("hybrid: %q, %v", hybrid, ok)
	}
	if _, _, ok := parseProcCgroup([]byte("3:memory:/app\n")); ok {
		t.Error("a v1 line passes for v2")
	}
}

// onCgroup2 returns the files of a tree that claims to be a kernel's: a mount
// table, and the test's own process in the cgroup self.
func onCgroup2(self string) []string {
	return []string{
		"proc/self/mountinfo", "2 1 0:3 / /sys/fs/cgroup" + cgroup2At,
		"proc/self/cgroup", "0::" + self + "\n",
		"sys/fs/cgroup/cgroup.controllers", "cpuset memory\n",
		"sys/fs/cgroup" + self + "/cgroup.procs", "1\n" + strconv.Itoa(os.Getpid()) + "\n",
	}
}

func TestTheAgentsOwnCgroup(t *testing.T) {
	for _, tt := range []struct {
		name      string
		procSelf  string
		mountRoot string
		really    string // where the process is
		want      string // "": not known
	}{
		{"in the host's namespace", "/system.slice/memagent.service", "/", "/system.slice/memagent.service", "/system.slice/memagent.service"},
		{"below the part that is mounted", "/kubepods/pod/x", "/kubepods", "/pod/x", "/pod/x"},
		{"the part that is mounted", "/kubepods", "/kubepods", "/", "/"},
		{"in a namespace of its own, searched for", "/", "/../..", "/kubepods/pod", "/kubepods/pod"},
		{"outside of the namespace root, searched for", "/../../a", "/", "/b", "/b"},
		{"a path that lies, searched for", "/a", "/", "/b", "/b"},
		{"outside of what is mounted", "/elsewhere", "/kubepods", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fixtureCopy(t, "", "proc/self/mountinfo", "2 1 0:3 "+tt.mountRoot+" /sys/fs/cgroup"+cgroup2At,
				"proc/self/cgroup", "0::"+tt.procSelf+"\n", "sys/fs/cgroup/cgroup.controllers", "memory\n",
				"sys/fs/cgroup/a/cgroup.procs", "1\n")
			if tt.really != "" {
				procs := filepath.Join(root, "sys/fs/cgroup", tt.really, "cgroup.procs")
				if err := os.MkdirAll(filepath.Dir(procs), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(procs, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			k := withFaults(t, root, nil)
			k.cgroup2 = true
			fs := mustOpen(t, root, withKernel(k))
			got, ok := fs.Self()
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("Self() = %q, %v; want %q", got, ok, tt.want)
			}
			if err := fs.Enforceable(); (err == nil) != ok {
				t.Errorf("Enforceable() = %v", err)
			}
		})
	}
}

func TestTheAgentAndAllAboveItAreItsOwn(t *testing.T) {
	fs := &FS{self: selfPath{path: "/a/b", literal: "/a/b (deleted)", known: true}}
	for cgroup, want := range map[string]bool{"/": true, "/a": true, "/a/b": true, "/a/b (deleted)": true, "/a/b/c": false, "/a/bc": false, "/aa": false} {
		if got := fs.Owns(cgroup); got != want {
			t.Errorf("Owns(%q) = %v", cgroup, got)
		}
	}
}

func FuzzProcCgroup(f *testing.F) {
	f.Add([]byte("12:cpuset:/\n0::/a:b:c\n"))
	f.Add([]byte("0::/gone (deleted)\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, removed, ok := parseProcCgroup(b)
		if ok && !strings.HasPrefix(got, "/") {
			t.Errorf("%q", got)
		}
		if removed {
			got += removedMark
		}
		if ok && !strings.Contains(string(b), "0::"+got) {
			t.Errorf("%q is not in %q", got, b)
		}
	})
}
