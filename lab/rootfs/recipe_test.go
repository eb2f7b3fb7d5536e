package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAnotherRecipeIsAnotherImage(t *testing.T) {
	seen := map[string]string{host.name(): "the host"}
	for name, change := range map[string]func(*recipe){
		"another release":        func(r *recipe) { r.release = "trixie" },
		"one more package":       func(r *recipe) { r.packages = append(slices.Clone(r.packages), "curl") },
		"one more path left out": func(r *recipe) { r.excluded = append(slices.Clone(r.excluded), "/opt/*") },
		"another text in a file": func(r *recipe) { r.files = append(slices.Clone(r.files), file{"/etc/motd", "hello\n"}) },
	} {
		r := host
		change(&r)
		if other, ok := seen[r.name()]; ok {
			t.Errorf("%s has the name of %s", name, other)
		}
		seen[r.name()] = name
	}
}

func TestMmdebstrapIsToldOfEveryPackageAndPath(t *testing.T) {
	args := recipe{release: "bookworm", packages: []string{"a", "b"}, excluded: []string{"/x/*"}}.arguments("/tree", "/list")
	if n := len(args); args[n-3] != "bookworm" || args[n-2] != "/tree" || args[n-1] != "/list" {
		t.Errorf("got %q", args)
	}
	for _, want := range []string{"--include=a,b", "--dpkgopt=path-exclude=/x/*", "--format=directory"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing in %q", want, args)
		}
	}
}

func TestAFinishedTreeHasTheFilesAndNoSourcesOfPackages(t *testing.T) {
	tree, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	for name, text := range map[string]string{"etc/apt/sources.list": "deb somewhere", "etc/apt/sources.list.d/more.list": "deb elsewhere", "etc/resolv.conf": "nameserver"} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(tree, "etc/hostname")); err != nil {
		t.Fatal(err)
	}
	if err := host.finish(tree); err != nil {
		t.Fatal(err)
	}
	for _, f := range host.files {
		if got, err := os.ReadFile(filepath.Join(tree, f.path)); err != nil || string(got) != f.text {
			t.Errorf("%s: got %q, %v", f.path, got, err)
		}
	}
	for _, gone := range []string{filepath.Join(tree, "etc/apt/sources.list.d/more.list"), filepath.Join(tree, "etc/resolv.conf"), outside} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is there", gone)
		}
	}
}

func TestAnImageThatIsThereIsNotBuilt(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "hosts", host.name()+".img")
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Host(context.Background(), dir, nil, func(string, ...any) { t.Error("says that it builds one") })
	if err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestWithoutMmdebstrapTheErrorSaysHowToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Host(context.Background(), t.TempDir(), nil, func(string, ...any) {})
	if !errors.Is(err, ErrNoMmdebstrap) || !strings.Contains(err.Error(), "apt-get install mmdebstrap") {
		t.Errorf("got %v", err)
	}
}
