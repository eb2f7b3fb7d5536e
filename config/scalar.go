package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// scalar returns the text of a one-line value as it stands in the file,
// whatever YAML would make of it, and its node.
func (r *reader) scalar(p place, want string) (text string, n ast.Node, ok bool) {
	if r.outline != nil {
		r.outline.text(want)
		return "", nil, false
	}
	n, ok = open(p.node)
	if !ok {
		r.spoil(p.field)
		return "", nil, false
	}
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		t := n.GetToken()
		if t.Type == token.DoubleQuoteType && strings.Contains(t.Origin, `\`) {
			r.fault(p, t.Value, faultf(ErrValue, "has a backslash in double quotes, which YAML changes into something else"),
				"use single quotes")
			return "", nil, false
		}
		return t.Value, n, true
	}
	r.wrongType(p, n, want)
	return "", nil, false
}

// refuse reports an error of one of the parse functions.
func (r *reader) refuse(p place, text string, err error, want string) {
	var f *fault
	if !errors.As(err, &f) {
		f = faultf(ErrValue, "%v", err)
	}
	r.fault(p, text, f, "want "+want)
}

// scalarKey is a key whose value is one word, number or size.
func scalarKey[T, V any](name, want, about string, parse func(string) (V, error), field func(*T) *V, show func(V) string) key[T] {
	return key[T]{
		name: name, want: want, about: about,
		read: func(r *reader, p place, want string, v *T) {
			text, _, ok := r.scalar(p, want)
			if !ok {
				return
			}
			x, err := parse(text)
			if err != nil {
				r.refuse(p, text, err, want)
				return
			}
			*field(v) = x
		},
		show: func(v *T) shown { return shown{text: show(*field(v))} },
	}
}

// wordKey is a key whose value is one of a few words, in the order of V.
func wordKey[T any, V ~uint8](name, about string, words []string, field func(*T) *V) key[T] {
	parse := func(text string) (V, error) {
		for i, w := range words {
			if w == text {
				return V(i), nil
			}
		}
		return 0, faultf(ErrValue, "%s is not known", quote(text))
	}
	k := scalarKey(name, orList(words), about, parse, field, func(v V) string { return words[v] })
	k.words = words
	return k
}

// boolKey is a key whose value is true or false, unquoted.
func boolKey[T any](name, about string, field func(*T) *bool) key[T] {
	return key[T]{
		name: name, want: "true or false", about: about, truth: true,
		read: func(r *reader, p place, want string, v *T) {
			text, n, ok := r.scalar(p, want)
			if !ok {
				return
			}
			// YAML 1.2 has more spellings of these; one is enough.
			if _, isBool := n.(*ast.BoolNode); !isBool || text != "true" && text != "false" {
				r.fault(p, text, faultf(ErrType, "is %s", describe(n)), "want "+want)
				return
			}
			*field(v) = text == "true"
		},
		show: func(v *T) shown { return shown{text: strconv.FormatBool(*field(v))} },
	}
}

// integer reads a plain decimal number within bounds. Other ways to write a
// number (0x3c, 1_000, 060) mean different things to different YAML readers.
func (r *reader) integer(p place, want string, low, high int) (v int, ok bool) {
	if r.outline != nil {
		r.outline.integer(want, low, high)
		return 0, false
	}
	text, n, ok := r.scalar(p, want)
	if !ok {
		return 0, false
	}
	if _, isText := n.(*ast.StringNode); isText {
		r.fault(p, text, faultf(ErrType, "is %s", describe(n)), "want "+want)
		return 0, false
	}
	digits := strings.TrimPrefix(text, "-")
	if number, rest := splitNumber(digits); number == "" || rest != "" || strings.Contains(number, ".") || text == "-0" {
		r.fault(p, text, faultf(ErrType, "%s is not a plain whole number", quote(text)), "want "+want)
		return 0, false
	}
	v, err := strconv.Atoi(text)
	switch {
	case text[0] == '-' || err == nil && v < low:
		r.fault(p, text, faultf(ErrValue, "%s is below %d", quote(text), low), "want "+want)
		return 0, false
	case err != nil || v > high:
		r.fault(p, text, faultf(ErrValue, "%s is above %d", quote(text), high), "want "+want)
		return 0, false
	}
	return v, true
}
