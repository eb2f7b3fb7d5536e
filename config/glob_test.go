package config

import (
	"errors"
	"os"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func mustGlob(t testing.TB, text string) Glob {
	t.Helper()
	g, err := CompileGlob(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var globTable = []struct {
	glob     string
	yes, not []string
}{
	{"/a", []string{"/a"}, []string{"/", "", "a", "/b", "/a/b", "/aa", "/a/", "//a"}},
	{"/*", []string{"/a", "/.x"}, []string{"/", "/a/b", ""}},
	{"/**", []string{"/a", "/a/b", "/a/b/c"}, []string{"/", ""}},
	{"/a/**", []string{"/a/b", "/a/b/c"}, []string{"/a", "/", "/b", "/ab/c", "/a/"}},
	{"/**/b", []string{"/b", "/a/b", "/a/a/b", "/b/b"}, []string{"/a", "/b/a", "/"}},
	{"/a/**/b", []string{"/a/b", "/a/x/b", "/a/x/y/b", "/a/b/b"}, []string{"/a", "/b", "/a/b/c", "/a/x"}},
	{"/**/a/*/b", []string{"/a/x/b", "/a/a/x/b", "/a/x/a/y/b"}, []string{"/a/b", "/a/x/y/b"}},
	{"/**/a/**/b/**", []string{"/a/b/c", "/x/a/x/b/y/z", "/a/b/a/b/c"}, []string{"/a/b", "/b/a/c", "/x/a/b"}},
	{"/kubepods.slice/**/*besteffort*", []string{
		"/kubepods.slice/kubepods-besteffort.slice",
		"/kubepods.slice/x/kubepods-besteffort-pod1.slice",
	}, []string{"/kubepods.slice", "/kubepods.slice/kubepods-besteffort.slice/cri"}},
	{"/system.slice/postgresql*.service", []string{
		"/system.slice/postgresql.service", "/system.slice/postgresql@15-main.service",
	}, []string{"/system.slice/postgresql.service/x", "/system.slice/postgresql", "/user.slice/postgresql.service"}},
	{`/machine.slice/machine-qemu\x2d1*.scope`, []string{
		`/machine.slice/machine-qemu\x2d1\x2dmy vm.scope`, `/machine.slice/machine-qemu\x2d1.scope`,
	}, []string{"/machine.slice/machine-qemu-1.scope", `/machine.slice/machine-qemu\\x2d1.scope`}},
	{`/\*`, []string{`/\`, `/\x`}, []string{"/*", "/x"}},
	{"/[*]", []string{"/*"}, []string{"/x", "/[*]"}},
	{"/[[]glob[]][*][?]name", []string{"/[glob]*?name"}, []string{"/glob*?name"}},
	{"/[a-c]x", []string{"/ax", "/cx"}, []string{"/dx", "/x", "/-x"}},
	{"/[!a-c]x", []string{"/dx", "/-x", "/ü" + "x"}, []string{"/ax", "/x", "//x"}},
	{"/[^a]", []string{"/b"}, []string{"/a"}},
	{"/[a-]", []string{"/a", "/-"}, []string{"/b"}},
	{"/[-a]", []string{"/a", "/-"}, []string{"/b"}},
	{"/[]a]", []string{"/]", "/a"}, []string{"/b"}},
	{"/[!]a]", []string{"/b"}, []string{"/]", "/a"}},
	{"/?", []string{"/a", "/ü", "/\xff"}, []string{"/", "/ab", "/\xff\xff"}},
	{"/?mlaut", []string{"/ümlaut"}, []string{"/mlaut", "/uumlaut"}},
	{"/[ä-ü]", []string{"/ö"}, []string{"/o", "/\xc3", "/\xff"}},
	{"/*[!ü]", []string{"/xa", "/üa"}, []string{"/ü", "/xü"}},
	{"/*a*b", []string{"/ab", "/aab", "/xaxb", "/abab"}, []string{"/a", "/b", "/aba"}},
	{"/a?*", []string{"/ab", "/abc"}, []string{"/a"}},
	{"/a:b", []string{"/a:b"}, []string{"/a"}},
	{"/my vm", []string{"/my vm"}, []string{"/my"}},
}

func TestGlobsMatchAsThePackageCommentSays(t *testing.T) {
	for _, c := range globTable {
		g := mustGlob(t, c.glob)
		for _, p := range c.yes {
			if !g.Match(p) {
				t.Errorf("%s does not match %q", g, p)
			}
		}
		for _, p := range c.not {
			if g.Match(p) {
				t.Errorf("%s matches %q", g, p)
			}
		}
	}
	if (Glob{}).Match("/a") || (Glob{}).Match("/") {
		t.Error("the zero glob matches something")
	}
}

func TestGlobsThatCannotMatchAreRefused(t *testing.T) {
	for text, message := range map[string]string{
		"":           "does not start with /",
		"a":          "does not start with /",
		"**":         "does not start with /",
		"/":          "root cgroup",
		"//":         "empty component",
		"/a/":        "empty component",
		"/a//b":      "empty component",
		"/a/../b":    "component ..",
		"/./a":       "component .",
		"/a**":       "fill its component",
		"/**a/b":     "fill its component",
		"/***":       "fill its component",
		"/**/**":     "repeats **",
		"/[":         "without its ]",
		"/[a":        "without its ]",
		"/[a/b]":     "without its ]",
		"/[]":        "without its ]",
		"/[!]":       "without its ]",
		"/[a-":       "without its ]",
		"/[z-a]":     "runs backwards",
		"/a\nb":      "no glob can have",
		"/a\x00":     "no glob can have",
		"/\xff":      "no glob can have",
		"/a\u0085/b": "no glob can have",

		"/" + strings.Repeat("a*", 2048): "longer than 4096 bytes",
	} {
		_, err := CompileGlob(text)
		if err == nil || !strings.Contains(err.Error(), message) || !errors.Is(err, ErrValue) {
			t.Errorf("%q: got %v, want %q", text, err, message)
		}
	}
}

// c19: names with colons, blanks, backslashes and glob characters are matched
// byte by byte; what the kernel printed is never a pattern.
func TestC19EveryNameIsMatchedByItsOwnText(t *testing.T) {
	data, err := os.ReadFile("testdata/c19/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := mustGlob(t, "/**")
	for name := range strings.Lines(string(data)) {
		p := "/" + strings.TrimSuffix(name, "\n")
		if !all.Match(p) {
			t.Errorf("/** does not match %q", p)
		}
		g := mustGlob(t, strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(p))
		if !g.Match(p) {
			t.Errorf("%s does not match %q", g, p)
		}
		if g.Match(p+"x") || g.Match(p[:len(p)-1]) || g.Match(p+"/x") {
			t.Errorf("%s matches more than its name", g)
		}
	}
}

// naive matches by trying every way to use up a path, component by component
// and character by character.
func naive(glob, cgroup []string) bool {
	if len(glob) == 0 {
		return len(cgroup) == 0
	}
	if glob[0] != "**" {
		return len(cgroup) > 0 && naiveName(glob[0], []rune(cgroup[0])) && naive(glob[1:], cgroup[1:])
	}
	least := 0
	if len(glob) == 1 {
		least = 1
	}
	for n := least; n <= len(cgroup); n++ {
		if naive(glob[1:], cgroup[n:]) {
			return true
		}
	}
	return false
}

func naiveName(glob string, name []rune) bool {
	switch {
	case glob == "":
		return len(name) == 0
	case glob[0] == '*':
		return naiveName(glob[1:], name) || len(name) > 0 && naiveName(glob, name[1:])
	case len(name) == 0:
		return false
	case glob[0] == '?':
		return naiveName(glob[1:], name[1:])
	case glob[0] == '[':
		end := strings.IndexByte(glob, ']')
		in, _ := path.Match(strings.Replace(glob[:end+1], "!", "^", 1), string(name[0]))
		return in && naiveName(glob[end+1:], name[1:])
	}
	r, n := utf8.DecodeRuneInString(glob)
	return r == name[0] && naiveName(glob[n:], name[1:])
}

// drawGlob draws a pattern over a small alphabet, so that matches are common.
func drawGlob(t *rapid.T) string {
	name := rapid.Custom(func(t *rapid.T) string {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ü", `\`, "*", "?", "[ab]", "[!a]", "[a-z]"}), 1, 5).Draw(t, "pieces")
		for i := 1; i < len(pieces); i++ {
			if pieces[i] == "*" && pieces[i-1] == "*" {
				pieces[i] = "a"
			}
		}
		return strings.Join(pieces, "")
	})
	part := rapid.OneOf(rapid.Just("**"), name, name)
	parts := rapid.SliceOfN(part, 1, 5).Draw(t, "parts")
	for i := 1; i < len(parts); i++ {
		if parts[i] == "**" && parts[i-1] == "**" {
			parts[i] = "*"
		}
	}
	return "/" + strings.Join(parts, "/")
}

func drawPath(t *rapid.T) string {
	name := rapid.StringOfN(rapid.SampledFrom([]rune{'a', 'b', 'ü', '\\'}), 1, 4, -1)
	return "/" + strings.Join(rapid.SliceOfN(name, 1, 6).Draw(t, "names"), "/")
}

func TestTheMatcherAgreesWithTheNaiveOne(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		text, p := drawGlob(t), drawPath(t)
		g, err := CompileGlob(text)
		if err != nil {
			t.Fatal(err)
		}
		want := naive(strings.Split(text[1:], "/"), strings.Split(p[1:], "/"))
		if want {
			matched++
		}
		if got := g.Match(p); got != want {
			t.Errorf("%s on %s: got %v, want %v", text, p, got, want)
		}
	})
	if matched == 0 {
		t.Error("not one path matched: the test shows nothing")
	}
}

func FuzzGlob(f *testing.F) {
	for _, c := range globTable {
		for _, p := range append(c.yes, c.not...) {
			f.Add(c.glob, p)
		}
	}
	f.Fuzz(func(t *testing.T, text, p string) {
		g, err := CompileGlob(text)
		if err != nil {
			return
		}
		if g.Match("/") || g.Match("") {
			t.Errorf("%q matches the root", text)
		}
		if g.Match(p) && !strings.HasPrefix(p, "/") {
			t.Errorf("%q matches %q, which is no path", text, p)
		}
	})
}
