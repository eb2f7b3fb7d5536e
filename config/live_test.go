package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var noon = time.Unix(1_700_000_000, 0)

func TestABadReloadKeepsTheRunningConfigAndSaysSo(t *testing.T) {
	main := tree(t, map[string]string{"memagent.yaml": policy("a", "/a")})
	live, err := OpenLive(main, noon)
	if err != nil {
		t.Fatal(err)
	}
	first := live.Config()
	if s := live.Status(); !s.Good() || s.Taken != 1 || s.Sum == "" || !s.Since.Equal(noon) {
		t.Errorf("at first: %+v", s)
	}

	if c, taken, err := live.Reload(noon.Add(time.Second), nil); c != first || taken || err != nil {
		t.Errorf("nothing changed: %v, %v", taken, err)
	}

	put(t, main, "policies: [\n")
	if c, taken, err := live.Reload(noon.Add(2*time.Second), nil); c != first || taken || !errors.Is(err, ErrBadConfig) {
		t.Errorf("a bad file: %v, %v", taken, err)
	}
	if s := live.Status(); s.Good() || s.Refused != 1 || !s.Since.Equal(noon) || !s.Checked.Equal(noon.Add(2*time.Second)) {
		t.Errorf("after a bad file: %+v", s)
	}
	if _, _, err := live.Reload(noon, nil); err != nil {
		t.Errorf("said a second time: %v", err)
	}

	if err := os.Remove(main); err != nil {
		t.Fatal(err)
	}
	if _, _, err := live.Reload(noon, nil); !errors.Is(err, ErrNoConfig) {
		t.Errorf("no file: %v", err)
	}

	put(t, main, policy("a", "/a"))
	if c, taken, err := live.Reload(noon, nil); c != first || taken || err != nil || !live.Status().Good() {
		t.Errorf("put back: %v, %v, %+v", taken, err, live.Status())
	}

	put(t, filepath.Join(DropInDir(main), "b.yaml"), policy("b", "/b"))
	c, taken, err := live.Reload(noon.Add(time.Hour), nil)
	if err != nil || !taken || len(c.Policies) != 2 || live.Config() != c {
		t.Errorf("a drop-in: %v, %v", taken, err)
	}
	if s := live.Status(); s.Taken != 2 || !s.Since.Equal(noon.Add(time.Hour)) {
		t.Errorf("after it: %+v", s)
	}
}

func TestWhatIsNotAcceptedIsNotInForce(t *testing.T) {
	main := tree(t, map[string]string{"memagent.yaml": policy("a", "/a")})
	live, err := OpenLive(main, noon)
	if err != nil {
		t.Fatal(err)
	}
	put(t, main, "state_dir: /srv/other\n"+policy("a", "/a"))
	no := errors.New("no")
	_, taken, err := live.Reload(noon, func(was, now *Config) error {
		if was.StateDir != DefaultStateDir || now.StateDir != "/srv/other" {
			t.Errorf("was %s, now %s", was.StateDir, now.StateDir)
		}
		return no
	})
	if taken || !errors.Is(err, no) || live.Config().StateDir != DefaultStateDir || !errors.Is(live.Status().Err, no) {
		t.Errorf("taken %v, %v, %+v", taken, err, live.Status())
	}
}

func TestAChangeOfAnyFileIsNoticed(t *testing.T) {
	main := tree(t, map[string]string{"memagent.yaml": policy("a", "/a"), "elsewhere/c.yaml": policy("c", "/c")})
	changed, err := Watch(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(main)
	dropIn := filepath.Join(DropInDir(main), "b.yaml")
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"the main file is written", func() error { return os.WriteFile(main, []byte(policy("a", "/x")), 0o644) }},
		{"another takes its place", func() error {
			put(t, main+".new", policy("a", "/y"))
			return os.Rename(main+".new", main)
		}},
		{"the folder of drop-ins comes into being", func() error { return os.Mkdir(DropInDir(main), 0o755) }},
		{"a drop-in comes", func() error { return os.WriteFile(dropIn, []byte(policy("b", "/b")), 0o644) }},
		{"a drop-in goes", func() error { return os.Remove(dropIn) }},
		{"a link comes", func() error { return os.Symlink(filepath.Join(dir, "elsewhere/c.yaml"), dropIn) }},
		{"what it leads to is written", func() error {
			return os.WriteFile(filepath.Join(dir, "elsewhere/c.yaml"), []byte(policy("c", "/d")), 0o644)
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatalf("not noticed: %s", step.name)
		}
	}
}

func TestWatchingEndsWithItsContextAndAMissingFolderIsAnError(t *testing.T) {
	if _, err := Watch(t.Context(), "/nowhere/memagent.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
