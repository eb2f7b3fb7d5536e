package initramfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
)

// unpack lists an archive: directories with a slash, files with their mode and content.
func unpack(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	r := cpio.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode.IsDir() {
			got[h.Name+"/"] = ""
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.Mode.Perm().String() + " " + string(content)
	}
}

func TestAnArchiveHoldsItsFilesAndTheFoldersTheyNeed(t *testing.T) {
	src := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(src, []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []File{
		{Path: "/init", Source: src, Mode: 0o755},
		{Path: "/a/b/text", Content: []byte("words"), Mode: 0o644},
	}
	var first, second bytes.Buffer
	if err := Write(&first, files); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"init": "0755 code", "a/": "", "a/b/": "", "a/b/text": "0644 words"}
	for _, d := range Dirs {
		want[strings.TrimPrefix(d, "/")+"/"] = ""
	}
	if d := cmp.Diff(want, unpack(t, first.Bytes())); d != "" {
		t.Error(d)
	}
	if err := Write(&second, files); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same files gave other bytes")
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []File
		want  string
	}{
		{"a relative path", []File{{Path: "init"}}, "absolute"},
		{"a path that leads out", []File{{Path: "/../init"}}, "clean"},
		{"a path that is there twice", []File{{Path: "/init"}, {Path: "/init"}}, "already"},
		{"a source that is not there", []File{{Path: "/init", Source: "/nowhere/at/all"}}, "/nowhere/at/all"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := Write(io.Discard, tc.files); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestProgramsBringsTheDynamicLinkerOnce(t *testing.T) {
	files, err := Programs([]string{"ls"}, []string{"cat", "no-such-program-anywhere"})
	if err != nil {
		t.Skipf("this machine's ls cannot be packed, as on a system that is not Debian: %v", err)
	}
	count := map[string]int{}
	for _, f := range files {
		count[f.Path]++
	}
	for path, n := range count {
		if n != 1 {
			t.Errorf("%s is there %d times", path, n)
		}
	}
	if count["/bin/ls"] != 1 || count["/bin/cat"] != 1 {
		t.Errorf("got %v", count)
	}
}

func TestProgramsNamesWhatIsMissing(t *testing.T) {
	if _, err := Programs([]string{"no-such-program-anywhere"}, nil); err == nil || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("got %v", err)
	}
}
