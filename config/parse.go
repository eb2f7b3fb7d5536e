package config

import (
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml/ast"

	"github.com/memagent/memagent/memcg"
)

// Parse reads a config from its text; name stands for the file in messages.
// The error is an Errors with every fault there is (and is ErrBadConfig), or
// is ErrUnreadable for more than MaxSize bytes.
func Parse(name string, data []byte) (*Config, error) {
	if len(data) > MaxSize {
		return nil, unreadable(name, fmt.Errorf("it is larger than %v", Bytes(MaxSize)), "is this the right file?")
	}
	r := &reader{file: name, at: map[string]place{}, bad: map[string]bool{}}
	root := r.document(data)
	if root == nil {
		return nil, r.finish()
	}
	c := defaultConfig()
	readMapping(r, place{node: root}, wantConfig, configKeys, &c)
	r.checkTogether(&c)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return &c, nil
}

func readPolicies(r *reader, p place, want string, c *Config) {
	for _, at := range r.list(p, want) {
		policy := defaultPolicy()
		r.at[at.field] = at
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
