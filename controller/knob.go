package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// Keeper is all that the loop needs of a journal.Keeper: it writes knobs, and
// has what was there before on disk first.
type Keeper interface {
	Set(ctx context.Context, id memcg.ID, k memcg.Knob, value, why string) (journal.Result, error)
	Restore(ctx context.Context, id memcg.ID, k memcg.Knob) journal.Undone
	RestoreAll(ctx context.Context, within time.Duration) journal.Report
	Holds(id memcg.ID, k memcg.Knob) (journal.Entry, bool)
	Forget(id memcg.ID) error
	Cooldowns() []journal.Cooldown
	Remember(list []journal.Cooldown) error
}

// Setting asks for a knob of a cgroup to hold Value or, where Value is "", what
// its operator had set. The zero Setting asks for nothing.
type Setting struct {
	Cgroup memcg.ID
	Knob   memcg.Knob
	Value  string
	Why    string // in a few words, for the journal
	// By is a value to be written right before Value, "" for none.
	By string
}

const (
	// setters is how many knobs are written at once, by workers of their own: a
	// write that lowers a limit or moves memory may block for as long as that
	// takes, and must not keep reclaim from its workers.
	setters = 4
	// noJournal is why no knob is written where nobody could put it back.
	noJournal = "there is no journal to put it back by"
	// settingDeadline bounds the wait for one write. Where it is over, the value
	// holds already and the kernel goes on with what follows from it.
	settingDeadline = 2 * time.Second
	// settingRest is how long a knob is left alone after a write failed; it
	// doubles up to settingRestMost.
	settingRest     = 5 * time.Second
	settingRestMost = 5 * time.Minute
)

// knob is how one knob of a cgroup stands.
type knob struct {
	off      string // why it is not written any more, "" if it may be
	restTill time.Time
	failures uint
}

// knob returns the state of a knob.
func (cg *cgroup) knob(k memcg.Knob) *knob {
	if cg.knobs == nil {
		cg.knobs = make(map[memcg.Knob]*knob)
	}
	if cg.knobs[k] == nil {
		cg.knobs[k] = &knob{}
	}
	return cg.knobs[k]
}

// setHeld says why a knob of a cgroup cannot be written now, "" if it can.
func (c *Core) setHeld(now time.Time, cg *cgroup, k memcg.Knob) string {
	st := cg.knob(k)
	switch {
	case c.modeOf(cg) == telemetry.Observe:
		return "observe mode"
	case cg.held != "":
		return cg.held
	case c.noKnobs != "":
		return c.noKnobs
	case c.leaves(cg.id):
		return "what its policy before has set is being put back"
	case st.off != "":
		return st.off
	case now.Before(st.restTill):
		return string(k) + " is left alone for now"
	case c.setting[cg.id]:
		return "an earlier write to one of its files is still in flight"
	case len(c.setting) >= setters:
		return "all workers that write limits are busy"
	}
	return ""
}

// set hands out the writing of a knob and returns "", or says why it cannot. A
// law that is refused asks again at its next sample; nothing is queued. Laws
// that lower a limit or move memory see to it that no reclaim of the cgroup is
// in flight (see busy).
func (c *Core) set(now time.Time, cg *cgroup, k memcg.Knob, value, why string) (held string) {
	if held = c.setHeld(now, cg, k); held != "" {
		return held
	}
	c.setting[cg.id] = true
	c.settings = append(c.settings, Request{Setting: Setting{Cgroup: cg.id, Knob: k, Value: value, Why: why}})
	return ""
}

// release gives the workers the settings of this step.
func (c *Core) release() {
	c.requests = append(c.requests, c.settings...)
	c.settings = c.settings[:0]
}

// busy reports whether a request of any kind is in flight for a cgroup.
func (c *Core) busy(id memcg.ID) bool {
	_, reclaim := c.inFlight[id]
	return reclaim || c.setting[id]
}

