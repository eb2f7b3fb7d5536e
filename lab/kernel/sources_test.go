package kernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindMirror(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  Mirror
		ok    bool
	}{
		{"stanzas of Debian's own image", map[string]string{"sources.list.d/debian.sources": `Types: deb
# a comment between fields
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://archive.example/debian-security
Suites: bookworm-security
Components: main
`}, Mirror{"http://archive.example/debian", "http://archive.example/debian-security"}, true},
		{"the one-line format, with options and comments", map[string]string{"sources.list": `
# deb http://old.example/debian trixie main
deb [arch=amd64 signed-by=/k.gpg] https://mirror.example/debian trixie main contrib # home
deb https://mirror.example/security trixie-security main
deb-src https://src.example/debian trixie main
`}, Mirror{"https://mirror.example/debian", "https://mirror.example/security"}, true},
		{"the security suite of releases before bullseye", map[string]string{"sources.list": "deb http://a.example/d stable main\ndeb http://s.example/d stable/updates main\n"},
			Mirror{"http://a.example/d", "http://s.example/d"}, true},
		{"other people's archives are not Debian", map[string]string{
			"sources.list.d/vendor.list":  "deb https://vendor.example/apt cloud-sdk-bookworm main\n",
			"sources.list.d/node.sources": "Types: deb\nURIs: https://node.example\nSuites: nodistro\nComponents: main\n",
		}, Mirror{}, false},
		{"a disabled stanza does not count", map[string]string{"sources.list.d/debian.sources": "Enabled: no\nTypes: deb\nURIs: http://a.example\nSuites: trixie\nComponents: main\n"},
			Mirror{}, false},
		{"fields may go on over lines", map[string]string{"sources.list.d/debian.sources": "Types: deb\nURIs:\n http://a.example/debian\nSuites:\n trixie\n trixie-updates\nComponents: main non-free\n"},
			Mirror{Main: "http://a.example/debian"}, true},
		{"no sources at all", nil, Mirror{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			sources, err := ReadSources(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := FindMirror(sources)
			if d := cmp.Diff(tc.want, got); d != "" || ok != tc.ok {
				t.Errorf("found %v, want %v: %s", ok, tc.ok, d)
			}
		})
	}
}

func TestSourcesListLeavesOutSecurityWithoutAnArchiveForIt(t *testing.T) {
	got := sourcesList(Mirror{Main: "http://a.example/debian"}, []string{"trixie", "trixie-security"}, "/k.gpg")
	if want := "deb [signed-by=/k.gpg] http://a.example/debian trixie main\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
