package controller

import (
	"errors"
	"iter"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/recording"
)

// tape records all that goes into a Core, so that a Player can have another one
// decide the same. What its caller only asks of a Core is not on it. A nil tape
// records nothing.
type tape struct {
	w       *recording.Writer
	started time.Time
	e       recording.Event // reused
	draws   noting
	list    []memcg.ID // reused
}

// RecordTo has all that goes into the core from now on recorded. now is the time
// that NewCore was given, before anything else was; DrawFrom must have been
// called, if it is to be.
func (c *Core) RecordTo(w *recording.Writer, now time.Time) {
	c.tape = &tape{w: w, started: now}
	if c.nodes.from != nil {
		c.tape.draws.from = c.nodes.from
		c.nodes.from = &c.tape.draws
	}
	c.describer = c.tape.hear(c.describer)
	c.tape.configured(c, now)
}

// noting keeps the numbers that are drawn.
type noting struct {
	from  numapolicy.Source
	drawn []uint64
}

// Uint64N draws.
func (n *noting) Uint64N(most uint64) uint64 {
	v := n.from.Uint64N(most)
	n.drawn = append(n.drawn, v)
	return v
}

func (t *tape) event(k recording.Kind, now time.Time) *recording.Event {
	_, zone := now.Zone()
	t.e.Kind, t.e.At, t.e.Wall, t.e.Zone = k, now.Sub(t.started), now.UnixNano(), zone
	return &t.e
}

func (t *tape) configured(c *Core, now time.Time) {
	if t == nil {
		return
	}
	e := t.event(recording.Configured, now)
	e.Config = recording.Config{Text: c.cfg.Describe(), Mode: string(c.mode), Self: c.self, Draws: t.draws.from != nil}
	t.w.Write(e)
}

// rested records a cool-down that a cgroup goes on with.
func (t *tape) rested(d journal.Cooldown, now time.Time) {
	if t == nil {
		return
	}
	e := t.event(recording.Rested, now)
	e.Cgroup, e.Rest = d.Cgroup, recording.Rest{Why: d.Why, Until: d.Until.Sub(t.started), Length: d.Length}
	t.w.Write(e)
}

// tracking notes which of a list of cgroups are watched before it is taken in.
func (t *tape) tracking(c *Core, all []memcg.ID) {
	if t == nil {
		return
	}
	t.list = t.list[:0]
	for _, id := range all {
		if _, watched := c.cgroups[id]; watched {
			t.list = append(t.list, id)
		}
	}
}

// tracked records a list of cgroups after it was taken in: those of it that were
// watched before or are now. With the others a core does nothing.
func (t *tape) tracked(c *Core, all []memcg.ID, complete bool, now time.Time) {
	if t == nil {
		return
	}
	before := make(map[memcg.ID]bool, len(t.list))
	for _, id := range t.list {
		before[id] = true
	}
	for _, id := range all {
		if _, watched := c.cgroups[id]; watched && !before[id] {
			t.list = append(t.list, id)
		}
	}
	e := t.event(recording.Tracked, now)
	e.Complete, e.Cgroups = complete, t.list
	t.w.Write(e)
}

func (t *tape) sawHost(h *memcg.HostSample, now time.Time) {
	if t == nil {
		return
	}
	e := t.event(recording.HostSeen, now)
	e.Host = *h
	t.w.Write(e)
}

// looking records observations as they come.
func (t *tape) looking(obs iter.Seq[Observation], now time.Time) iter.Seq[Observation] {
	if t == nil {
		return obs
	}
	t.draws.drawn = t.draws.drawn[:0]
	return func(yield func(Observation) bool) {
		for ob := range obs {
			e := t.event(recording.Looked, now)
			e.Cgroup, e.Err, e.Glance = ob.ID, ob.Err, ob.Current
			if ob.Sample != nil {
				e.Sample = *ob.Sample
			}
			e.Ages, e.AgesErr, e.Parent, e.ParErr = ob.Ages, ob.AgesErr, ob.ParentMems, ob.ParentErr
			t.w.Write(e)
			if !yield(ob) {
				return
			}
		}
	}
}

