package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// appendEvery is how many samples pass between two tables where nothing can be redrawn.
const appendEvery = 10

// Screen draws samples: in place on a terminal, else one table after the other.
type Screen struct {
	// Out is where to draw, Redraw whether that is a terminal.
	Out    io.Writer
	Redraw bool
	// Title is printed once, above the table.
	Title string

	drawn   int // lines to go up before the next table
	samples int
	phase   string
	started bool
	end     *End
}

// Show draws one sample.
func (s *Screen) Show(raw json.RawMessage) error {
	var sample Sample
	if err := json.Unmarshal(raw, &sample); err != nil {
		return fmt.Errorf("reading a sample of the demonstration: %w", err)
	}
	if !s.started {
		s.started = true
		fmt.Fprintln(s.Out, s.Title)
	}
	if sample.End != nil {
		s.end = sample.End
		fmt.Fprint(s.Out, "\n"+sample.End.Text())
		return nil
	}
	if len(sample.Groups) == 0 {
		fmt.Fprintf(s.Out, "%s ...\n", sample.Phase)
		return nil
	}
	changed := sample.Phase != s.phase
	s.phase = sample.Phase
	s.samples++
	if !s.Redraw && !changed && s.samples%appendEvery != 0 {
		return nil
	}
	text := sample.Table()
	if s.Redraw && s.drawn > 0 {
		fmt.Fprintf(s.Out, "\x1b[%dA\x1b[J", s.drawn) // up, and clear to the end
	}
	fmt.Fprint(s.Out, text)
	s.drawn = strings.Count(text, "\n")
	return nil
}

// End is what came of it, nil as long as it is not over.
func (s *Screen) End() *End { return s.end }

// decisionWidth is the most of the agent's sentence a table shows, so that a line of it fits a
// terminal's line and redrawing counts right.
const decisionWidth = 76

// Table is a sample for people. Every line ends with a newline.
func (s Sample) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%3d s  %s\n", s.ElapsedMS/1000, s.Phase)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "cgroup\tresident\tanon\tfile\tswap\trefault/s\tPSI some\treclaimed\t")
	for _, g := range s.Groups {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%.0f\t%.2f %%\t%s\t\n", g.Cgroup,
			size(g.Resident), size(g.Anon), size(g.File), size(g.Swap), g.Refaults, g.Stalled, size(g.Reclaimed))
	}
	// A tabwriter on a strings.Builder cannot fail.
	_ = tw.Flush()
	for _, g := range s.Groups {
		if g.Decision != "" {
			fmt.Fprintf(&b, "  %s\n", cut(g.Decision, decisionWidth))
		}
	}
	return b.String()
}

// Text is the summary for people.
func (e End) Text() string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "cgroup\tresident before\tafter\tchange\t")
	for _, c := range []string{idle, busy} {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%+.0f %%\t\n", c, size(e.Before[c]), size(e.After[c]),
			100*(float64(e.After[c])/float64(e.Before[c])-1))
	}
	// A tabwriter on a strings.Builder cannot fail.
	_ = tw.Flush()
	fmt.Fprintf(&b, "one pass of %s over its memory: %.1f ms before, %.1f ms after\n", busy, e.PassBefore, e.PassAfter)
	share := func(ms int64) float64 { return 100 * float64(ms) / float64(e.AgentMS) }
	fmt.Fprintf(&b, "the agent took %d ms of CPU in %d s (%.2f %% of one CPU): %.2f %% in its own code, and %.2f %% in the kernel,\n"+
		"which takes and compresses memory in the time of whoever asks for it, and hands out counters\n",
		e.AgentCPUMS, e.AgentMS/1000, share(e.AgentCPUMS), share(e.AgentCPUMS-e.AgentKernelMS), share(e.AgentKernelMS))
	return b.String()
}

func size(n uint64) string { return fmt.Sprintf("%.0f MiB", float64(n)/mib) }

// cut shortens a text to a number of characters.
func cut(s string, n int) string {
	r := []rune(strings.ReplaceAll(s, "\n", " "))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-3]) + "..."
}
