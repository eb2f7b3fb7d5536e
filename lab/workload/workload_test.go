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
