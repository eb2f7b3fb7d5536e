package kernel

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Source is one place apt is configured to fetch packages from.
type Source struct {
	URI        string
	Suites     []string
	Components []string
}

// ParseList reads the one-line format of sources.list. Lines that are not "deb" are left out.
func ParseList(text string) []Source {
	var out []Source
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		line, _, _ := strings.Cut(sc.Text(), "#")
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(line, "deb ")
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			_, after, closed := strings.Cut(rest, "]")
			if !closed {
				continue
			}
			rest = after
		}
		f := strings.Fields(rest)
		if len(f) < 2 {
			continue
		}
		out = append(out, Source{URI: f[0], Suites: f[1:2], Components: f[2:]})
	}
	return out
}

// ParseDeb822 reads the stanza format of *.sources. Stanzas that are disabled or carry no
// binary packages are left out.
func ParseDeb822(text string) []Source {
	var out []Source
	fields := map[string]string{}
	last := ""
	flush := func() {
		defer func() { fields, last = map[string]string{}, "" }()
		if strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
			return
		}
		if !contains(strings.Fields(fields["types"]), "deb") {
			return
		}
		for _, uri := range strings.Fields(fields["uris"]) {
			out = append(out, Source{
				URI:        uri,
				Suites:     strings.Fields(fields["suites"]),
				Components: strings.Fields(fields["components"]),
			})
		}
	}
	sc := bufio.NewScanner(strings.NewReader(text))
	for sc.Scan() {
		line := sc.Text()
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			if last != "" {
				fields[last] += " " + strings.TrimSpace(line)
			}
		default:
			k, v, ok := strings.Cut(line, ":")
			if !ok {
				continue
			}
			last = strings.ToLower(strings.TrimSpace(k))
			fields[last] = strings.TrimSpace(v)
		}
	}
	flush()
	return out
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// ReadSources reads what apt is configured with below dir, which is /etc/apt on a real machine.
// A file that is not there is not an error.
func ReadSources(dir string) ([]Source, error) {
	files := []string{filepath.Join(dir, "sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join(dir, "sources.list.d", pattern))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", dir, err)
		}
		files = append(files, more...)
	}
	sort.Strings(files[1:])
	var out []Source
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading apt's sources: %w", err)
		}
		if strings.HasSuffix(f, ".sources") {
			out = append(out, ParseDeb822(string(raw))...)
		} else {
			out = append(out, ParseList(string(raw))...)
		}
	}
	return out, nil
}

// Mirror is where this machine gets Debian from.
type Mirror struct {
	// Main is the archive's URI, Security that of the security archive (empty when none is configured).
	Main, Security string
}

// debianSuites are the names a Debian release is known by in sources. Other archives (vendors,
// language repositories) use names of their own.
var debianSuites = map[string]bool{
	"oldoldstable": true, "oldstable": true, "stable": true, "testing": true, "unstable": true, "sid": true,
	"bullseye": true, "bookworm": true, "trixie": true, "forky": true, "duke": true,
}

// FindMirror picks Debian's own archive out of everything apt is configured with.
func FindMirror(sources []Source) (Mirror, bool) {
	var m Mirror
	for _, s := range sources {
		if !contains(s.Components, "main") {
			continue
		}
		for _, suite := range s.Suites {
			base, rest, _ := strings.Cut(suite, "-")
			base, _, _ = strings.Cut(base, "/")
			if !debianSuites[base] {
				continue
			}
			if rest == "security" || strings.HasSuffix(suite, "/updates") {
				if m.Security == "" {
					m.Security = s.URI
				}
			} else if m.Main == "" {
				m.Main = s.URI
			}
		}
	}
	return m, m.Main != ""
}
