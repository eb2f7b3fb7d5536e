package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxErrors bounds what a file that is something else altogether can produce.
const maxErrors = 500

// reader walks the files of one config and collects their faults.
type reader struct {
	file  string // that is being read
	files []string
	errs  Errors
	full  bool             // maxErrors reached
	at    map[string]place // fields that were read
	bad   map[string]bool  // fields with a fault in or below them
	// first is the number, over all files, of the first policy of each file.
	first   map[string]int
	outline *outline // what to tell of the schema instead of reading; nil: read
}

// place is a value in a file and its name in the schema.
type place struct {
	field string
	node  ast.Node
	file  string
}

// String returns "file:line:col".
func (p place) String() string {
	line, col := nodePlace(p.node)
	return fmt.Sprintf("%s:%d:%d", p.file, line, col)
}

func (p place) key(name string, node ast.Node) place {
	if p.field == "" {
		return place{name, node, p.file}
	}
	return place{p.field + "." + name, node, p.file}
}

func (p place) index(i int, node ast.Node) place {
	return place{fmt.Sprintf("%s[%d]", p.field, i), node, p.file}
}

func (r *reader) add(line, col int, field string, value any, err *fault, fix string) {
	r.addIn(r.file, line, col, field, value, err, fix)
}

func (r *reader) addIn(file string, line, col int, field string, value any, err *fault, fix string) {
	if len(r.errs) >= maxErrors {
		r.full = true
		return
	}
	r.errs = append(r.errs, &Error{File: file, Line: line, Col: col, Field: r.inFile(file, field), Value: value, Err: err, Fix: fix})
}

// fault reports what is wrong with the value at p and marks it and all it is
// part of, so that no check draws conclusions from it.
func (r *reader) fault(p place, value any, err *fault, fix string) {
	line, col := nodePlace(p.node)
	r.addIn(p.file, line, col, p.field, value, err, fix)
	r.spoil(p.field)
}

func (r *reader) spoil(field string) {
	for field != "" && !r.bad[field] {
		r.bad[field] = true
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// sound returns where a field was given, if it was and nothing is wrong with
// it or below it.
func (r *reader) sound(field string) (place, bool) {
	p, ok := r.at[field]
	return p, ok && !r.bad[field]
}

// finish returns the faults in order, nil when there are none.
func (r *reader) finish() error {
	if len(r.errs) == 0 {
		return nil
	}
	r.errs.sort(r.files)
	if r.full {
		r.errs = append(r.errs, &Error{File: r.files[len(r.files)-1], Err: faultf(ErrSyntax, "more than %d errors", maxErrors),
			Fix: "only these are listed; is this the right file?"})
	}
	return r.errs
}

// nodePlace returns where a value begins. A mapping begins at its first key,
// not at its first colon.
func nodePlace(n ast.Node) (line, col int) {
	switch v := n.(type) {
	case nil:
		return 1, 1
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return nodePlace(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return nodePlace(v.Key)
	}
	return tokenPlace(n.GetToken())
}

// open looks through what was refused already as YAML. ok is false where
// nothing is left to look at and nothing more to report.
func open(n ast.Node) (inner ast.Node, ok bool) {
	for {
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.TagNode:
			n = v.Value
		case *ast.AliasNode, *ast.LiteralNode, *ast.DirectiveNode, *ast.MergeKeyNode, *ast.MappingKeyNode:
			return nil, false
		default:
			return n, n != nil
		}
	}
}

// describe says what a node is, for people.
func describe(n ast.Node) string {
	switch v := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return v.GetToken().Value + ", a truth value"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value + ", a number"
	case *ast.StringNode:
		return strconv.Quote(shorten(v.Value)) + ", a text"
	}
	return "something else"
}

func isNull(n ast.Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok
}

// wrongType reports a value of another kind than wanted, or none at all.
func (r *reader) wrongType(p place, n ast.Node, want string) {
	if isNull(n) {
		r.fault(p, nil, faultf(ErrMissing, "has no value"), "want "+want)
		return
	}
	r.fault(p, nil, faultf(ErrType, "is %s", describe(n)), "want "+want)
}

// list returns the places of the entries of a list that must not be empty.
func (r *reader) list(p place, want string) []place {
	if r.outline != nil {
		r.outline.list(want)
		return []place{p}
	}
	n, ok := open(p.node)
	if !ok {
		r.spoil(p.field)
		return nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		r.wrongType(p, n, want)
		return nil
	}
	if len(seq.Values) == 0 {
		r.fault(p, nil, faultf(ErrMissing, "is empty"), "want "+want)
	}
	out := make([]place, len(seq.Values))
	for i, v := range seq.Values {
		out[i] = p.index(i, v)
	}
	return out
}
