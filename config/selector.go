package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// AnnotationPrefix is what annotations of containers begin with that are meant
// for memagent. No other is looked at.
const AnnotationPrefix = "memagent.dev/"

// Selector tells which cgroups a policy is for: those that Path matches and
// whose container has every one of Annotations. One of both is always given.
type Selector struct {
	Path        Glob         // zero: any path
	Annotations []Annotation // in the order of the file; nil: with or without a container
}

// Annotation is a key that begins with AnnotationPrefix, and its value.
type Annotation struct {
	Key, Value string
}

// Match reports whether the selector is for a cgroup: its path as memcg.ID has
// it, and the annotations of the container that it is or is inside of, nil where
// it is none. It allocates nothing.
func (s *Selector) Match(path string, annotations map[string]string) bool {
	for _, a := range s.Annotations {
		if v, ok := annotations[a.Key]; !ok || v != a.Value {
			return false
		}
	}
	if s.Path.text == "" {
		return len(s.Annotations) > 0 && path != "/"
	}
	return s.Path.Match(path)
}

// String returns the selector in one phrase for people.
func (s *Selector) String() string {
	var out []string
	if s.Path.text != "" {
		out = append(out, s.Path.String())
	}
	for _, a := range s.Annotations {
		out = append(out, a.Key+": "+a.Value)
	}
	return strings.Join(out, " with ")
}

const wantAnnotations = "a mapping such as {memagent.dev/policy: database}"

var selectorKeys = []key[Selector]{
	{
		name: "path", want: wantGlob, required: true, unless: "annotation", example: "'/system.slice/**'",
		read: readGlob,
		show: func(s *Selector) shown {
			if s.Path.text == "" {
				return shown{}
			}
			return shown{text: yamlQuote(s.Path.String())}
		},
	},
	{
		name: "annotation", want: wantAnnotations, example: "{memagent.dev/policy: database}",
		about: "Containers whose OCI spec has these annotations, and the cgroups inside them.",
		read:  readAnnotations, show: showAnnotations,
	},
}

func readGlob(r *reader, p place, want string, s *Selector) {
	text, n, ok := r.scalar(p, want)
	if !ok {
		return
	}
	if _, isText := n.(*ast.StringNode); !isText {
		r.wrongType(p, n, want)
		return
	}
	g, err := CompileGlob(text)
	if err != nil {
		r.refuse(p, text, err, want)
		return
	}
	s.Path = g
}

// What an annotation's key is after the prefix, by the rules of Kubernetes. Its
// value may be anything that fits on a line.
var (
	goodAnnotation      = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	goodAnnotationValue = regexp.MustCompile(`^[ -~]{1,253}$`)
)

func readAnnotations(r *reader, p place, want string, s *Selector) {
	if r.outline != nil {
		o := r.outline.here()
		o.Type = "object"
		o.describe(want)
		return
	}
	n, ok := open(p.node)
	if !ok {
		r.spoil(p.field)
		return
	}
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		r.wrongType(p, n, want)
		return
	}
	if len(values) == 0 {
		r.fault(p, nil, faultf(ErrMissing, "is empty"), "want "+want)
	}
	for _, given := range values {
		r.readAnnotation(p, given, s)
	}
}

func (r *reader) readAnnotation(p place, given *ast.MappingValueNode, s *Selector) {
	if _, ok := open(given.Key); !ok {
		r.spoil(p.field)
		return
	}
	key := given.Key.GetToken().Value
	name := p.key(quote(key), given.Key)
	rest, ours := strings.CutPrefix(key, AnnotationPrefix)
	switch {
	case !ours:
		r.fault(name, key, faultf(ErrUnknownKey, "does not begin with %s, and no other annotation is looked at", AnnotationPrefix), "want "+wantAnnotations)
		return
	case !goodAnnotation.MatchString(rest):
		r.fault(name, key, faultf(ErrValue, "is not the key of an annotation"), "want "+AnnotationPrefix+" and up to 63 letters, digits, dots, - and _")
		return
	case slices.ContainsFunc(s.Annotations, func(a Annotation) bool { return a.Key == key }):
		r.fault(name, key, faultf(ErrDuplicate, "is given twice"), "keep one")
		return
	}
	at := p.key(quote(key), given.Value)
	const want = "the text that the annotation has"
	text, n, ok := r.scalar(at, want)
	if !ok {
		return
	}
	if _, isText := n.(*ast.StringNode); !isText {
		r.fault(at, text, faultf(ErrType, "is %s", describe(n)), "want "+want+"; put it in quotes if it is one")
		return
	}
	if !goodAnnotationValue.MatchString(text) {
		r.fault(at, text, faultf(ErrValue, "%s is not what an annotation can be matched by", quote(text)), "want 1 to 253 printable ASCII characters")
		return
	}
	s.Annotations = append(s.Annotations, Annotation{key, text})
}

func showAnnotations(s *Selector) shown {
	if len(s.Annotations) == 0 {
		return shown{}
	}
	parts := make([]string, len(s.Annotations))
	for i, a := range s.Annotations {
		parts[i] = a.Key + ": " + yamlQuote(a.Value)
	}
	return shown{text: "{" + strings.Join(parts, ", ") + "}"}
}
