package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What can be wrong with a config as a whole. Errors from Load and Parse wrap
// exactly one of them.
var (
	// ErrNoConfig: there is no file of that name. It also is fs.ErrNotExist.
	ErrNoConfig = errors.New("no config file")
	// ErrUnreadable: there is something of that name, but it cannot be read as
	// a config file: a directory, a FIFO, no permission, larger than MaxSize.
	ErrUnreadable = errors.New("config file cannot be read")
	// ErrBadConfig: the file was read and is refused; the error is an Errors.
	ErrBadConfig = errors.New("bad config")
)

// What can be wrong at one place of a file. Each Error of an Errors wraps
// exactly one of them.
var (
	// ErrSyntax: not YAML, or a part of YAML that is refused.
	ErrSyntax = errors.New("syntax")
	// ErrUnknownKey: a key that the schema does not have there.
	ErrUnknownKey = errors.New("unknown key")
	// ErrDuplicate: a key, a policy name or a path that was there before.
	ErrDuplicate = errors.New("duplicate")
	// ErrMissing: a required key, or a key without a value.
	ErrMissing = errors.New("missing")
	// ErrType: a value of another kind than wanted, a list for a size.
	ErrType = errors.New("wrong type")
	// ErrValue: a value of the right kind that cannot be taken: a bad unit, out
	// of range, not one of the words.
	ErrValue = errors.New("bad value")
	// ErrConflict: values that are fine by themselves but not together.
	ErrConflict = errors.New("conflict")
)

// Error is one fault of a config file.
type Error struct {
	File string // as the caller named it
	Line int    // from 1; 0: the fault has no place in the text
	Col  int    // in characters, from 1; 0 with Line
	// Field is the place in the schema, "policies[0].swappiness". Empty: the
	// file as a whole.
	Field string
	Value any    // as written; nil where there is none
	Err   error  // what is wrong; wraps one kind
	Fix   string // what was wanted, or what to do; may be empty
}

// Error returns "file:line:col: field: what is wrong; what is wanted".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	b.WriteString(": " + e.Err.Error())
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errors is every fault of the files of one config, by file and position. It is never empty when
// returned as an error.
type Errors []*Error

// Error returns one line for each fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Is reports whether target is ErrBadConfig.
func (e Errors) Is(target error) bool { return target == ErrBadConfig }

// Unwrap returns the faults, so that errors.Is finds the kind of any of them.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

func (e Errors) sort(files []string) {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Field, b.Field))
	})
}

// fault says what is wrong in words and keeps the kind for errors.Is.
type fault struct {
	kind error
	text string
}

func faultf(kind error, format string, args ...any) *fault {
	return &fault{kind, fmt.Sprintf(format, args...)}
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }
