package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func open(t *testing.T, dir string) *Catalog {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTheContainersOfEachRuntimeAreFound(t *testing.T) {
	scope := func(dir, prefix, id string) string { return dir + "/" + prefix + "-" + hash(id) + ".scope" }
	for _, c := range []struct {
		name, root, path string
		label, runtime   string
		check            func(d *Description) bool
	}{
		{"containerd of Kubernetes", "containerd", scope(podDir, "cri-containerd", "c0"), "shop/cart-7d9/app", Containerd, func(d *Description) bool {
			limit, _ := d.Limit.Bytes()
			return d.Pod.UID == podUID && len(d.Annotations) == 2 && d.Annotations["memagent.dev/policy"] == "database" && limit == 512<<20 && d.Mems == memcg.NodesOf(0, 1)
		}},
		{"the sandbox of a pod", "containerd", scope(podDir, "cri-containerd", "5a"), "shop/cart-7d9/POD", Containerd, nil},
		{"nerdctl by systemd", "containerd", scope("/system.slice", "nerdctl", "ee"), "web", Containerd, func(d *Description) bool { return d.Swappiness == memcg.Value(0) }},
		{"a chosen id in a namespace of containerd", "containerd", "/default/redis", "containerd/redis", Containerd, func(d *Description) bool { return d.Swappiness == memcg.Value(60) }},
		{"k3s without systemd", "k3s", "/kubepods/besteffort/pod" + podUID + "/" + hash("c3"), "shop/cart-7d9/app", Containerd, nil},
		{"Docker by systemd", "docker", scope("/system.slice", "docker", "d0"), "docker/" + hash("d0")[:12], Docker, func(d *Description) bool { return d.Swappiness == memcg.Value(10) }},
		{"Docker without systemd", "docker", "/docker/" + hash("d1"), "docker/" + hash("d1")[:12], Docker, nil},
		{"CRI-O, names in the labels", "crio", scope(podDir, "crio", "0c"), "shop/cart-7d9/app", CRIO, nil},
		{"CRI-O's sandbox", "crio", scope(podDir, "crio", "05"), "shop/cart-7d9/POD", CRIO, nil},
		{"CRI-O with crun's own cgroup", "crio", scope(podDir, "crio", "0c") + "/container", "shop/cart-7d9/app", CRIO, func(d *Description) bool { return d.Inner == Payload }},
		{"podman by systemd", "podman", scope("/machine.slice", "libpod", "9d"), "podman/" + hash("9d")[:12], Podman, func(d *Description) bool { return d.Annotations["memagent.dev/squeeze"] == "off" }},
		{"podman without systemd", "podman", "/libpod_parent/libpod-" + hash("9e"), "podman/" + hash("9e")[:12], Podman, nil},
		{"crun", "crun", "/web", "crun/web", Crun, func(d *Description) bool { return d.Swappiness == memcg.Value(20) }},
		{"crun by systemd", "crun", "/system.slice/crun-api.scope", "crun/api", Crun, nil},
		{"runc, by the bundle in its state", "runc", "/system.slice/runc-db.scope", "runc/db", Runc, func(d *Description) bool { return d.Swappiness == memcg.Value(5) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cat := open(t, filepath.Join("testdata", c.root))
			d, settled := cat.Describe(memcg.ID{Path: c.path, Inode: 7})
			if d.Label() != c.label || d.Runtime != c.runtime || !settled || len(d.Faults) > 0 {
				t.Errorf("got %q of %q, settled %v: %+v", d.Label(), d.Runtime, settled, d)
			}
			if c.check != nil && !c.check(&d) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestAPodIsNamedAfterItsContainers(t *testing.T) {
	cat := open(t, "testdata/containerd")
	pod := memcg.ID{Path: podDir, Inode: 1}
	app := memcg.ID{Path: podDir + "/cri-containerd-" + hash("c0") + ".scope", Inode: 2}
	if d, settled := cat.Describe(pod); settled || d.Label() != "pod/"+podUID {
		t.Errorf("before: %q, %v", d.Label(), settled)
	}
	cat.Describe(app)
	cat.Round([]memcg.ID{pod, app}, true)
	if d, settled := cat.Describe(pod); !settled || d.Label() != "shop/cart-7d9" || d.ID != "" {
		t.Errorf("after: %q, %v", d.Label(), settled)
	}
}

// write puts a file into a root.
func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const crunWeb = "run/crun/web/config.json"

var web = memcg.ID{Path: "/system.slice/crun-web.scope", Inode: 7}

const webSpec = `{"linux":{"cgroupsPath":"system.slice:crun:web","resources":{"memory":{"swappiness":20}}}}`

func TestAContainerThatIsBeingWrittenIsLookedUpAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, crunWeb, webSpec[:40])
	cat := open(t, dir)
	if d, settled := cat.Describe(web); settled || d.Known() {
		t.Fatalf("half written: %+v, %v", d, settled)
	}
	write(t, dir, crunWeb, webSpec)
	cat.Round([]memcg.ID{web}, true)
	if d, settled := cat.Describe(web); !settled || d.Swappiness != memcg.Value(20) || len(d.Faults) > 0 {
		t.Errorf("whole: %+v, %v", d, settled)
	}
}

func TestWhatIsSettledIsNotReadAgain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, crunWeb, webSpec)
	cat := open(t, dir)
	cat.Describe(web)
	if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil {
		t.Fatal(err)
	}
	cat.Round([]memcg.ID{web}, true)
	if d, settled := cat.Describe(web); !settled || d.ID != "web" {
		t.Errorf("got %+v", d)
	}
	if d, _ := cat.Describe(memcg.ID{Path: web.Path, Inode: 8}); d.ID != "" {
		t.Errorf("another cgroup at its path: %+v", d)
	}
	if n := testing.AllocsPerRun(100, func() { cat.Describe(web) }); n != 0 {
		t.Errorf("allocates %v times", n)
	}
	cat.Round(nil, true)
	if len(cat.known)+len(cat.own)+len(cat.pods) != 0 {
		t.Error("remembers what is gone")
	}
}

func TestTroubleIsToldOnceAfterABoundedNumberOfTries(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(t *testing.T, dir string)
		kind  error
		says  string
	}{
		{"cut short", func(t *testing.T, dir string) { write(t, dir, crunWeb, webSpec[:40]) }, memcg.ErrInvalid, "not the JSON of a container's spec"},
		{"too long", func(t *testing.T, dir string) { write(t, dir, crunWeb, strings.Repeat(" ", MaxSpec)+webSpec) }, memcg.ErrInvalid, "longer than"},
		{"a FIFO, which is not waited for", func(t *testing.T, dir string) {
			write(t, dir, "run/crun/web/status", "{}")
			if err := unix.Mkfifo(filepath.Join(dir, crunWeb), 0o644); err != nil {
				t.Fatal(err)
			}
		}, memcg.ErrInvalid, "not a regular file"},
		{"a symlink in place of the file", func(t *testing.T, dir string) {
			write(t, dir, "run/crun/web/other.json", webSpec)
			if err := os.Symlink("other.json", filepath.Join(dir, crunWeb)); err != nil {
				t.Fatal(err)
			}
		}, unix.ELOOP, "config.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.setup(t, dir)
			cat := open(t, dir)
			for i := range MaxTries + 3 {
				d, settled := cat.Describe(web)
				if settled != (i >= MaxTries-1) {
					t.Fatalf("try %d: settled %v", i+1, settled)
				}
				if d.Known() || len(d.Faults) > 0 {
					t.Fatalf("it may be somebody else's name, and yet: %+v", d)
				}
				cat.Round([]memcg.ID{web}, true)
			}
			// With an id that only runtimes have, it is worth a word.
			sure := memcg.ID{Path: "/system.slice/crun-" + hash("ab") + ".scope", Inode: 8}
			if err := os.Rename(filepath.Join(dir, "run/crun/web"), filepath.Join(dir, "run/crun", hash("ab"))); err != nil {
				t.Fatal(err)
			}
			for range MaxTries - 1 {
				if d, _ := cat.Describe(sure); len(d.Faults) > 0 {
					t.Errorf("told before it is sure: %v", d.Faults)
				}
			}
			d, settled := cat.Describe(sure)
			if len(d.Faults) != 1 || !errors.Is(d.Faults[0], c.kind) || !strings.Contains(d.Faults[0].Error(), c.says) {
				t.Errorf("told %v", d.Faults)
			}
			if !settled || d.ID != hash("ab") || d.Runtime != Crun || d.Swappiness.Known() {
				t.Errorf("what the path says is kept: %+v", d)
			}
		})
	}
}

