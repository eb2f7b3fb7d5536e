package config

import (
	"path"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

func readStateDir(r *reader, p place, want string, c *Config) {
	text, n, ok := r.scalar(p, want)
	if !ok {
		return
	}
	if _, isText := n.(*ast.StringNode); !isText {
		r.wrongType(p, n, want)
		return
	}
	if err := checkStateDir(text); err != nil {
		r.refuse(p, text, err, want)
		return
	}
	c.StateDir = text
}

// checkStateDir refuses what would name another directory tomorrow, or after a
// restart from elsewhere.
func checkStateDir(text string) error {
	switch {
	case !strings.HasPrefix(text, "/"):
		return faultf(ErrValue, "%s is not absolute", quote(text))
	case text == "/":
		return faultf(ErrValue, "/ is not a directory for one program")
	case path.Clean(text) != text:
		return faultf(ErrValue, "%s is %s in full", quote(text), quote(path.Clean(text)))
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return faultf(ErrValue, "%s has a control character", quote(text))
	}
	for _, kernel := range []string{"/proc", "/sys", "/dev"} {
		if text == kernel || strings.HasPrefix(text, kernel+"/") {
			return faultf(ErrValue, "%s is the kernel's, and no disk", quote(text))
		}
	}
	return nil
}

var plainPath = regexp.MustCompile(`^/[A-Za-z0-9_./-]+$`)

// yamlPath leaves a path as it is where no YAML reader takes it for more.
func yamlPath(text string) string {
	if plainPath.MatchString(text) {
		return text
	}
	return yamlQuote(text)
}
