package config

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Glob is a compiled pattern on cgroup paths; the package comment has the
// rules. The zero Glob matches nothing.
type Glob struct {
	text  string
	parts []part
}

// part is one component of a glob: any number of components, or a list of
// pieces that must use up one component.
type part struct {
	deep   bool // **
	pieces []piece
}

type pieceKind uint8

const (
	literal pieceKind = iota // exactly text
	star                     // any run of characters
	anyOne                   // one character
	oneOf                    // one character of set
)

type piece struct {
	kind pieceKind
	text string
	set  set
}

// set is a list of inclusive ranges of characters.
type set struct {
	not    bool
	ranges [][2]rune
}

// maxGlob is the longest path the kernel takes, PATH_MAX in linux/limits.h.
const maxGlob = 4096

// CompileGlob compiles a pattern. Patterns that could never match a cgroup, or
// would match the root, are refused with an error that wraps ErrValue.
func CompileGlob(text string) (Glob, error) {
	if !strings.HasPrefix(text, "/") {
		return Glob{}, faultf(ErrValue, "%s does not start with /", quote(text))
	}
	if text == "/" {
		return Glob{}, faultf(ErrValue, "/ is the root cgroup, which no policy may match")
	}
	if len(text) > maxGlob {
		return Glob{}, faultf(ErrValue, "%s is longer than %d bytes", quote(text), maxGlob)
	}
	for _, r := range text {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return Glob{}, faultf(ErrValue, "%s has a character that no glob can have", quote(text))
		}
	}
	g := Glob{text: text}
	names := strings.Split(text[1:], "/")
	for i, name := range names {
		switch {
		case name == "":
			return Glob{}, faultf(ErrValue, "%s has an empty component", quote(text))
		case name == "." || name == "..":
			return Glob{}, faultf(ErrValue, "%s has the component %s, which no cgroup path has", quote(text), name)
		case name == "**" && i > 0 && names[i-1] == "**":
			return Glob{}, faultf(ErrValue, "%s repeats **, which means the same as once", quote(text))
		case name == "**":
			g.parts = append(g.parts, part{deep: true})
			continue
		case strings.Contains(name, "**"):
			return Glob{}, faultf(ErrValue, "%s has ** beside other characters; it must fill its component", quote(text))
		}
		pieces, err := compileName(text, name)
		if err != nil {
			return Glob{}, err
		}
		g.parts = append(g.parts, part{pieces: pieces})
	}
	if names[len(names)-1] == "**" { // descendants, not the cgroup itself
		g.parts = append(g.parts, part{pieces: []piece{{kind: star}}})
	}
	return g, nil
}

func compileName(text, name string) ([]piece, error) {
	var pieces []piece
	for name != "" {
		switch name[0] {
		case '*':
			pieces, name = append(pieces, piece{kind: star}), name[1:]
		case '?':
			pieces, name = append(pieces, piece{kind: anyOne}), name[1:]
		case '[':
			s, rest, err := compileSet(text, name[1:])
			if err != nil {
				return nil, err
			}
			pieces, name = append(pieces, piece{kind: oneOf, set: s}), rest
		default:
			n := strings.IndexAny(name, "*?[")
			if n < 0 {
				n = len(name)
			}
			pieces, name = append(pieces, piece{kind: literal, text: name[:n]}), name[n:]
		}
	}
	return pieces, nil
}

// compileSet reads a set from behind its bracket and returns what follows it.
func compileSet(text, in string) (s set, rest string, err error) {
	if in != "" && (in[0] == '!' || in[0] == '^') {
		s.not, in = true, in[1:]
	}
	for first := true; ; first = false {
		if in == "" {
			return set{}, "", faultf(ErrValue, "%s has a [ without its ] in the same component", quote(text))
		}
		if in[0] == ']' && !first {
			return s, in[1:], nil
		}
		low, n := utf8.DecodeRuneInString(in)
		in = in[n:]
		high := low
		if len(in) > 1 && in[0] == '-' && in[1] != ']' {
			high, n = utf8.DecodeRuneInString(in[1:])
			in = in[1+n:]
		}
		if high < low {
			return set{}, "", faultf(ErrValue, "%s has the range %c-%c, which runs backwards", quote(text), low, high)
		}
		s.ranges = append(s.ranges, [2]rune{low, high})
	}
}

