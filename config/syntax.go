package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on the shape of a file, far above what the schema has. They keep the
// YAML parser, which recurses for depth and is quadratic in the number of keys
// of one mapping, from costing more than a moment.
const (
	maxDepth   = 32  // brackets within brackets, or list marks in a row
	maxKeys    = 256 // keys with no list entry or bracket between them
	maxRefused = 64  // uses of refused YAML before the rest is not looked at
)

// fixYAML is what to do about text that no YAML reader takes: what stands before
// the place is more often wrong than what stands there.
const fixYAML = "look here and on the line before for a quote, bracket, colon or indentation that does not fit"

// document returns the root of the only document, or nil where the text could
// not be read so far. Faults are in r.errs.
func (r *reader) document(data []byte) ast.Node {
	before := len(r.errs)
	if r.checkText(string(data)); len(r.errs) > before {
		return nil
	}
	file, err := r.parseYAML(string(data))
	if err != nil {
		var at interface {
			GetToken() *token.Token
			GetMessage() string
		}
		if errors.As(err, &at) {
			r.faultAt(at.GetToken(), "not YAML: "+at.GetMessage(), fixYAML)
		} else {
			r.faultAt(nil, "not YAML: "+err.Error(), fixYAML)
		}
		return nil
	}
	if file == nil {
		return nil
	}
	for _, doc := range file.Docs {
		if _, ok := doc.Body.(*ast.DirectiveNode); !ok && doc.Body != nil {
			return doc.Body
		}
	}
	if len(r.errs) == before {
		r.add(1, 1, "", nil, faultf(ErrMissing, "the file has no settings in it"),
			"want at least policies; without a file memagent observes everything")
	}
	return nil
}

// parseYAML keeps a fault of the YAML library from ending the daemon: a config
// is also read while memagent runs. A nil file without an error means that the
// tokens were refused.
func (r *reader) parseYAML(src string) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, fmt.Errorf("the parser failed: %v", p)
		}
	}()
	tokens := lexer.Tokenize(src)
	if !r.checkTokens(tokens) {
		return nil, nil
	}
	// Comments and duplicate keys: the first are not needed, the second are
	// reported by the schema, all of them.
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// checkText refuses what no YAML tool shows: bytes that are not text and tabs.
func (r *reader) checkText(src string) {
	if strings.HasPrefix(src, "\ufeff") {
		r.add(1, 1, "", nil, faultf(ErrSyntax, "the file starts with a byte order mark"), "save it as UTF-8 without one")
		return
	}
	number := 0
	for line := range strings.SplitSeq(src, "\n") {
		number++
		line = strings.TrimSuffix(line, "\r")
		code := line // up to a comment
		if i := strings.Index(" "+line, " #"); i >= 0 {
			code = line[:i]
		}
		col := 0
		for i, c := range line {
			col++
			if c == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd") {
				r.add(number, col, "", nil, faultf(ErrSyntax, "the byte 0x%02x is not UTF-8", line[i]), "save the file as UTF-8")
				return // one is enough: it is some other kind of file
			}
			if c == '\t' && i < len(code) {
				r.add(number, col, "", nil, faultf(ErrSyntax, "a tab character"), "want blanks")
				break
			}
			if c != '\t' && (unicode.IsControl(c) || c == '\ufeff') {
				r.add(number, col, "", nil, faultf(ErrSyntax, "the control character %U", c), "remove it")
				break
			}
		}
	}
}

// refusedTokens is YAML that lets a file mean something else than it shows.
var refusedTokens = map[token.Type]struct{ what, fix string }{
	token.AnchorType:      {"an anchor (&)", "write the value where it is used"},
	token.AliasType:       {"an alias (*)", "write the value here; put a text that starts with * in quotes"},
	token.MergeKeyType:    {"a merge key (<<)", "write the keys here"},
	token.TagType:         {"a tag (!)", "remove it; put a text that starts with ! in quotes"},
	token.DirectiveType:   {"a directive (%)", "remove it; put a text that starts with % in quotes"},
	token.LiteralType:     {"block text (|)", "write the value on one line"},
	token.FoldedType:      {"block text (>)", "write the value on one line"},
	token.MappingKeyType:  {"a complex key (?)", "write key: value"},
	token.DocumentEndType: {"the end mark of a document (...)", "remove it and what is behind it"},
}

// checkTokens reports every use of refused YAML. It returns false where the
// shape of the file is out of bounds and must not be handed on.
func (r *reader) checkTokens(tokens token.Tokens) bool {
	depth, row, keys, refused := 0, 0, 0, 0
	first := true // no token of a document yet
	for i, t := range tokens {
		switch t.Type {
		case token.CommentType:
			continue
		case token.MappingStartType, token.SequenceStartType:
			depth, keys = depth+1, 0
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.MappingValueType:
			keys++
			r.checkColon(tokens, i)
		case token.DocumentHeaderType:
			if !first {
				r.faultAt(t, "a second YAML document begins", "want one document in a file")
			}
		}
		if t.Type == token.SequenceEntryType || t.Type == token.MappingKeyType {
			row, keys = row+1, 0
		} else {
			row = 0
		}
		if no, ok := refusedTokens[t.Type]; ok {
			refused++
			r.faultAt(t, no.what+" is not taken", no.fix)
		}
		switch {
		case depth > maxDepth || row > maxDepth:
			r.faultAt(t, "brackets or lists are nested too deeply", "is this the right file?")
			return false
		case keys > maxKeys:
			r.faultAt(t, fmt.Sprintf("more than %d keys in a row", maxKeys), "is this the right file?")
			return false
		case refused > maxRefused:
			return false
		}
		first = false
	}
	return true
}

// checkColon refuses a value right behind its colon, which the parser takes
// between brackets but YAML reads as one word.
func (r *reader) checkColon(tokens token.Tokens, i int) {
	if i+1 == len(tokens) {
		return
	}
	t, next := tokens[i], tokens[i+1]
	switch next.Type {
	case token.CollectEntryType, token.MappingEndType, token.SequenceEndType:
		return
	}
	if a, b := t.Position, next.Position; a != nil && b != nil && a.Line == b.Line && b.Column == a.Column+1 {
		r.faultAt(t, "no blank behind the colon", "want key: value")
	}
}

func (r *reader) faultAt(t *token.Token, what, fix string) {
	line, col := tokenPlace(t)
	r.add(line, col, "", nil, faultf(ErrSyntax, "%s", what), fix)
}

func tokenPlace(t *token.Token) (line, col int) {
	if t == nil || t.Position == nil {
		return 1, 1
	}
	return t.Position.Line, t.Position.Column
}
