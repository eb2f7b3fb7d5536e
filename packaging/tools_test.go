package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tool returns the path of a program, or skips the test and says how to get
// it. Some are looked for in memagent's cache folder too, where scripts put
// what they unpack.
func tool(t *testing.T, name, inCache, get string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if cache, err := os.UserCacheDir(); err == nil && inCache != "" {
		path := filepath.Join(cache, "memagent", inCache)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skipf("%s is not here; to get it: %s", name, get)
	return ""
}

func promtool(t *testing.T) string {
	t.Helper()
	return tool(t, "promtool", "prometheus/usr/bin/promtool", "scripts/promtool --version")
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// output runs a program and returns what it prints; it must succeed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	b, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, b)
	}
	return string(b)
}
