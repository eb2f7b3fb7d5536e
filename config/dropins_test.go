package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files below a new folder and returns the path of memagent.yaml.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return filepath.Join(dir, "memagent.yaml")
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func policy(name, glob string) string {
	return "policies: [{name: " + name + ", match: [{path: '" + glob + "'}]}]\n"
}

func TestPoliciesOfDropInsCountBeforeTheMainFileInTheOrderOfNames(t *testing.T) {
	main := tree(t, map[string]string{
		"memagent.yaml":               "mode: observe\n" + policy("rest", "/**"),
		"memagent.d/20-b.yaml":        policy("b", "/b") + "host: {swap: {write_budget: 1MiB/s}}\n",
		"memagent.d/10-a.yaml":        policy("a", "/a") + "interval: 9s\n",
		"memagent.d/10-a.yaml~":       "what an editor left",
		"memagent.d/.10-a.yaml.swp":   "what another left",
		"memagent.d/10-a.yaml.rpmnew": "what a package left",
	})
	put(t, main, "mode: observe\nhost: {swap: {keep_free: 30%}}\n"+policy("rest", "/**"))
	c, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range c.Policies {
		names = append(names, p.Name)
	}
	if want := []string{"a", "b", "rest"}; !slices.Equal(names, want) {
		t.Errorf("policies %v, want %v", names, want)
	}
	if c.Interval.Seconds() != 9 || c.Host.Swap.WriteBudget != 1<<20 || c.Host.Swap.KeepFree != 0.3 {
		t.Errorf("interval %v, swap %+v: parts of several files did not come together", c.Interval, c.Host.Swap)
	}
}

func TestWhatTwoFilesGiveIsRefusedWithBothPlaces(t *testing.T) {
	for _, c := range []struct{ name, main, dropIn, want string }{
		{"a setting", "mode: observe\n" + policy("a", "/a"), "mode: enforce\n",
			"memagent.yaml:1:1: mode: is given in two files, first at memagent.d/x.yaml:1:7; keep one"},
		{"a setting in a mapping", "host: {swap: {keep_free: 10%}}\n" + policy("a", "/a"), "host:\n  swap:\n    keep_free: 20%\n",
			"memagent.yaml:1:15: host.swap.keep_free: is given in two files, first at memagent.d/x.yaml:3:16; keep one"},
		{"the name of a policy", policy("a", "/a"), policy("a", "/b"),
			"memagent.yaml:1:19: policies[0].name: a is the name of the policy at memagent.d/x.yaml:1:19 already; want another name"},
		{"a glob", policy("a", "/a"), policy("b", "/a"),
			"memagent.yaml:1:37: policies[0].match[0].path: /a is matched at memagent.d/x.yaml:1:37 already; keep one"},
		{"all cgroups", policy("a", "/a"), policy("b", "/**"),
			"memagent.yaml:1:37: policies[0].match[0].path: /a is never reached: the '/**' at memagent.d/x.yaml:1:37 matches every cgroup before; move the policy with '/**' to the end of the main file, which counts last"},
		{"no policies", "mode: observe\n", "interval: 5s\n",
			"memagent.yaml:1:1: policies: is missing, here and in the drop-ins; want a list of policies, each with name and match"},
		{"an empty drop-in", policy("a", "/a"), "# nothing\n",
			"memagent.d/x.yaml:1:1: the file has no settings in it; want at least policies; without a file memagent observes everything"},
		{"faults in both", "moode: observe\n" + policy("a", "/a"), "interval: 5\n" + policy("b", "b"),
			"memagent.d/x.yaml:1:11: interval: 5 has no unit; want 1s..10m\n" +
				"memagent.d/x.yaml:2:37: policies[0].match[0].path: b does not start with /; want a path glob such as '/system.slice/postgresql*.service' or '/kubepods.slice/**'\n" +
				"memagent.yaml:1:1: moode: is not a known key; did you mean mode?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			main := tree(t, map[string]string{"memagent.yaml": c.main, "memagent.d/x.yaml": c.dropIn})
			_, err := Load(main)
			if !errors.Is(err, ErrBadConfig) {
				t.Fatalf("got %v", err)
			}
			if got := strings.ReplaceAll(err.Error(), filepath.Dir(main)+"/", ""); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestAFolderOfDropInsThatCannotBeReadIsAnErrorAndNoneIsNot(t *testing.T) {
	main := tree(t, map[string]string{"memagent.yaml": policy("a", "/a")})
	if _, err := Load(main); err != nil {
		t.Errorf("no folder: %v", err)
	}
	put(t, filepath.Join(filepath.Dir(main), "memagent.d"), "a file")
	if _, err := Load(main); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "drop-ins") {
		t.Errorf("a file in its place: %v", err)
	}
	main = tree(t, map[string]string{"memagent.yaml": policy("a", "/a"), "memagent.d/x.yml": policy("b", "/b")})
	if _, err := Load(main); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "x.yml: ") || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("another ending: %v", err)
	}
	main = tree(t, map[string]string{"memagent.yaml": policy("a", "/a"), "memagent.d/y": ""})
	if err := os.Symlink("nowhere", filepath.Join(filepath.Dir(main), "memagent.d", "x.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(main); !errors.Is(err, ErrUnreadable) || errors.Is(err, ErrNoConfig) || !strings.Contains(err.Error(), "x.yaml: ") {
		t.Errorf("a link to nothing: %v", err)
	}
}

func FuzzDropIns(f *testing.F) {
	f.Add([]byte(policy("a", "/a")), []byte(policy("b", "/b")))
	f.Add([]byte("mode: observe\n"), []byte("mode: enforce\n"+policy("a", "/**")))
	f.Add([]byte("host: {swap: 1}\n"), []byte("host: {swap: {keep_free: 1%}}\n"+policy("a", "/a")))
	f.Add([]byte("policies: []\n"), []byte("policies: {}\n"))
	f.Fuzz(func(t *testing.T, dropIn, main []byte) {
		c, err := parseFiles([]source{{"drop-in", dropIn}, {"main", main}})
		if err == nil {
			if _, err := Parse("described", []byte(c.Describe())); err != nil {
				t.Fatalf("together they are taken, and their description is refused: %v", err)
			}
			return
		}
		faults, ok := errors.AsType[Errors](err)
		if !ok || len(faults) == 0 {
			t.Fatalf("%d faults, as %T", len(faults), err)
		}
		for i, e := range faults {
			if e.File != "drop-in" && e.File != "main" || !oneKind(e) || (e.Line < 1 || e.Col < 1) && i < maxErrors {
				t.Fatalf("%v: no place or no single kind", e)
			}
		}
	})
}
