package container

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hash(c string) string { return strings.Repeat(c, idLength)[:idLength] }

const (
	podUID  = "0d9a4a2e-6c1b-4a57-9a50-0b4a1f0c7d11"
	podDir  = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0d9a4a2e_6c1b_4a57_9a50_0b4a1f0c7d11.slice"
	userDir = "/user.slice/user-1000.slice/user@1000.service/user.slice"
)

var paths = []struct {
	name, path string
	want       []Candidate
	uid, user  string
}{
	{"containerd of Kubernetes", podDir + "/cri-containerd-" + hash("c0") + ".scope",
		[]Candidate{{hash("c0"), "cri-containerd", podDir + "/cri-containerd-" + hash("c0") + ".scope", "", true}}, podUID, ""},
	{"CRI-O with crun's own cgroup inside", podDir + "/crio-" + hash("0c") + ".scope/container",
		[]Candidate{{hash("0c"), "crio", podDir + "/crio-" + hash("0c") + ".scope", "/container", true}}, podUID, ""},
	{"conmon is no container", podDir + "/crio-conmon-" + hash("0c") + ".scope", nil, podUID, ""},
	{"the kubelet without systemd", "/kubepods/besteffort/pod" + podUID + "/" + hash("c3"),
		[]Candidate{{hash("c3"), "", "/kubepods/besteffort/pod" + podUID + "/" + hash("c3"), "", true}}, podUID, ""},
	{"a static pod, whose uid is a hash", "/kubepods.slice/kubepods-pod1a2b3c4d5e6f708192a3b4c5d6e7f809.slice", nil, "1a2b3c4d5e6f708192a3b4c5d6e7f809", ""},
	{"a kubelet below a slice of its own", "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podab.slice", nil, "ab", ""},
	{"Docker by systemd", "/system.slice/docker-" + hash("d0") + ".scope", []Candidate{{hash("d0"), "docker", "/system.slice/docker-" + hash("d0") + ".scope", "", true}}, "", ""},
	{"Docker without systemd, and a cgroup inside", "/docker/" + hash("d1") + "/system.slice/init.scope",
		[]Candidate{{hash("d1"), "", "/docker/" + hash("d1"), "/system.slice/init.scope", true}}, "", ""},
	{"podman of a user", userDir + "/libpod-" + hash("9d") + ".scope",
		[]Candidate{{hash("9d"), "libpod", userDir + "/libpod-" + hash("9d") + ".scope", "", true}}, "", "1000"},
	{"podman without systemd", "/libpod_parent/libpod-" + hash("9e"), []Candidate{{hash("9e"), "libpod", "/libpod_parent/libpod-" + hash("9e"), "", true}}, "", ""},
	{"the innermost of nested ones first", "/docker/" + hash("d1") + "/kubepods/podx/" + hash("c0"),
		[]Candidate{{hash("c0"), "", "/docker/" + hash("d1") + "/kubepods/podx/" + hash("c0"), "", true}, {hash("d1"), "", "/docker/" + hash("d1"), "/kubepods/podx/" + hash("c0"), true}}, "x", ""},
	{"a chosen id", "/system.slice/runc-my-db.scope", []Candidate{{"my-db", "runc", "/system.slice/runc-my-db.scope", "", false}}, "", ""},
	{"a chosen id that is a way out", "/system.slice/runc-...scope", nil, "", ""},
	{"plain names may be ids", "/default/redis", []Candidate{{"redis", "", "/default/redis", "", false}, {"default", "", "/default", "/redis", false}}, "", ""},
	{"a service", "/system.slice/postgresql.service", nil, "", ""},
	{"a scope of somebody else", "/machine.slice/machine-qemu.scope", nil, "", ""},
	{"names that are no ids", "/a b/\xff\xfe/..x/-y", nil, "", ""},
	{"a pod folder without a kubelet", "/podx", []Candidate{{"podx", "", "/podx", "", false}}, "", ""},
	{"another user's slice by its name alone", "/x/user.slice/user-1000.slice", []Candidate{{"x", "", "/x", "/user.slice/user-1000.slice", false}}, "", ""},
	{"the root", "/", nil, "", ""},
}

