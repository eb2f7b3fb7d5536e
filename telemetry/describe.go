package telemetry

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Describe says in one sentence what was seen, decided and done: the only
// prose about a decision, on which the log, the terminal and explanations are
// built.
func (r *Record) Describe() string {
	if r.Err != nil {
		switch {
		case errors.Is(r.Err, ErrUnwatched):
			return "no policy matches it any more"
		case errors.Is(r.Err, memcg.ErrGone):
			return "the cgroup is gone"
		}
		return "could not be read: " + r.Err.Error()
	}
	var b strings.Builder
	b.WriteString(r.Verdict)
	b.WriteString(" at ")
	b.WriteString(describeBytes(r.Current))
	if n, ok := r.refaults(); ok && r.Elapsed > 0 {
		fmt.Fprintf(&b, ", %s refaults/s", trimFloat(float64(n)/r.Elapsed.Seconds()))
	}
	if us, ok := r.Stall.Get(); ok && r.Elapsed > 0 {
		fmt.Fprintf(&b, ", stalled %s", Percent(float64(us)/float64(r.Elapsed.Microseconds())))
	}
	b.WriteString(": ")
	switch {
	case r.Want == 0:
		b.WriteString("leave it alone")
	case r.Acted:
		fmt.Fprintf(&b, "reclaim %s", Bytes(r.Want))
	default:
		fmt.Fprintf(&b, "would reclaim %s", Bytes(r.Want))
	}
	if r.OlderThan > 0 && r.Want > 0 {
		fmt.Fprintf(&b, " not used for %s", r.OlderThan)
	}
	if v, ok := r.Swappiness.Get(); ok && r.Want > 0 {
		if v == memcg.SwappinessMax {
			b.WriteString(" of anon only")
		} else {
			fmt.Fprintf(&b, " with swappiness %d", v)
		}
	}
	r.describeDraw(&b)
	if r.Rule != "" {
		fmt.Fprintf(&b, " (%s", r.Rule)
		if r.Clipped != "" {
			fmt.Fprintf(&b, ", clipped by %s", r.Clipped)
		}
		if r.Verdict == "unknown" {
			r.describeAbsent(&b)
		}
		b.WriteString(")")
	}
	if r.Held != "" && r.Want > 0 {
		fmt.Fprintf(&b, "; held back: %s", r.Held)
	}
	r.describeMems(&b)
	if r.Done != nil {
		b.WriteString("; the request before ")
		b.WriteString(DescribeOutcome(r.Done))
	}
	r.Lending.describe(&b)
	if r.Guarded {
		b.WriteString("; memory.swap.max is held against a stream")
	}
	if r.GuardHeld != "" {
		fmt.Fprintf(&b, "; the swap guard waits: %s", r.GuardHeld)
	}
	for i := range r.Settings {
		r.Settings[i].describe(&b)
	}
	return b.String()
}

// describeAbsent names the figures for want of which nothing could be decided,
// the first few of them.
func (r *Record) describeAbsent(b *strings.Builder) {
	const most = 3
	n := 0
	for _, t := range r.Because {
		if t.Known {
			continue
		}
		switch n++; {
		case n == 1:
			b.WriteString(": no ")
		case n <= most:
			b.WriteString(", ")
		default:
			b.WriteString(" and more")
			return
		}
		b.WriteString(t.Name)
	}
}

func (r *Record) refaults() (uint64, bool) {
	return memcg.SumKnown(r.RefaultAnon, r.RefaultFile).Get()
}

// DescribeOutcome says what came of a request, judged by counters.
func DescribeOutcome(o *memcg.Outcome) string {
	var b strings.Builder
	took := o.Reclaimed
	if o.Via == memcg.ViaDAMON { // pgsteal does not count it
		took = o.Shrunk
	}
	fmt.Fprintf(&b, "took %s of %s", describeBytes(took), Bytes(o.Request.Bytes))
	if !o.Request.Nodes.Empty() {
		fmt.Fprintf(&b, " on nodes %s", o.Request.Nodes)
	}
	if v, ok := o.SwapOut.Get(); ok && v > 0 {
		fmt.Fprintf(&b, ", %s of it to swap", Bytes(v))
	}
	if v, ok := o.Demoted.Get(); ok && v > 0 {
		fmt.Fprintf(&b, ", %s only moved to a slower node", Bytes(v))
	}
	fmt.Fprintf(&b, " in %s", o.Took.Round(time.Millisecond))
	switch {
	case o.Err == nil:
	case errors.Is(o.Err, memcg.ErrPartial):
		b.WriteString(" (the kernel found no more)")
	case errors.Is(o.Err, memcg.ErrGone):
		b.WriteString(" (the cgroup went away)")
	default:
		fmt.Fprintf(&b, " (%v)", o.Err)
	}
	if o.Refused != nil {
		fmt.Fprintf(&b, ", through %s since %v", o.Via, o.Refused)
	}
	return b.String()
}

func describeBytes(f memcg.Field) string {
	if v, ok := f.Get(); ok {
		return Bytes(v)
	}
	return "an unknown size (" + f.State().String() + ")"
}

// Bytes renders a size for people, in binary units with three significant
// digits: "0 B", "512 KiB", "1.25 GiB".
func Bytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, i := float64(n)/1024, 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return trimFloat(v) + " " + units[i:i+1] + "iB"
}

// Percent renders a fraction for people: 0.00123 is "0.123%".
func Percent(fraction float64) string { return trimFloat(fraction*100) + "%" }

// trimFloat prints three significant digits and no exponent. What is not a
// number prints as "?".
func trimFloat(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	a := math.Abs(v)
	digits := 0
	switch {
	case a == 0 || a >= 99.95:
	case a >= 9.995:
		digits = 1
	case a >= 0.9995:
		digits = 2
	default:
		digits = 3
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
