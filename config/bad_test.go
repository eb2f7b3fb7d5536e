package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var placesInComment = regexp.MustCompile(`\d+:\d+`)

// Each file of testdata/bad says in its first line what is wrong with it and
// where; the message it must give stands beside it. The place is written by
// hand, so that -update cannot hide a message that points elsewhere.
func TestEveryBadFileIsRefusedWithItsMessage(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d bad files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(filepath.Base(file), data)
			if err == nil || c != nil {
				t.Fatalf("accepted: %v", c)
			}
			if !errors.Is(err, ErrBadConfig) || errors.Is(err, ErrNoConfig) || errors.Is(err, ErrUnreadable) {
				t.Errorf("is not a bad config: %v", err)
			}
			faults, ok := errors.AsType[Errors](err)
			if !ok {
				t.Fatalf("is no Errors but %T", err)
			}
			first, _, _ := strings.Cut(string(data), "\n")
			want := placesInComment.FindAllString(first, -1)
			var got []string
			for _, f := range faults {
				got = append(got, fmt.Sprintf("%d:%d", f.Line, f.Col))
				if f.Fix == "" {
					t.Errorf("says no remedy: %v", f)
				}
				if !oneKind(f) {
					t.Errorf("does not wrap exactly one kind: %v", f)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("places (-first line +error):\n%s\n%v", diff, err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			message, err2 := os.ReadFile(golden)
			if err2 != nil {
				t.Fatal(err2)
			}
			if diff := cmp.Diff(string(message), err.Error()+"\n"); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func oneKind(err error) bool {
	n := 0
	for _, kind := range []error{ErrSyntax, ErrUnknownKey, ErrDuplicate, ErrMissing, ErrType, ErrValue, ErrConflict} {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n == 1
}
