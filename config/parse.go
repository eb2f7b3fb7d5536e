package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/memagent/memagent/memcg"
)

// Parse reads a config from its text; name stands for the file in messages.
// The error is an Errors with every fault there is (and is ErrBadConfig), or
// is ErrUnreadable for more than MaxSize bytes.
func Parse(name string, data []byte) (*Config, error) {
	if len(data) > MaxSize {
		return nil, tooLarge(name)
	}
	return parseFiles([]source{{name, data}})
}

// parseFiles reads a config from its files, the main one last.
func parseFiles(files []source) (*Config, error) {
	r := &reader{at: map[string]place{}, bad: map[string]bool{}, first: map[string]int{}}
	for _, f := range files {
		r.files = append(r.files, f.name)
	}
	c := defaultConfig()
	whole := true
	for _, f := range files {
		r.file, r.first[f.name] = f.name, len(c.Policies)
		root := r.document(f.data)
		if root == nil {
			whole = false // nothing can be said of what it should have had
			continue
		}
		readMapping(r, place{node: root, file: f.name}, wantConfig, configKeys, &c)
	}
	if _, given := r.at["policies"]; whole && !given && len(r.errs) == 0 {
		r.add(1, 1, "policies", nil, faultf(ErrMissing, "is missing, here and in the drop-ins"), "want "+wantPolicies)
	}
	if whole {
		r.checkTogether(&c)
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return &c, nil
}

// inFile returns the name of a field as a reader of its file counts: policies
// are numbered over all files elsewhere.
func (r *reader) inFile(file, field string) string {
	rest, ok := strings.CutPrefix(field, "policies[")
	if !ok || r.first[file] == 0 {
		return field
	}
	number, rest, _ := strings.Cut(rest, "]")
	n, err := strconv.Atoi(number)
	if err != nil {
		return field
	}
	return fmt.Sprintf("policies[%d]%s", n-r.first[file], rest)
}

func readPolicies(r *reader, p place, want string, c *Config) {
	for i, at := range r.list(p, want) {
		policy := defaultPolicy()
		if r.outline == nil {
			at.field = fmt.Sprintf("%s[%d]", p.field, r.first[at.file]+i)
			r.at[at.field] = at
		}
		readMapping(r, at, "a policy with name and match", policyKeys, &policy)
		c.Policies = append(c.Policies, policy)
		if r.full {
			return // refused in any case; the rest would only cost time
		}
	}
}

func showPolicies(c *Config) shown {
	s := shown{list: []shown{}}
	for i := range c.Policies {
		s.list = append(s.list, showMapping(policyKeys, &c.Policies[i]))
	}
	return s
}

// A name becomes a label of metrics and a column of tables.
var goodName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

func readName(r *reader, p place, want string, v *Policy) {
	text, n, ok := r.scalar(p, want)
	if !ok {
		return
	}
	if _, isText := n.(*ast.StringNode); !isText {
		r.fault(p, text, faultf(ErrType, "is %s", describe(n)), "want "+want+"; put it in quotes if it is one")
		return
	}
	if !goodName.MatchString(text) {
		r.fault(p, text, faultf(ErrValue, "%s is not a name", quote(text)), "want "+want)
		return
	}
	v.Name = text
}

func readMatch(r *reader, p place, want string, v *Policy) {
	for _, at := range r.list(p, want) {
		var s Selector
		readMapping(r, at, "a mapping such as {path: '/system.slice/**'}", selectorKeys, &s)
		v.Match = append(v.Match, s)
	}
}

func showMatch(p *Policy) shown {
	s := shown{list: []shown{}}
	for i := range p.Match {
		s.list = append(s.list, showMapping(selectorKeys, &p.Match[i]))
	}
	return s
}

func readSwappiness(r *reader, p place, want string, v *Policy) {
	if r.outline != nil {
		outlineMapping(r.outline.either(want), "", autoKeys)
		r.outline.either("").integer("", 0, memcg.SwappinessMax-1)
		r.outline.either("").words([]string{"max", "kernel", "auto"})
		return
	}
	n, ok := open(p.node)
	if !ok {
		r.spoil(p.field)
		return
	}
	a := auto{AutoSwappiness(autoBase, autoMin, autoMax)}
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		readMapping(r, p, want, autoKeys, &a)
		s := a.bounds
		if at, ok := r.sound(p.field + ".auto"); ok && (s.Min > s.Base || s.Base > s.Max) {
			r.fault(at, nil, faultf(ErrConflict, "min %d, base %d, max %d are out of order", s.Min, s.Base, s.Max),
				"want min <= base <= max (unset: base 60, min 0, max 200)")
		}
		v.Swappiness = s
		return
	case *ast.StringNode:
		switch n.Value {
		case "kernel":
			v.Swappiness = Swappiness{}
			return
		case "max":
			v.Swappiness = FixedSwappiness(memcg.SwappinessMax)
			return
		case "auto":
			v.Swappiness = a.bounds
			return
		}
	}
	if x, ok := r.integer(p, want, 0, memcg.SwappinessMax-1); ok {
		v.Swappiness = FixedSwappiness(x)
	}
}

func showSwappiness(p *Policy) shown {
	if p.Swappiness.Kind == SwappinessAuto {
		return showMapping(autoKeys, &auto{p.Swappiness})
	}
	return shown{text: p.Swappiness.String()}
}

func readSqueeze(r *reader, p place, want string, v *Policy) {
	if r.outline != nil {
		outlineMapping(r.outline.either(want), "", squeezeKeys)
		r.outline.either("").words([]string{"off"})
		return
	}
	n, ok := open(p.node)
	if !ok {
		r.spoil(p.field)
		return
	}
	if s, isText := n.(*ast.StringNode); isText && s.Value == "off" {
		v.Squeeze.Off = true
		return
	}
	readMapping(r, p, want, squeezeKeys, &v.Squeeze)
}