func TestARuntimeWithItsStateElsewhereIsToldOfOnce(t *testing.T) {
	cat := open(t, "testdata/docker")
	var told []error
	for i := range uint64(3) {
		id := memcg.ID{Path: "/system.slice/docker-" + hash(fmt.Sprint(i)) + ".scope", Inode: i}
		for range MaxTries {
			cat.Describe(id)
		}
		d, settled := cat.Describe(id)
		if !settled || d.Runtime != Docker || !strings.HasPrefix(d.Label(), "docker/") {
			t.Errorf("got %+v", d)
		}
		told = append(told, d.Faults...)
	}
	if len(told) != 1 || !errors.Is(told[0], fs.ErrNotExist) {
		t.Errorf("told %v", told)
	}
}

func TestACgroupThatIsNamedAfterSomebodyElsesContainerLearnsNothing(t *testing.T) {
	cat := open(t, "testdata/docker")
	thief := memcg.ID{Path: "/system.slice/evil.service/docker-" + hash("d0") + ".scope", Inode: 9}
	var d Description
	for range MaxTries {
		d, _ = cat.Describe(thief)
	}
	if d.Swappiness.Known() || d.Annotations != nil || len(d.Faults) != 1 || !strings.Contains(d.Faults[0].Error(), "is another cgroup") {
		t.Errorf("got %+v", d)
	}
}

