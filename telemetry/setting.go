package telemetry

import (
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

// Setting is what came of writing a knob, through the journal.
type Setting struct {
	Knob  memcg.Knob
	Value string // asked for; where the operator's was to be put back, that one
	Why   string
	// Outcome in lower-case words: written, unchanged, put back, waiting, ...
	Outcome string
	Found   string // in the knob before, "" where it was not read
	Now     string // in the knob after, "" where it was not read back
	// InFlight: the value holds and the kernel still works on what follows.
	InFlight bool
	Took     time.Duration
	Err      error
}

// describe says what came of it in a phrase.
func (s *Setting) describe(b *strings.Builder) {
	fmt.Fprintf(b, "; %s to %s for %s: ", s.Knob, limitText(s), s.Why)
	switch {
	case s.Err != nil:
		fmt.Fprintf(b, "%v", s.Err)
	case s.Outcome == "waiting" || s.Outcome == "yielding":
		fmt.Fprintf(b, "%s, somebody else wrote %q", s.Outcome, s.Found)
	default:
		b.WriteString(s.Outcome)
	}
}

// limitText is the value for people.
func limitText(s *Setting) string {
	var n uint64
	if s.Knob == memcg.KnobMems {
		return s.Value
	}
	if _, err := fmt.Sscanf(s.Value, "%d", &n); err != nil {
		return s.Value
	}
	return Bytes(n)
}

type settings []Setting

// MarshalZerologArray writes each setting as an object.
func (list settings) MarshalZerologArray(a *zerolog.Array) {
	for _, s := range list {
		d := zerolog.Dict().Str("knob", string(s.Knob)).Str("value", s.Value).Str("why", s.Why).
			Str("outcome", s.Outcome).Str("found", s.Found).Str("now", s.Now).Int64("took_us", s.Took.Microseconds())
		if s.InFlight {
			d.Bool("in_flight", true)
		}
		if s.Err != nil {
			d.Str("error", s.Err.Error())
		}
		a.Dict(d)
	}
}