// has reports whether the first character of name is in the set, and how long
// it is. A byte that is not UTF-8 is a character of its own that no range holds.
func (s *set) has(name string) (n int, ok bool) {
	r, n := utf8.DecodeRuneInString(name)
	if n == 0 {
		return 0, false
	}
	if r == utf8.RuneError && n == 1 {
		return n, s.not
	}
	for _, span := range s.ranges {
		if span[0] <= r && r <= span[1] {
			return n, !s.not
		}
	}
	return n, s.not
}

// String returns the pattern as it was written.
func (g Glob) String() string { return g.text }

// Equal reports whether both were compiled from the same text.
func (g Glob) Equal(o Glob) bool { return g.text == o.text }

// MatchesAll reports whether the glob is `/**`, which every cgroup but the
// root falls under.
func (g Glob) MatchesAll() bool { return g.text == "/**" }

// Match reports whether the glob matches a path as memcg.ID has it: starting
// with /, without empty components or a slash at the end. It allocates nothing.
//
// When a part fails, only the last ** before it is widened by one component:
// whatever an earlier ** could gain by being wider, the last can gain too.
func (g Glob) Match(path string) bool {
	if len(path) < 2 || path[0] != '/' {
		return false
	}
	path = path[1:]
	i, left, more := 0, path, true // more: left is a further component, not the end
	retry, retryLeft := -1, ""
	for {
		if i < len(g.parts) && g.parts[i].deep {
			i++
			retry, retryLeft = i, left
			continue
		}
		if !more && i == len(g.parts) {
			return len(g.parts) > 0
		}
		if more && i < len(g.parts) {
			name, rest, again := strings.Cut(left, "/")
			if name != "" && matchName(g.parts[i].pieces, name) {
				i, left, more = i+1, rest, again
				continue
			}
		}
		if retry < 0 {
			return false
		}
		_, rest, again := strings.Cut(retryLeft, "/")
		if !again { // a part behind ** needs a component, and none is left
			return false
		}
		i, left, more = retry, rest, true
		retryLeft = rest
	}
}

// matchName does the same with stars for one component.
func matchName(pieces []piece, name string) bool {
	i, left := 0, name
	retry, retryLeft := -1, ""
	for i < len(pieces) || left != "" {
		if i < len(pieces) {
			p := &pieces[i]
			if p.kind == star {
				i++
				if i == len(pieces) {
					return true
				}
				if !pieces[i].seek(&left) {
					return false
				}
				retry, retryLeft = i, left
				continue
			}
			if n, ok := p.take(left); ok {
				i, left = i+1, left[n:]
				continue
			}
		}
		if retry < 0 || retryLeft == "" {
			return false
		}
		_, n := utf8.DecodeRuneInString(retryLeft) // never split a character
		retryLeft = retryLeft[n:]
		if !pieces[retry].seek(&retryLeft) {
			return false
		}
		i, left = retry, retryLeft
	}
	return true
}

// seek moves name to the first place where the piece may match; false means
// that there is none. It spares a literal behind a star the way there.
func (p *piece) seek(name *string) bool {
	if p.kind != literal {
		return true
	}
	n := strings.Index(*name, p.text)
	if n < 0 {
		return false
	}
	*name = (*name)[n:]
	return true
}

// take returns how many bytes of name the piece uses up.
func (p *piece) take(name string) (n int, ok bool) {
	switch p.kind {
	case literal:
		return len(p.text), strings.HasPrefix(name, p.text)
	case anyOne:
		_, n = utf8.DecodeRuneInString(name)
		return n, n > 0
	}
	return p.set.has(name)
}
