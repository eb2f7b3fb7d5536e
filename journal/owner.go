package journal

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Owner is whose value a knob holds.
type Owner uint8

// Owners of a value.
const (
	// Gone: the cgroup, or the boot of the host, that the entry speaks of is
	// over. The knob there now, if any, is another one.
	Gone Owner = iota
	// Original: what was there before. There is nothing to undo.
	Original
	// Ours: what was written here.
	Ours
	// Foreign: neither. Somebody else wrote it since, and it is theirs.
	Foreign
)

var ownerNames = [...]string{"gone", "original", "ours", "foreign"}

// String returns the owner in one lower-case word.
func (o Owner) String() string {
	if int(o) < len(ownerNames) {
		return ownerNames[o]
	}
	return "owner(?)"
}

// Sight is one knob as it is found now.
type Sight struct {
	ID    memcg.ID // of the cgroup at the entry's path; the zero ID where there is none
	Boot  string   // boot id of the host
	Value string
}

// Judge says whose value a knob of an entry holds. A value that is both the
// original and ours is the original: there is nothing to undo. Values are
// compared as Same does.
func Judge(e Entry, now Sight, pageSize uint64) Owner {
	switch {
	case now.ID != e.ID || now.Boot != e.Boot:
		return Gone
	case Same(e.Knob, now.Value, e.Before, pageSize):
		return Original
	case Same(e.Knob, now.Value, e.Wrote, pageSize),
		e.Earlier != "" && Same(e.Knob, now.Value, e.Earlier, pageSize):
		return Ours
	}
	return Foreign
}

// Rules say what is done where somebody else writes a knob that is in use here.
type Rules struct {
	// Asserts is how often a value of ours is written again over somebody
	// else's before the knob is left to them; 0: never.
	Asserts int
	// Pause is the least time between two of those; it doubles each time.
	Pause time.Duration
	// Forgive is after how long without a challenge the count begins anew.
	Forgive time.Duration
}

// DefaultRules are for owners who write now and then, a daemon-reload or an
// operator, which three asserts outlast, and for those who write every minute,
// to whom the knob is left within minutes.
var DefaultRules = Rules{Asserts: 3, Pause: 10 * time.Second, Forgive: time.Hour}

// Move is what to do about a challenge.
type Move uint8

// Moves.
const (
	// Assert: write ours again. What was found is what will be put back.
	Assert Move = iota
	// Wait: write nothing before the time that Meet returns.
	Wait
	// Yield: leave the knob alone from now on, and say so.
	Yield
)

// Meet takes in that value was found in a knob of ours and is not ours: it
// returns the entry as it must be recorded, what to do, and for Wait until
// when. Only Assert and Yield change the entry.
func (r Rules) Meet(e Entry, value string, now time.Time) (Entry, Move, time.Time) {
	if e.Challenges > 0 && now.Sub(e.Challenged) >= r.Forgive {
		e.Challenges = 0
	}
	if e.Challenges > 0 {
		// A clock that was set back must not stretch the pause.
		until := e.Challenged.Add(r.pause(e.Challenges))
		if now.Before(until) && !now.Before(e.Challenged) {
			return e, Wait, until
		}
	}
	e.Before, e.Challenged = value, now
	if e.Challenges >= r.Asserts {
		e.Yielded = true
		return e, Yield, time.Time{}
	}
	e.Challenges++
	return e, Assert, time.Time{}
}

// pause is how long to wait after the nth challenge.
func (r Rules) pause(n int) time.Duration { return r.Pause << min(n-1, 16) }
