package recording

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Kind tells what an Event is.
type Kind uint8

// Kinds of events.
const (
	// Configured: decisions follow Event.Config from now on. Always first.
	Configured Kind = iota + 1
	// Tracked: these cgroups were found, of those that a policy matches.
	Tracked
	// HostSeen: what the host had.
	HostSeen
	// Looked: what reading one cgroup gave. It belongs to the next Stepped.
	Looked
	// Stepped: decisions were made on what was looked at since the one before.
	Stepped
	// CameBack: a result arrived. It is among the Done of the next Stepped.
	CameBack
	// Heard: a cgroup met a limit.
	Heard
	// Described: which container a cgroup belongs to. It belongs to the next
	// Tracked or Configured.
	Described
	// Rested: something is not to be tried on a cgroup for a while, since it was in
	// vain in a run before. It comes before the first Tracked.
	Rested
	// ended is the mark at the end of a recording that was closed.
	ended

	// text introduces a text, and reset has the reader forget all slots and
	// texts.
	text  Kind = 30
	reset Kind = 31
)

// Event is one thing that a loop took in. Which fields have a meaning depends on
// Kind; At has in every kind.
type Event struct {
	Kind Kind
	// At is the time since the recording began, by a clock that nobody sets.
	At time.Duration
	// Wall is what the clock on the wall said: nanoseconds since 1970, and the
	// zone's offset in seconds east.
	Wall int64
	Zone int

	Config   Config             // Configured
	Cgroups  []memcg.ID         // Tracked
	Complete bool               // Tracked: there are no others
	Host     memcg.HostSample   // HostSeen
	Cgroup   memcg.ID           // Looked, Heard, Described, Rested
	Glance   memcg.Field        // Looked: memory.current alone; absent: Sample or Err
	Sample   memcg.Sample       // Looked
	Err      error              // Looked: why there is no sample; an *Error once read
	Ages     []memcg.Generation // Looked
	AgesErr  error
	Parent   memcg.NodeMask // Looked: nodes of the parent
	ParErr   error
	Slots    int      // Stepped: requests that could be carried out at once
	NoKnobs  string   // Stepped: why no knob was written, "" if they were
	Draws    []uint64 // Stepped: the numbers that were drawn
	Done     []Result // Stepped, CameBack: one
	Who      Who      // Described
	Rest     Rest     // Rested
	Recorded uint64   // of the end mark: events before it
}

// Time returns the time of an event as a clock on the wall showed it.
func (e *Event) Time() time.Time {
	return time.Unix(0, e.Wall).In(time.FixedZone("", e.Zone))
}

// Config is what decisions were made by.
type Config struct {
	Text string // as YAML, with every default
	Mode string
	Self string // the agent's own cgroup, "" where it is unknown
	// Draws tells that there was a source of numbers to draw nodes with.
	Draws bool
}

// Rest is a cool-down.
type Rest struct {
	Why    string
	Until  time.Duration // since the recording began
	Length time.Duration // of it in all
}

// Who is what was known of the container of a cgroup.
type Who struct {
	Settled                bool
	ID, Runtime, Inner     string
	PodUID, Namespace, Pod string
	Name                   string
	Annotations            []Pair // by key
	Swappiness             memcg.Field
	Limit, Reservation     memcg.Limit
	Mems                   memcg.NodeMask
	Faults                 []error
}

// Pair is an annotation.
type Pair struct{ Key, Value string }

// Result is what came of a request: of Reclaim, of an aging, or of setting a
// knob where Setting names one.
type Result struct {
	Reclaim memcg.Reclaim
	Age     bool
	Outcome memcg.Outcome
	Took    time.Duration
	Err     error
	Setting Setting
	Set     Set
	Undone  Undone
}

// Setting is a knob that was to hold a value, or to get back its operator's
// where Value is "".
type Setting struct {
	Cgroup memcg.ID
	Knob   memcg.Knob
	Value  string
	Why    string
	By     string
}

// Set is what became of a Setting with a value.
type Set struct {
	Outcome  uint8
	Owner    uint8
	Found    string
	Now      string
	Waits    bool
	Until    time.Duration // since the recording began, where Waits
	InFlight bool
}

// Undone is what became of a Setting without one.
type Undone struct {
	How      uint8
	Before   string
	Now      string
	InFlight bool
}
