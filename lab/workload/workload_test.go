package workload

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func events(t *testing.T, out string) []Event {
	t.Helper()
	var list []Event
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

func TestAFileIsReadInPasses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, readBuffer+4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		args  []string
		bytes int64
	}{
		{"all of it with read(2)", nil, readBuffer + 4096},
		{"a part of it", []string{"--size", "8KiB"}, 8192},
		{"mapped", []string{"--mmap"}, readBuffer + 4096},
		{"at a rate", []string{"--rate", "1GiB"}, readBuffer + 4096},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Run(append([]string{"file", "--path", path, "--loops", "3"}, tc.args...), &out); err != nil {
				t.Fatal(err)
			}
			list := events(t, out.String())
			if len(list) != 4 || list[0].Event != Ready || list[3].Event != Pass || list[3].N != 3 || list[3].Bytes != tc.bytes {
				t.Errorf("got %+v", list)
			}
		})
	}
}

func TestAYardstickIsTimedAfterEachPass(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, readBuffer), 0o600); err != nil {
		t.Fatal(err)
	}
	var with, without bytes.Buffer
	if err := Run([]string{"file", "--path", path, "--loops", "2", "--yardstick", "4MiB"}, &with); err != nil {
		t.Fatal(err)
	}
	if err := Run([]string{"file", "--path", path, "--loops", "2"}, &without); err != nil {
		t.Fatal(err)
	}
	for i, e := range events(t, with.String()) {
		if timed := e.YardstickMS > 0; timed != (e.Event == Pass) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if strings.Contains(without.String(), "yardstick") {
		t.Errorf("none was asked for: %s", &without)
	}
}

func TestMemoryIsFilledAtARate(t *testing.T) {
	mem, err := allocateAt(1<<20, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(mem); at += 4096 {
		if touch(mem[at:at+4096]) == 0 {
			t.Fatalf("the page at %d was not filled", at)
		}
	}
}

func TestAUnitReadsAllocatesAndEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "src")
	if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"compile", "--tools", path, "--sources", path, "--common", "16KiB", "--own", "8KiB", "--skip", "1MiB", "--alloc", "64KiB"}
	if err := Run(args, &out); err != nil {
		t.Fatal(err)
	}
	if list := events(t, out.String()); len(list) != 1 || list[0].Event != Ready || list[0].Bytes != 64<<10 {
		t.Errorf("got %+v", list)
	}
}

func TestOwnPartsGoRoundBehindTheCommonPart(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "src"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(100); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ skip, want int64 }{{20, 20}, {50, 50}, {80, 20}, {110, 50}, {0, 20}} {
		if got, err := ownPart(f, 20, 30, tc.skip); err != nil || got != tc.want {
			t.Errorf("skipping %d it begins at %d, want %d: %v", tc.skip, got, tc.want, err)
		}
	}
}

func TestUnitsDifferAndTakeTurnsOnTheNodes(t *testing.T) {
	const all = 10
	seen := map[string]bool{}
	for n := range all {
		args := unit(n, all, 20, 60, []int{0, 3}).Args
		seen[args[4]] = true
		if got, want := args[len(args)-1], []string{"0", "3"}[n%2]; got != want {
			t.Errorf("unit %d is on node %s, want %s", n, got, want)
		}
	}
	if len(seen) != all || !seen["20"] || !seen["60"] {
		t.Errorf("units allocate %v", seen)
	}
}

// failing accepts a number of writes, then fails.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestMemoryIsTouchedUntilNobodyListens(t *testing.T) {
	err := Run([]string{"anon", "--size", "64KiB", "--window", "16KiB", "--every", "1ns"}, &failing{left: 10})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no workload", nil, "usage"},
		{"an unknown one", []string{"burn"}, `no workload "burn"`},
		{"memory of no size", []string{"anon", "--size", "0"}, "more than 0"},
		{"a size that is none", []string{"anon", "--size", "much"}, "invalid value"},
		{"a negative size", []string{"anon", "--size", "-1MiB"}, "invalid value"},
		{"no file", []string{"file"}, "--path is missing"},
		{"a file that is not there", []string{"file", "--path", "/nowhere/at/all"}, "/nowhere/at/all"},
		{"more of a file than there is", []string{"file", "--path", "/proc/version", "--size", "1GiB"}, "fewer than"},
		{"a mapped file at a rate", []string{"file", "--path", "/proc/self/exe", "--mmap", "--rate", "1MiB"}, "--rate is for files"},
		{"no cold memory", []string{"hotcold", "--cold", "0"}, "more than 0"},
		{"a window larger than what it is in", []string{"hotcold", "--cold", "1MiB"}, "no more than the cold"},
		{"less than a page", []string{"zipf", "--size", "1KiB"}, "at least a page"},
		{"a parameter that is none", []string{"zipf", "--s", "NaN"}, "at least 0"},
		{"a build of nothing", []string{"build", "--sources", "x"}, "--units"},
		{"a build that allocates less than its least", []string{"build", "--sources", "x", "--units", "1", "--least", "2MiB", "--most", "1MiB"}, "less than --least"},
		{"a node that is none", []string{"build", "--sources", "x", "--units", "1", "--nodes", "0,two"}, `"two" is no node id`},
		{"a unit without sources", []string{"compile"}, "--sources is missing"},
		{"sources that are too short", []string{"compile", "--sources", "/proc/version", "--own", "1MiB"}, "fewer than --common and --own"},
		{"a node no machine has", []string{"anon", "--node", "900"}, "set_mempolicy to node 900"},
		{"cgroups without a place", []string{"churn"}, "--parent is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := Run(tc.args, io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestScrambledMemoryDoesNotCompress(t *testing.T) {
	mem := make([]byte, 1<<16)
	scramble(mem, 0)
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(mem)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() < len(mem)*95/100 {
		t.Errorf("%d bytes became %d", len(mem), out.Len())
	}
}
