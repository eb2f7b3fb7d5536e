package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

// byPath knows no containers.
func byPath(cfg *config.Config) matcher {
	return func(id memcg.ID) *config.Policy { return cfg.Match(id.Path) }
}

// withContainer puts a container of crun on the host: web, with its own cgroup
// and the one that crun makes inside.
func withContainer(t *testing.T, root, spec string) {
	t.Helper()
	app := filepath.Join(root, "sys/fs/cgroup/app.slice")
	for _, dir := range []string{"system.slice/crun-web.scope", "system.slice/crun-web.scope/container"} {
		if err := os.CopyFS(filepath.Join(root, "sys/fs/cgroup", dir), os.DirFS(app)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "run/crun/web/config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
}

const webSpec = `{"annotations":{"memagent.dev/policy":"web"},
	"linux":{"cgroupsPath":"system.slice:crun:web","resources":{"memory":{"swappiness":20,"limit":-7}}}}`

const forWeb = `policies:
  - name: web
    match: [{annotation: {memagent.dev/policy: web}}]
    containers: {swappiness: true}
`

func TestAContainerHasThePolicyThatItsAnnotationChoosesAndItsSwappiness(t *testing.T) {
	root := host(t)
	withContainer(t, root, webSpec)
	code, out, errs := command(t, "run", "-c", configFile(t, forWeb), "--root", root, "--for", "1ms", "--log", "json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	decisions, told := 0, 0
	for line := range strings.Lines(out) {
		var r struct {
			Message, Cgroup, Name, Policy, Notice, Error string
			Container                                    struct{ ID, Runtime, Asks string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch {
		case r.Message == "decision":
			decisions++
			if r.Cgroup != "/system.slice/crun-web.scope/container" || r.Name != "crun/web" || r.Policy != "web" || r.Container.ID != "web" || r.Container.Asks != "swappiness 20" {
				t.Errorf("got %s", line)
			}
		case strings.HasPrefix(r.Notice, "container "):
			told++
			if !strings.Contains(r.Error, "memory.limit is -7") {
				t.Errorf("got %s", line)
			}
		}
	}
	if decisions == 0 || told != 1 {
		t.Errorf("%d decisions, told %d times:\n%s", decisions, told, out)
	}
}

func TestACheckCountsContainersThatAnnotationsChoose(t *testing.T) {
	root := host(t)
	withContainer(t, root, webSpec)
	_, out, errs := command(t, "check", "-c", configFile(t, forWeb), "--root", root)
	if !strings.Contains(out, "memagent.dev/policy: web") || !strings.Contains(out, "matches 1 cgroups now") {
		t.Errorf("got %s%s", out, errs)
	}
}
