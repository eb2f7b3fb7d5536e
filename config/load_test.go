package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const small = "policies: [{name: a, match: [{path: /a}]}]\n"

var textTable = []struct{ name, text, want string }{
	{"nothing", "", "f:1:1: the file has no settings in it"},
	{"only a document mark", "---\n", "f:1:1: the file has no settings in it"},
	{"null", "~\n", "f:1:1: has no value"},
	{"a byte order mark", "\ufeff" + small, "f:1:1: the file starts with a byte order mark"},
	{"UTF-16", "\xff\xfep\x00o\x00", "f:1:1: the byte 0xff is not UTF-8"},
	{"latin-1 in a comment", "mode: observe\n# \xfcber\n", "f:2:3: the byte 0xfc is not UTF-8"},
	{"a control character", "mode: obs\x07erve\n" + small, "f:1:10: the control character U+0007"},
	{"a zero byte", "mode: \x00\n" + small, "f:1:7: the control character U+0000"},
	{"a lone carriage return", "mode: observe\rinterval: 5s\n" + small, "f:1:14: the control character U+000D"},
	{"a tab behind a colon", "mode:\tobserve\n" + small, "f:1:6: a tab character"},
	{"an end mark", small + "...\n", "f:2:1: the end mark of a document (...) is not taken"},
	{"data behind the end", small + "...\nx\n", "f:2:1: the end mark of a document (...) is not taken; remove it and what is behind it\nf:3:1: not YAML"},
	{"an empty second document", small + "---\n", "f:2:1: a second YAML document begins"},
	{"a directive", "%YAML 1.2\n---\n" + small, "f:1:1: a directive (%) is not taken"},
	{"a complex key", "? mode\n: observe\n" + small, "f:1:1: a complex key (?) is not taken"},
	{"deep brackets", "mode: " + strings.Repeat("[", 5000), "f:1:39: brackets or lists are nested too deeply"},
	{"deep lists", strings.Repeat("- ", 5000), "f:1:65: brackets or lists are nested too deeply"},
	{"deep anchors", strings.Repeat("&a ", 5000), "f:1:1: an anchor (&) is not taken"},
	{"endless keys", strings.Repeat("a: 1\n", 5000), "f:257:2: more than 256 keys in a row"},
	{"a closing bracket too many", small + "}\n", "f:2:1: not YAML"},
	{"a reserved character", "mode: @x\n" + small, "f:1:7: not YAML"},
	{"an open quote", "mode: 'x\n", "f:1:7: not YAML"},
	{"a key that is a number", "1: 2\n" + small, "f:1:1: 1: is not a known key"},
	{"a glob that needs quotes", "policies: [{name: a, match: [{path: *}]}]\n", "f:1:37: "},
	{"a long value", "mode: " + strings.Repeat("x", 5000) + "\n" + small, "f:1:7: mode: " + strings.Repeat("x", 80) + "... is not known"},
}

func TestTextThatIsNotOurYAMLIsRefused(t *testing.T) {
	for _, c := range textTable {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse("f", []byte(c.text))
			if got != nil || !errors.Is(err, ErrBadConfig) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestHarmlessFormsAreTaken(t *testing.T) {
	for name, text := range map[string]string{
		"a document mark in front": "---\n" + small,
		"Windows line ends":        strings.ReplaceAll("mode: observe\n# x\n"+"policies:\n  - name: a\n    match:\n    - path: /a\n", "\n", "\r\n"),
		"no line end":              strings.TrimSuffix(small, "\n"),
		"a tab in a comment":       "# a\tb\nmode: observe #\tx\n" + small,
		"quoted keys and words":    `"mode": 'observe'` + "\n" + small,
		"a text behind a comment":  "# ü\n\n\n" + small,
	} {
		if _, err := Parse(name, []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestAFileOfSomethingElseEndsWithABound(t *testing.T) {
	text := "policies:\n" + strings.Repeat("- x\n", 20000)
	_, err := Parse("f", []byte(text))
	faults, _ := errors.AsType[Errors](err)
	if len(faults) != maxErrors+1 || !strings.Contains(faults[maxErrors].Error(), "more than 500 errors") {
		t.Errorf("%d faults", len(faults))
	}
}

func TestNoConfigAndUnreadableAndBadAreDifferent(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("gone.yaml", dangling); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		kind       error
		also       error
		message    string
	}{
		{"no file", filepath.Join(dir, "none.yaml"), ErrNoConfig, fs.ErrNotExist, "no config file"},
		{"a link to no file", dangling, ErrNoConfig, syscall.ENOENT, "no config file"},
		{"a directory", dir, ErrUnreadable, nil, "it is a directory"},
		{"a FIFO without a writer", fifo, ErrUnreadable, nil, "it is a FIFO"},
		{"a socket", socket, ErrUnreadable, syscall.ENXIO, "cannot be read"},
		{"a device", "/dev/null", ErrUnreadable, nil, "it is a device"},
		{"a file as directory", filepath.Join(file("x", small), "y"), ErrUnreadable, syscall.ENOTDIR, "not a directory"},
		{"a huge file", file("huge", strings.Repeat("#", MaxSize+1)), ErrUnreadable, nil, "it is larger than 1MiB"},
		{"an empty file", file("empty", ""), ErrBadConfig, ErrMissing, "no settings"},
		{"a bad file", file("bad", "x: 1\n"), ErrBadConfig, ErrUnknownKey, "not a known key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Load(c.path)
			if got != nil || err == nil {
				t.Fatalf("got %v, %v", got, err)
			}
			for _, kind := range []error{ErrNoConfig, ErrUnreadable, ErrBadConfig} {
				if errors.Is(err, kind) != (kind == c.kind) {
					t.Errorf("errors.Is(%v, %v) is %v", err, kind, kind != c.kind)
				}
			}
			if c.also != nil && !errors.Is(err, c.also) {
				t.Errorf("%v is not %v", err, c.also)
			}
			if !strings.HasPrefix(err.Error(), c.path+":") || !strings.Contains(err.Error(), c.message) ||
				strings.Count(err.Error(), c.path) > strings.Count(err.Error(), "\n")+1 {
				t.Errorf("message %q, want the file once and %q", err, c.message)
			}
		})
	}
	if _, err := Load(file("good", small)); err != nil {
		t.Error(err)
	}
	if err := os.Symlink("good", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(filepath.Join(dir, "link")); err != nil {
		t.Error(err)
	}
}

func TestAFileOfTheLargestSizeIsTaken(t *testing.T) {
	var b strings.Builder
	b.WriteString("policies:\n")
	long := strings.Repeat("x", 1000)
	for i := 0; b.Len() < MaxSize-1200; i++ {
		fmt.Fprintf(&b, "- {name: p%d, match: [{path: /%s%d}]}\n", i, long, i)
	}
	b.WriteString(strings.Repeat("#", MaxSize-b.Len()))
	if _, err := Parse("large", []byte(b.String())); err != nil {
		t.Error(err)
	}
}
