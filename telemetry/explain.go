package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Explain tells a decision in full, a sentence or two a line: what the cgroup
// had, what that means, which rule followed from which figures, what bounded
// it and what came of it. It is for one cgroup at leisure; Describe is for a
// line among many.
func (r *Record) Explain() []string {
	who := r.explainContainer()
	if r.Err != nil {
		if r.gone() {
			return append(who, "The cgroup is gone; what it asked for and what was taken from it is over.")
		}
		return append(who, "It could not be read, so nothing was decided: "+r.Err.Error()+".",
			"It is left alone for a growing number of ticks, until it can be read again.")
	}
	lines := append(who, r.explainHoldings()...)
	lines = append(lines, r.explainCost()...)
	verdict := "Verdict: " + r.Verdict + "."
	if r.Meaning != "" {
		verdict += " " + r.Meaning
	}
	lines = append(lines, verdict)
	if text := explainTerms(r.Because); text != "" {
		lines = append(lines, "Figures that decided: "+text+".")
	}
	lines = append(lines, r.explainRules()...)
	lines = append(lines, r.explainWish()...)
	if r.Done != nil {
		lines = append(lines, "The request before "+DescribeOutcome(r.Done)+".")
	}
	for _, describe := range r.besides() {
		var b strings.Builder
		describe(&b)
		if b.Len() > 0 {
			lines = append(lines, "Also: "+strings.TrimPrefix(b.String(), "; ")+".")
		}
	}
	return lines
}

// besides returns what describes that which a record tells beside the wish.
func (r *Record) besides() []func(*strings.Builder) {
	list := []func(*strings.Builder){r.Lending.describe}
	for i := range r.Settings {
		list = append(list, r.Settings[i].describe)
	}
	return list
}

func (r *Record) explainHoldings() []string {
	if r.Glance {
		return []string{fmt.Sprintf("It holds %s. This was a glance between two full looks, on the verdict of the look before.", describeBytes(r.Current))}
	}
	lines := []string{fmt.Sprintf("It holds %s: %s of anon and %s of file; in swap it has %s.",
		describeBytes(r.Current), describeBytes(r.Anon), describeBytes(r.File), describeBytes(r.Swap))}
	if len(r.Nodes) > 1 {
		var parts []string
		for _, n := range r.Nodes {
			if n.Anon != memcg.Value(0) || n.File != memcg.Value(0) {
				parts = append(parts, fmt.Sprintf("%s of anon and %s of file on node %d", describeBytes(n.Anon), describeBytes(n.File), n.Node))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, "Of that, "+strings.Join(parts, "; ")+".")
		}
	}
	return lines
}

func (r *Record) explainCost() []string {
	if r.Elapsed <= 0 {
		if r.Glance {
			return nil
		}
		return []string{"There is no earlier look to compare with, so no rate is known."}
	}
	var lines []string
	since := r.Elapsed.Round(100 * time.Millisecond)
	anon, okA := r.RefaultAnon.Get()
	file, okF := r.RefaultFile.Get()
	switch {
	case okA && okF:
		lines = append(lines, fmt.Sprintf("In the %s before, %d pages of anon and %d of file came back after they had been evicted.", since, anon, file))
	default:
		lines = append(lines, fmt.Sprintf("How many evicted pages came back in the %s before is not known: anon %s, file %s.", since, stateOr(r.RefaultAnon), stateOr(r.RefaultFile)))
	}
	text := "Its stall on memory (PSI some) is not known: " + stateOr(r.Stall)
	if us, ok := r.Stall.Get(); ok {
		text = "Its tasks stood still for memory " + Percent(float64(us)/float64(r.Elapsed.Microseconds())) + " of that time"
	}
	if r.Cost.Known {
		text += ", and bringing pages back cost " + trimFloat(r.Cost.Value) + "% of it"
	}
	return append(lines, text+".")
}

func stateOr(f memcg.Field) string {
	if f.Known() {
		return f.String()
	}
	return f.State().String()
}

// explainTerms lists figures in their units.
func explainTerms(terms []memcg.Term) string {
	parts := make([]string, len(terms))
	for i, t := range terms {
		parts[i] = t.Name + " " + termText(t)
	}
	return strings.Join(parts, ", ")
}

func termText(t memcg.Term) string {
	switch {
	case !t.Known && (t.Unit == "missing" || t.Unit == "unsupported" || t.Unit == "invalid"):
		return t.Unit
	case !t.Known:
		return "unknown"
	case t.Unit == "bytes" && t.Value >= 0 && t.Value < 1<<63:
		return Bytes(uint64(t.Value))
	case t.Unit == "bytes/s" && t.Value >= 0 && t.Value < 1<<63:
		return Bytes(uint64(t.Value)) + "/s"
	case t.Unit == "%":
		return trimFloat(t.Value) + "%"
	}
	return strings.TrimSpace(trimFloat(t.Value) + " " + t.Unit)
}

// explainWish tells what was asked for, what bounded it and whether it was
// done.
func (r *Record) explainWish() []string {
	if r.Want == 0 {
		text := "So nothing is asked of it"
		if r.Clipped != "" {
			text += "; the bound " + bound(r.Clipped, "left nothing of the wish")
		}
		var b strings.Builder
		r.describeMems(&b)
		return []string{text + b.String() + "."}
	}
	var b strings.Builder
	verb := "would ask"
	if r.Acted {
		verb = "asked"
	}
	fmt.Fprintf(&b, "So memagent %s the kernel to take %s", verb, Bytes(r.Want))
	r.describeDraw(&b)
	if r.OlderThan > 0 {
		fmt.Fprintf(&b, ", of memory not used for %s", r.OlderThan)
	}
	if v, ok := r.Swappiness.Get(); ok {
		if v == memcg.SwappinessMax {
			b.WriteString(", of anon only")
		} else {
			fmt.Fprintf(&b, ", with swappiness %d", v)
		}
	} else {
		b.WriteString(", with the swappiness of the host")
	}
	if r.Floor > 0 {
		fmt.Fprintf(&b, ", and not to go below %s", Bytes(r.Floor))
	}
	r.describeMems(&b)
	b.WriteString(".")
	lines := []string{b.String()}
	if r.Clipped != "" {
		lines = append(lines, "It wanted more; the bound "+bound(r.Clipped, "clipped it")+".")
	}
	if r.Held != "" {
		lines = append(lines, "It was not done: "+r.Held+".")
	}
	return lines
}

// ErrorKind names the memcg kind of an error in one word, for labels: gone,
// unsupported, partial, denied, invalid, read_only, or other.
func ErrorKind(err error) string {
	for _, k := range [...]struct {
		kind error
		name string
	}{
		{memcg.ErrGone, "gone"}, {memcg.ErrUnsupported, "unsupported"}, {memcg.ErrPartial, "partial"},
		{memcg.ErrDenied, "denied"}, {memcg.ErrInvalid, "invalid"}, {memcg.ErrReadOnly, "read_only"},
	} {
		if errors.Is(err, k.kind) {
			return k.name
		}
	}
	return "other"
}
