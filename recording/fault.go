package recording

import (
	"errors"
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// Error is an error that was recorded: its text, and which kinds it was. It is
// those kinds for errors.Is.
type Error struct {
	Text  string
	Kinds uint64 // a bit for each of the kinds below, and Own for what others put there
}

// Kinds from bit 32 on belong to the room that records: what an error of its own
// is, as it likes.
const Own = 32

var kinds = [...]error{
	memcg.ErrGone, memcg.ErrUnsupported, memcg.ErrPartial, memcg.ErrDenied, memcg.ErrInvalid, memcg.ErrReadOnly,
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Is reports whether the recorded error was of the kind target.
func (e *Error) Is(target error) bool {
	for i, kind := range kinds {
		if target == kind {
			return e.Kinds&(1<<i) != 0
		}
	}
	return false
}

// keep returns an error as it is recorded, with marks of the caller's own.
func keep(err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if ok {
		return e
	}
	e = &Error{Text: err.Error()}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			e.Kinds |= 1 << i
		}
	}
	return e
}

// Mark returns err as it is recorded, with bit n, below 32, of the caller's own
// kinds set. nil stays nil.
func Mark(err error, n uint) error {
	if err == nil {
		return nil
	}
	e := *keep(err)
	e.Kinds |= 1 << (Own + n)
	return &e
}

// Marked reports whether bit n of the caller's own kinds is set.
func (e *Error) Marked(n uint) bool { return e.Kinds&(1<<(Own+n)) != 0 }

// What can be wrong with a recording.
var (
	// ErrNotRecording: the file is something else.
	ErrNotRecording = errors.New("not a recording of memagent")
	// ErrVersion: the file has a layout that this program does not know.
	ErrVersion = errors.New("a recording of another version")
	// ErrCut: the recording ends early. What came before it is good.
	ErrCut = errors.New("the recording is cut short")
	// ErrFull: the file has the size that it may have.
	ErrFull = errors.New("the recording is full")
	// ErrBehind: the disk did not keep up.
	ErrBehind = errors.New("the recording could not be written as fast as it came")
)

func cut(events uint64, why error) error {
	return fmt.Errorf("%w after %d events: %w", ErrCut, events, why)
}