func (t *tape) stepped(noKnobs string, done []Result, slots int, now time.Time) {
	if t == nil {
		return
	}
	e := t.event(recording.Stepped, now)
	e.NoKnobs, e.Slots, e.Draws, e.Done = noKnobs, slots, t.draws.drawn, e.Done[:0]
	for i := range done {
		e.Done = append(e.Done, t.result(&done[i]))
	}
	t.w.Write(e)
}

func (t *tape) cameBack(r *Result, now time.Time) {
	if t == nil {
		return
	}
	e := t.event(recording.CameBack, now)
	e.Done = append(e.Done[:0], t.result(r))
	t.w.Write(e)
}

func (t *tape) heard(id memcg.ID, now time.Time) {
	if t == nil {
		return
	}
	e := t.event(recording.Heard, now)
	e.Cgroup = id
	t.w.Write(e)
}

// Marks of errors of the journal, by which decisions differ.
const (
	markJournal    = iota // it could not be written
	markNotGranted        // the kernel took a value and holds to another
)

func (t *tape) result(d *Result) recording.Result {
	err := d.Err
	if err != nil && journalTrouble(err) {
		err = recording.Mark(err, markJournal)
	}
	if err != nil && errors.Is(d.Err, journal.ErrNotGranted) {
		err = recording.Mark(err, markNotGranted)
	}
	r := recording.Result{
		Reclaim: d.Reclaim, Age: d.Age, Outcome: d.Outcome, Took: d.Took, Err: err,
		Setting: recording.Setting(d.Setting),
		Set: recording.Set{
			Outcome: uint8(d.Set.Outcome), Owner: uint8(d.Set.Owner), Found: d.Set.Found, Now: d.Set.Now, InFlight: d.Set.InFlight,
		},
		Undone: recording.Undone{How: uint8(d.Undone.How), Before: d.Undone.Before, Now: d.Undone.Now, InFlight: d.Undone.InFlight},
	}
	if !d.Set.Until.IsZero() {
		r.Set.Waits, r.Set.Until = true, d.Set.Until.Sub(t.started)
	}
	return r
}

// replayed gives back what was recorded of a result.
func replayed(r *recording.Result, started time.Time) Result {
	d := Result{
		Request: Request{Reclaim: r.Reclaim, Age: r.Age, Setting: Setting(r.Setting)},
		Outcome: r.Outcome, Took: r.Took, Err: r.Err,
		Set: journal.Result{
			Outcome: journal.Outcome(r.Set.Outcome), Owner: journal.Owner(r.Set.Owner), Found: r.Set.Found, Now: r.Set.Now, InFlight: r.Set.InFlight,
		},
		Undone: journal.Undone{How: journal.How(r.Undone.How), Now: r.Undone.Now, InFlight: r.Undone.InFlight},
	}
	d.Undone.Before = r.Undone.Before
	if r.Set.Waits {
		d.Set.Until = started.Add(r.Set.Until)
	}
	if e, ok := errors.AsType[*recording.Error](r.Err); ok && (e.Marked(markJournal) || e.Marked(markNotGranted)) {
		d.Err = &ofJournal{e}
	}
	return d
}

// ofJournal is a recorded error of the journal.
type ofJournal struct{ kept *recording.Error }

// Error returns the text that was recorded.
func (e *ofJournal) Error() string { return e.kept.Text }

// Is reports whether the recorded error was of the kind target.
func (e *ofJournal) Is(target error) bool { return e.kept.Is(target) }

// Unwrap returns what the error was, to ask for.
func (e *ofJournal) Unwrap() (list []error) {
	if e.kept.Marked(markJournal) {
		list = append(list, &journal.Error{Err: e.kept})
	}
	if e.kept.Marked(markNotGranted) {
		list = append(list, journal.ErrNotGranted)
	}
	return list
}