func TestAUserSpeaksForTheUsersOwnCgroupsAlone(t *testing.T) {
	dir, uid := t.TempDir(), strconv.Itoa(os.Getuid())
	write(t, dir, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nme:x:"+uid+":"+uid+":Me,,,:/home/me:/bin/sh\n")
	spec := func(name string) string {
		return fmt.Sprintf(`{"linux":{"cgroupsPath":"user.slice:libpod:%s","resources":{"memory":{"swappiness":20}}}}`, name)
	}
	store := "home/me/.local/share/containers/storage/overlay-containers/"
	if uid == "0" { // root's home is the first line's
		store = "root/.local/share/containers/storage/overlay-containers/"
	}
	write(t, dir, store+hash("9d")+"/userdata/config.json", spec(hash("9d")))
	write(t, dir, "run/containers/storage/overlay-containers/"+hash("9e")+"/userdata/config.json", spec(hash("9e")))
	cat := open(t, dir)
	own := "/user.slice/user-" + uid + ".slice/user@" + uid + ".service/user.slice/libpod-"
	for _, c := range []struct {
		name, path string
		known      bool
	}{
		{"the user's own", own + hash("9d") + ".scope", true},
		{"the system's folder for a user's cgroup", own + hash("9e") + ".scope", false},
		{"the user's folder for the system's cgroup", "/user.slice/libpod-" + hash("9d") + ".scope", false},
		{"the system's own", "/user.slice/libpod-" + hash("9e") + ".scope", true},
	} {
		if d, _ := cat.Describe(memcg.ID{Path: c.path, Inode: 1}); d.Swappiness.Known() != c.known {
			t.Errorf("%s: got %+v", c.name, d)
		}
	}
	if _, err := cat.root.read(store+hash("9d")+"/userdata/config.json", "4294967294"); !errors.Is(err, memcg.ErrDenied) {
		t.Errorf("a file of somebody else: %v", err)
	}
}

func TestSymlinksDoNotLeadOutOfTheRoot(t *testing.T) {
	for _, how := range []string{"openat2", "without openat2"} {
		t.Run(how, func(t *testing.T) {
			outside, dir := t.TempDir(), t.TempDir()
			write(t, outside, "web/config.json", webSpec)
			write(t, dir, "run/crun/other/config.json", webSpec)
			if err := os.Symlink(filepath.Join(outside, "web"), filepath.Join(dir, "run/crun/web")); err != nil {
				t.Fatal(err)
			}
			cat := open(t, dir)
			if how != "openat2" {
				walk, err := os.OpenRoot(dir)
				if err != nil {
					t.Fatal(err)
				}
				cat.root.walk = walk
			}
			if d, _ := cat.Describe(web); d.Known() {
				t.Errorf("got %+v", d)
			}
			if err := os.Remove(filepath.Join(dir, "run/crun/web")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("other", filepath.Join(dir, "run/crun/web")); err != nil {
				t.Fatal(err)
			}
			if d, _ := cat.Describe(web); d.ID != "web" {
				t.Errorf("inside: got %+v", d)
			}
		})
	}
}

func TestWithoutARuntimeNothingIsRememberedOrTold(t *testing.T) {
	cat := open(t, t.TempDir())
	for range MaxTries + 1 {
		for _, path := range []string{"/system.slice/a.service", "/batch/job", "/user.slice/user-1000.slice/x"} {
			if d, settled := cat.Describe(memcg.ID{Path: path, Inode: 1}); !settled || d.Known() || len(d.Faults) > 0 {
				t.Errorf("%s: %+v, %v", path, d, settled)
			}
		}
	}
	if len(cat.known) != 0 {
		t.Errorf("knows %d", len(cat.known))
	}
}

func TestTheNumberOfContainersIsBounded(t *testing.T) {
	cat := open(t, "testdata/docker")
	var told []error
	for i := range uint64(MaxKnown + 10) {
		d, _ := cat.Describe(memcg.ID{Path: fmt.Sprintf("/docker/%064x", i), Inode: i})
		told = append(told, d.Faults...)
	}
	if len(cat.known) != MaxKnown || len(told) != 1 {
		t.Errorf("knows %d, told %v", len(cat.known), told)
	}
}

func TestThePodInTheSpecMustBeThePodInThePath(t *testing.T) {
	dir := t.TempDir()
	other := "/kubepods/podother/" + hash("c0")
	write(t, dir, "run/containerd/"+task+"/k8s.io/"+hash("c0")+"/config.json", fmt.Sprintf(`{"linux":{"cgroupsPath":%q},"annotations":{
		"io.kubernetes.cri.sandbox-uid":%q,"io.kubernetes.cri.sandbox-name":"a","io.kubernetes.cri.sandbox-namespace":"b","io.kubernetes.cri.container-name":"c"}}`, other, podUID))
	cat := open(t, dir)
	d, _ := cat.Describe(memcg.ID{Path: other, Inode: 1})
	if d.Pod.Name != "" || len(d.Faults) != 1 || d.Label() != "containerd/"+hash("c0")[:12] {
		t.Errorf("got %q, %+v", d.Label(), d)
	}
}

func TestAPodsAuthorDoesNotChooseItsName(t *testing.T) {
	d := Description{ID: "x", Runtime: CRIO, Pod: Pod{UID: podUID}}
	d.take(&Spec{Annotations: map[string]string{
		crioLabels:               fmt.Sprintf(`{"io.kubernetes.pod.uid":%q,"io.kubernetes.pod.name":"cart-7d9","io.kubernetes.pod.namespace":"shop","io.kubernetes.container.name":"app"}`, podUID),
		"io.kubernetes.pod.name": "other", "io.kubernetes.pod.namespace": "kube-system",
		"io.kubernetes.cri.sandbox-name": "other", "io.kubernetes.cri.sandbox-namespace": "kube-system",
	}})
	if d.Label() != "shop/cart-7d9/app" {
		t.Errorf("got %s", d.Label())
	}
}

func TestTooManyAnnotationsAreNotKept(t *testing.T) {
	s := Spec{Annotations: map[string]string{}}
	for i := range maxAnnotations {
		s.Annotations[fmt.Sprint(AnnotationPrefix, i)] = "x"
	}
	var kept, dropped Description
	kept.take(&s)
	s.Annotations[AnnotationPrefix+"more"] = "x"
	dropped.take(&s)
	if len(kept.Annotations) != maxAnnotations || len(kept.Faults) != 0 || dropped.Annotations != nil || len(dropped.Faults) != 1 {
		t.Errorf("kept %d, %v; dropped %v", len(kept.Annotations), kept.Faults, dropped.Faults)
	}
}

func TestThousandsOfContainersWithoutASpecAreLookedForABoundedNumberOfTimes(t *testing.T) {
	const containers = 5000
	cat := open(t, "testdata/containerd")
	ids := make([]memcg.ID, containers)
	for i := range ids {
		ids[i] = memcg.ID{Path: fmt.Sprintf("/system.slice/docker-%064x.scope", i+1), Inode: uint64(i + 1)}
	}
	round := func() (settled, faults int) {
		cat.Round(ids, true)
		for _, id := range ids {
			d, done := cat.Describe(id)
			if done {
				settled++
			}
			faults += len(d.Faults)
		}
		return settled, faults
	}
	for try := 1; try < MaxTries; try++ {
		if settled, _ := round(); settled != 0 {
			t.Fatalf("%d were settled at try %d", settled, try)
		}
	}
	if settled, faults := round(); settled != containers || faults != 1 {
		t.Errorf("%d of %d settled, told of %d times", settled, containers, faults)
	}
	if n := testing.AllocsPerRun(1, func() {
		for _, id := range ids {
			cat.Describe(id)
		}
	}); n != 0 {
		t.Errorf("they are still looked for: %v allocations", n)
	}
}
