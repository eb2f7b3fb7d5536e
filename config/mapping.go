package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// key is one key of a mapping that becomes a T: how it is read, checked and
// shown. The tables in schema.go are the schema.
type key[T any] struct {
	name     string
	about    string // for the example file
	example  string // a value for the example file, for keys that are unset by default
	want     string // what a value looks like
	required bool
	unless   string   // another key with which a required one is not
	words    []string // what a value is one of, where it is
	truth    bool     // a value is true or false
	read     func(r *reader, p place, want string, v *T)
	show     func(v *T) shown
}

// readMapping reads the keys of a mapping into v and reports those that are
// unknown, given twice or missing.
func readMapping[T any](r *reader, p place, want string, keys []key[T], v *T) {
	if r.outline != nil {
		outlineMapping(r.outline, want, keys)
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
	seen := map[string]int{}   // line of the key
	meant := map[string]bool{} // known keys that unknown ones were meant to be
	for _, given := range values {
		if _, ok := open(given.Key); !ok {
			r.spoil(p.field)
			continue
		}
		if near := readKey(r, p, given, keys, seen, v); near != "" {
			meant[near] = true
		}
	}
	for _, k := range keys {
		// Of several files, one that has it is enough.
		if _, instead := seen[k.unless]; instead || meant[k.unless] {
			continue
		}
		if _, ok := seen[k.name]; !ok && k.required && !meant[k.name] && (p.field != "" || len(r.files) == 1) {
			fix := "want " + k.want
			if k.unless != "" {
				fix += ", or " + k.unless
			}
			r.fault(p.key(k.name, n), nil, faultf(ErrMissing, "is missing"), fix)
		}
	}
}

// readKey reads one key. Of an unknown key it returns the known one that was
// probably meant, if any.
func readKey[T any](r *reader, p place, given *ast.MappingValueNode, keys []key[T], seen map[string]int, v *T) (meant string) {
	name := given.Key.GetToken().Value
	line, col := nodePlace(given.Key)
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
		if k.name != name {
			continue
		}
		at := p.key(name, given.Value)
		if before, again := seen[name]; again {
			r.add(line, col, at.field, nil, faultf(ErrDuplicate, "is given twice, first on line %d", before), "keep one")
			r.spoil(at.field)
			return ""
		}
		seen[name] = line
		if other, ok := r.at[at.field]; ok && !joined(at, other) {
			r.add(line, col, at.field, nil, faultf(ErrDuplicate, "is given in two files, first at %v", other), "keep one")
			r.spoil(at.field)
			return ""
		}
		r.at[at.field] = at
		k.read(r, at, k.want, v)
		return ""
	}
	fix := "want " + orList(names)
	if before, _, colon := strings.Cut(name, ":"); colon && slices.Contains(names, before) {
		meant, fix = before, "put a blank behind the colon"
	} else if meant = nearest(name, names); meant != "" {
		fix = "did you mean " + meant + "?"
	}
	// Not spoiled: a key too many says nothing about the others.
	r.add(line, col, p.key(quote(name), nil).field, name, faultf(ErrUnknownKey, "is not a known key"), fix)
	return meant
}

// joined reports whether two files may both give a field: of a mapping each its
// part, and each its policies.
func joined(a, b place) bool { return a.field == "policies" || isMapping(a.node) && isMapping(b.node) }

func isMapping(n ast.Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

func showMapping[T any](keys []key[T], v *T) shown {
	s := shown{entries: make([]entry, len(keys))}
	for i, k := range keys {
		s.entries[i] = entry{name: k.name, about: k.about, example: k.example, value: k.show(v)}
	}
	return s
}

// orList returns "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// nearest returns the word that a reader would take name for: the one with the
// fewest changed, added and lost letters, if those are at most a third.
func nearest(name string, words []string) string {
	const longest = 32 // letters; no key is near that, and the cost is quadratic
	if len(name) > longest {
		return ""
	}
	best, least := "", len(name)/3+1
	for _, w := range words {
		if d := distance(name, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is the number of single letters to change, add or remove, and of
// neighbours to swap, between a and b (Levenshtein, with swaps that nothing else
// is done to).
func distance(a, b string) int {
	var before []int // the row two above
	above, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above, row = above, row, slices.Clone(above)
	}
	return above[len(b)]
}