func TestAPathTellsWhichContainerACgroupMayBe(t *testing.T) {
	for _, p := range paths {
		if diff := cmp.Diff(p.want, Candidates(p.path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.name, diff)
		}
		if uid, _ := podOf(p.path); uid != p.uid {
			t.Errorf("%s: pod %q, want %q", p.name, uid, p.uid)
		}
		if user := userOf(p.path); user != p.user {
			t.Errorf("%s: user %q, want %q", p.name, user, p.user)
		}
	}
}

func FuzzCandidates(f *testing.F) {
	for _, p := range paths {
		f.Add(p.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		list := Candidates(path)
		if len(list) > maxCandidates {
			t.Fatalf("%d candidates", len(list))
		}
		for i, c := range list {
			switch {
			case c.Path+c.Inner != path:
				t.Fatalf("%q and %q are not the path", c.Path, c.Inner)
			case c.Inner != "" && c.Inner[0] != '/':
				t.Fatalf("inner %q", c.Inner)
			case !goodID.MatchString(c.ID) || c.ID == "." || c.ID == "..":
				t.Fatalf("id %q", c.ID)
			case i > 0 && len(c.Path) >= len(list[i-1].Path):
				t.Fatal("not from the inside out")
			}
		}
		if uid, own := podOf(path); uid == "" != (own == "") || !strings.HasPrefix(path, own) {
			t.Fatalf("pod %q of %q", uid, own)
		}
	})
}

func TestASpecOwnsTheCgroupThatItNamesAndNoOther(t *testing.T) {
	id := hash("ab")
	for _, c := range []struct {
		name, cgroupsPath, path string
		want                    bool
	}{
		{"systemd", "a-b.slice:crio:" + id, "/a.slice/a-b.slice/crio-" + id + ".scope", true},
		{"systemd, the slice by its name alone", "a-b.slice:crio:" + id, "/a-b.slice/crio-" + id + ".scope", false},
		{"systemd, below somebody's delegated cgroup", "system.slice:docker:" + id, "/system.slice/x.service/system.slice/docker-" + id + ".scope", false},
		{"systemd, another prefix", "system.slice:docker:" + id, "/system.slice/crio-" + id + ".scope", false},
		{"systemd, without a slice", ":docker:" + id, "/system.slice/docker-" + id + ".scope", true},
		{"systemd, the root slice", "-.slice:docker:" + id, "/docker-" + id + ".scope", true},
		{"systemd, a slice that is none", "a--b.slice:docker:" + id, "/a.slice/docker-" + id + ".scope", false},
		{"systemd, a slice with a way out", "../a.slice:docker:" + id, "/a.slice/docker-" + id + ".scope", false},
		{"a user's systemd", "user.slice:libpod:" + id, userDir + "/libpod-" + id + ".scope", true},
		{"the system's, said by a user", "user.slice:libpod:" + id, "/user.slice/libpod-" + id + ".scope", true},
		{"another user", "user.slice:libpod:" + id, "/user.slice/user-1000.slice/user@1001.service/user.slice/libpod-" + id + ".scope", false},
		{"absolute", "/docker/" + id, "/docker/" + id, true},
		{"absolute, not in its shortest form", "/docker//" + id + "/", "/docker/" + id, true},
		{"absolute, further down", "/docker/" + id, "/system.slice/evil.service/docker/" + id, false},
		{"absolute, by a runtime that sees the user's cgroups alone", "/" + id, userDir + "/" + id, true},
		{"relative", "docker/" + id, "/system.slice/docker.service/docker/" + id, true},
		{"relative, half a component", "ker/" + id, "/docker/" + id, false},
		{"none, at the top", "", "/" + id, true},
		{"none, elsewhere", "", "/system.slice/evil.service/" + id, false},
		{"none, by systemd", "", "/system.slice/runc-" + id + ".scope", true},
		{"the root is nobody's", "/", "/" + id, false},
		{"nor is it by its other names", "./x/..", "/" + id, false},
	} {
		list := Candidates(c.path)
		if len(list) == 0 {
			t.Errorf("%s: no candidate in %s", c.name, c.path)
			continue
		}
		if got := (&Spec{CgroupsPath: c.cgroupsPath}).Owns(list[0]); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
