package telemetry

import (
	"fmt"
	"io"
	"sort"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// Summary adds up the records of a run. It is a Sink; its numbers may be read
// when the loop has ended.
type Summary struct {
	Decisions uint64
	Actions   uint64 // requests handed to the kernel
	Reclaimed uint64 // bytes, by counters, without what only moved to slower nodes; what could not be measured is not in it
	// LentMost is the most that was lent at any time, Recalled what was taken
	// back by reclaim, and RecallTook how long that took; bytes and sums.
	LentMost, Recalled uint64
	RecallTook         time.Duration
	lent               uint64
	cgroups            map[memcg.ID]*cgroupSummary
	// Predicted, where not nil, is what observing predicts; somebody else feeds it.
	Predicted *Predictions
}

type cgroupSummary struct {
	path, policy, verdict       string
	first, last                 memcg.Field // memory.current
	wanted, reclaimed, refaults uint64
	actions                     uint64
	gone                        bool
	loan                        loanSoFar // of the last record
}

// loanSoFar is what a record says of a loan: bytes lent, and what taking back has cost.
type loanSoFar struct {
	lent, recalled uint64
	took           time.Duration
}

// maxGoneRows bounds what a long run remembers: with more cgroups than this,
// those that are gone lose their row and stay in the totals only.
const maxGoneRows = 256

// Record counts r.
func (s *Summary) Record(r *Record) {
	if r.Err == nil {
		s.Decisions++
	}
	c := s.cgroups[r.Cgroup]
	if c == nil {
		if s.cgroups == nil {
			s.cgroups = make(map[memcg.ID]*cgroupSummary)
		}
		c = &cgroupSummary{path: r.Cgroup.Path}
		s.cgroups[r.Cgroup] = c
	}
	if r.Policy != "" {
		c.policy = r.Policy
	}
	if r.Done != nil {
		if v, ok := r.Done.Freed().Get(); ok {
			s.Reclaimed += v
			c.reclaimed += v
		}
	}
	s.lending(c, r)
	if r.Err != nil {
		c.gone = r.gone()
		if c.gone && len(s.cgroups) > maxGoneRows {
			delete(s.cgroups, r.Cgroup)
		}
		return
	}
	c.verdict = r.Verdict
	if !c.first.Known() {
		c.first = r.Current
	}
	c.last = r.Current
	c.wanted += r.Want
	if n, ok := r.refaults(); ok {
		c.refaults += n
	}
	if r.Acted {
		s.Actions++
		c.actions++
	}
}

// lending counts what a record says of a loan. Costs of taking back are sums
// that begin anew with each time.
func (s *Summary) lending(c *cgroupSummary, r *Record) {
	if r.Glance || r.Err != nil && !r.gone() {
		return
	}
	was, now := c.loan, loanSoFar{r.Lending.Lent, r.Lending.Recalled, r.Lending.RecallTook}
	s.lent += now.lent - was.lent // wraps to what is right
	s.LentMost = max(s.LentMost, s.lent)
	if now.took < was.took {
		was.recalled, was.took = 0, 0
	}
	s.Recalled += now.recalled - min(was.recalled, now.recalled)
	s.RecallTook += now.took - min(was.took, now.took)
	c.loan = now
}

// Log writes the summary as one JSON line, message "summary". writes is the
// number of write(2) calls the host counted.
func (s *Summary) Log(l zerolog.Logger, writes uint64, ran time.Duration) {
	cost := OwnCost()
	predicted := Total(s.Predicted.ByPolicy())
	l.Info().
		Int64("elapsed_ms", ran.Milliseconds()).
		Int64("cpu_ms", cost.CPU.Milliseconds()).
		Uint64("rss_kib", cost.PeakRSS/1024).
		Int("cgroups", len(s.cgroups)).
		Uint64("decisions", s.Decisions).
		Uint64("actions", s.Actions).
		Uint64("reclaimed_bytes", s.Reclaimed).
		Uint64("predicted_resident_bytes", predicted.Resident).
		Uint64("predicted_most_bytes", predicted.Most).
		Uint64("lent_most_bytes", s.LentMost).
		Uint64("recalled_bytes", s.Recalled).
		Int64("recall_us", s.RecallTook.Microseconds()).
		Uint64("writes", writes).
		Msg("summary")
}

// maxSummaryRows keeps the table readable; the cgroups that changed most are
// shown.
const maxSummaryRows = 30

// WriteTable prints the run for people: one row for each cgroup, those that
// changed most first, and the totals.
func (s *Summary) WriteTable(w io.Writer, writes uint64, ran time.Duration) error {
	rows := make([]*cgroupSummary, 0, len(s.cgroups))
	for _, c := range s.cgroups {
		rows = append(rows, c)
	}
	sort.Slice(rows, func(i, j int) bool {
		if rows[i].moved() != rows[j].moved() {
			return rows[i].moved() > rows[j].moved()
		}
		return rows[i].path < rows[j].path
	})
	left := 0
	if len(rows) > maxSummaryRows {
		left = len(rows) - maxSummaryRows
		rows = rows[:maxSummaryRows]
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CGROUP\tPOLICY\tBEFORE\tAFTER\tASKED FOR\tRECLAIMED\tREFAULTS\tLAST VERDICT")
	for _, c := range rows {
		verdict := c.verdict
		if c.gone {
			verdict = "gone"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", Name(c.path), c.policy, shortBytes(c.first), shortBytes(c.last),
			Bytes(c.wanted), Bytes(c.reclaimed), c.refaults, verdict)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(w, "... and %d more cgroups\n", left)
	}
	if s.LentMost > 0 {
		fmt.Fprintf(w, "up to %s lent above memory.high at a time; %s taken back by reclaim, in %s\n",
			Bytes(s.LentMost), Bytes(s.Recalled), s.RecallTook.Round(time.Millisecond))
	}
	for _, text := range Predict(s.Predicted.ByPolicy()) {
		fmt.Fprintln(w, text)
	}
	cost := OwnCost()
	_, err := fmt.Fprintf(w, "%d decisions, %d requests, %s reclaimed, %d writes to the kernel, in %s; memagent itself used %s of CPU and %s of memory\n",
		s.Decisions, s.Actions, Bytes(s.Reclaimed), writes, ran.Round(time.Second), cost.CPU.Round(time.Millisecond), Bytes(cost.PeakRSS))
	return err
}

func (c *cgroupSummary) moved() uint64 { return c.reclaimed + c.wanted }

func shortBytes(f memcg.Field) string {
	if v, ok := f.Get(); ok {
		return Bytes(v)
	}
	return f.State().String()
}

// Cost is what a process has used so far.
type Cost struct {
	CPU     time.Duration // user and system
	PeakRSS uint64        // bytes
}

// OwnCost returns what this process has used, from getrusage(2). It cannot
// fail for the calling process.
func OwnCost() Cost {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return Cost{}
	}
	return Cost{
		CPU:     time.Duration(ru.Utime.Nano() + ru.Stime.Nano()),
		PeakRSS: uint64(ru.Maxrss) * 1024,
	}
}
