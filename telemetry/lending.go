package telemetry

import (
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Lending is how a loan of memory to a cgroup stands, and what was decided about
// it. Sizes are bytes.
type Lending struct {
	On   bool   // the policy lends; else nothing below means anything
	Base uint64 // the operator's memory.high, 0 where there is no limit
	Lent uint64 // by how much memory.high is above it
	Used uint64 // of these, what memory.current takes
	Pool uint64 // what the host could lend it now

	// Rule that fired, in kebab-case: lend, lend-growth, trim, rescue, recall-short,
	// recall-idle, recall-futile; "" for none. High is the memory.high it asks
	// for, 0 for none or for the base. Held is why no more is lent, or why what
	// was decided is not done.
	Rule string
	High uint64
	Held string

	// Before and Now are refaults a second: when the loan was made, and since
	// the last sample.
	Before, Now float64
	// What taking back has cost so far, or the last time.
	Recalled, RecalledToSwap uint64
	RecallTook               time.Duration
}

// describe says how the loan stands in a phrase, nothing where there is none.
func (l *Lending) describe(b *strings.Builder) {
	if !l.On || l.Lent == 0 && l.Rule == "" && l.Held == "" {
		return
	}
	b.WriteString("; ")
	if l.Lent > 0 {
		fmt.Fprintf(b, "%s lent above %s, %s of it used", Bytes(l.Lent), Bytes(l.Base), Bytes(l.Used))
		if l.Before > 0 {
			fmt.Fprintf(b, ", refaults/s %s before and %s now", trimFloat(l.Before), trimFloat(l.Now))
		}
	} else {
		b.WriteString("nothing lent")
	}
	switch {
	case l.High > 0:
		fmt.Fprintf(b, ", %s: memory.high to %s", l.Rule, Bytes(l.High))
	case l.Rule != "":
		fmt.Fprintf(b, ", %s", l.Rule)
	}
	if l.Held != "" {
		fmt.Fprintf(b, " (%s)", l.Held)
	}
	if l.Recalled > 0 {
		fmt.Fprintf(b, ", %s taken back in %s", Bytes(l.Recalled), l.RecallTook.Round(time.Millisecond))
		if l.RecalledToSwap > 0 {
			fmt.Fprintf(b, ", %s of it to swap", Bytes(l.RecalledToSwap))
		}
	}
}

// MarshalZerologObject writes the loan.
func (l *Lending) MarshalZerologObject(e *zerolog.Event) {
	e.Uint64("base", l.Base).Uint64("lent", l.Lent).Uint64("used", l.Used).Uint64("pool", l.Pool).
		Float64("refaults_before", l.Before).Float64("refaults_now", l.Now)
	if l.Rule != "" {
		e.Str("rule", l.Rule)
	}
	if l.High > 0 {
		e.Uint64("high", l.High)
	}
	if l.Held != "" {
		e.Str("held", l.Held)
	}
	if l.RecallTook > 0 {
		e.Uint64("recalled", l.Recalled).Uint64("recalled_to_swap", l.RecalledToSwap).Int64("recall_us", l.RecallTook.Microseconds())
	}
}