// wasSet books what came of a setting.
func (c *Core) wasSet(now time.Time, d Result) {
	s := d.Setting
	delete(c.setting, s.Cgroup)
	cg, ok := c.cgroups[s.Cgroup]
	if !ok {
		return
	}
	cg.set = append(cg.set, d.told())
	cg.steered(now, d)
	st := cg.knob(s.Knob)
	err := d.Err
	switch {
	case err == nil:
		if st.failures > 0 {
			c.notify.Clear(string(s.Knob)+" "+s.Cgroup.Path, "this file of the cgroup can be written again")
		}
		if d.Set.Outcome == journal.Written || d.Set.Outcome == journal.PutBack {
			c.notify.Clear("journal", journalAgain)
		}
		st.failures, st.restTill = 0, time.Time{}
		c.ownerMoved(cg, st, d)
	case errors.Is(err, memcg.ErrGone):
	case errors.Is(err, journal.ErrNotGranted) && s.Knob != memcg.KnobMems:
		// Another writer came between the write and the look at it: the next one
		// finds their value and goes by the rules for that.
		st.restTill = now.Add(settingRest)
	case errors.Is(err, journal.ErrNotGranted):
		c.notify.Warn(string(s.Knob)+" "+s.Cgroup.Path, err, "what was there before is there again")
	case errors.Is(err, memcg.ErrPartial): // an earlier write still blocks
		st.restTill = now.Add(settingDeadline)
	case errors.Is(err, memcg.ErrUnsupported), errors.Is(err, memcg.ErrDenied) && !journalTrouble(err):
		st.off = fmt.Sprintf("%s cannot be written here", s.Knob)
		c.notify.Warn(string(s.Knob)+" "+s.Cgroup.Path, err, "this file of the cgroup is left alone from now on")
	default:
		st.restTill = now.Add(min(settingRest<<min(st.failures, maxBackoffShift), settingRestMost))
		st.failures++
		key, text := string(s.Knob)+" "+s.Cgroup.Path, "this file of the cgroup is left as it is; it is tried again now and then"
		if journalTrouble(err) {
			key, text = "journal", "no limit is changed without a journal of it; it is tried again now and then"
		}
		c.notify.Warn(key, err, text)
	}
	switch s.Knob {
	case memcg.KnobHigh:
		c.lentOut(cg, d)
	case memcg.KnobSwapMax:
		cg.guard.wrote(d)
	}
}

// ownerMoved takes in that somebody else writes the knob too.
func (c *Core) ownerMoved(cg *cgroup, st *knob, d Result) {
	switch d.Set.Outcome {
	case journal.Waiting:
		st.restTill = d.Set.Until
	case journal.Yielding:
		c.notify.Warn("owner "+cg.id.Path, nil, fmt.Sprintf("somebody else keeps writing %s of %s, last %q: it is left to them", d.Setting.Knob, cg.id.Path, d.Set.Found))
		fallthrough
	case journal.Yielded:
		st.off = fmt.Sprintf("somebody else writes %s, it is left to them", d.Setting.Knob)
	}
}

// journalTrouble reports whether an error is of the journal and not of a knob.
func journalTrouble(err error) bool {
	_, ok := errors.AsType[*journal.Error](err)
	return ok
}

// told is the result as a record has it.
func (d *Result) told() telemetry.Setting {
	s := telemetry.Setting{
		Knob: d.Setting.Knob, Value: d.Setting.Value, Why: d.Setting.Why, Took: d.Took, Err: d.Err,
		Outcome: d.Set.Outcome.String(), Found: d.Set.Found, Now: d.Set.Now, InFlight: d.Set.InFlight,
	}
	if d.Setting.Value == "" {
		s.Outcome, s.Now, s.InFlight = d.Undone.How.String(), d.Undone.Now, d.Undone.InFlight
		s.Value = d.Undone.Before
	}
	return s
}
