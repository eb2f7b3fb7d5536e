package lab

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// smallPackage builds a .deb of one file, or skips where there is no tool for it.
func smallPackage(t *testing.T, file string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not here; to get it: apt-get install dpkg")
	}
	tree := t.TempDir()
	for name, text := range map[string]string{
		"DEBIAN/control":    "Package: small\nVersion: 1.2\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: none\n",
		"usr/share/s/hello": "hello\n",
	} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := dpkgDeb(context.Background(), "--root-owner-group", "--build", tree, file); err != nil {
		t.Fatal(err)
	}
}

func TestALaterPackageDiffersInItsVersionAlone(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.deb"), filepath.Join(dir, "second.deb")
	smallPackage(t, first)
	if err := later(context.Background(), first, second, dir); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) string {
		out, err := exec.Command("dpkg-deb", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if v := strings.TrimSpace(show("--field", second, "Version")); v != "1.2+later" {
		t.Errorf("version %q", v)
	}
	if a, b := show("--contents", first), show("--contents", second); a != b {
		t.Errorf("contents\n%s\nand\n%s", a, b)
	}
}

func TestTheNewestPackageBesideTheProgramIsTaken(t *testing.T) {
	dir := t.TempDir()
	l := &Lab{Self: filepath.Join(dir, "bin", "memlab")}
	if _, err := l.packageFile(); !errors.Is(err, ErrNoPackage) || !strings.Contains(err.Error(), "make packages") {
		t.Errorf("without one: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"memagent_2_amd64.deb": time.Hour, "memagent_1_amd64.deb": time.Minute, "memagent_3_arm64.deb": 0} {
		path := filepath.Join(dir, "dist", name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := l.packageFile(); err != nil || filepath.Base(got) != "memagent_1_amd64.deb" {
		t.Errorf("got %s, %v", got, err)
	}
	l.Package = filepath.Join(dir, "gone.deb")
	if _, err := l.packageFile(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
}
