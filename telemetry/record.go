package telemetry

import (
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Mode says whether a decision may be carried out.
type Mode string

// Modes of the agent and of a policy in it.
const (
	Observe Mode = "observe" // decide and record, write nothing
	Enforce Mode = "enforce" // carry decisions out
)

// ErrUnwatched is the error of a cgroup that is there and that no policy matches any
// more. For what is shown of cgroups that is gone.
var ErrUnwatched = fmt.Errorf("no policy matches it any more: %w", memcg.ErrGone)

// HeldByMode is why a wish was not carried out where nothing else is in its way:
// enforcing would.
const HeldByMode = "observe mode"

// Record is one decision: what was seen of one cgroup in one tick, what
// followed from it, what bounds it met and what came of the request before.
// There is exactly one for each watched cgroup and sample, also when nothing was
// wanted and also when the cgroup could not be read.
type Record struct {
	Time   time.Time
	Tick   uint64 // since the start of the run, from 1
	Cgroup memcg.ID
	// Name is what people call the cgroup, such as shop/cart-7d9/app for a
	// container of Kubernetes; "" where its path is all there is.
	Name      string
	Container Container
	Policy    string
	Mode      Mode
	// Glance tells that only memory.current was read, between two samples, and
	// that the last sample's verdict and headroom were kept to. There is such a
	// record only where a request followed from it.
	Glance bool

	// Err is why the cgroup could not be sampled; the fields below Law are
	// then absent and nothing was decided.
	Err error

	Law     string // the law that decided: memagent, tmo, senpai
	Verdict string
	Meaning string // the verdict in a sentence
	Rule    string // the rule that fired, in kebab-case

	Current, Anon, File, Swap memcg.Field // bytes
	// RefaultAnon and RefaultFile are events since the previous sample;
	// Stall is microseconds of PSI some since then.
	RefaultAnon, RefaultFile, Stall memcg.Field
	Elapsed                         time.Duration // since the previous sample; 0 on the first
	// Cost is the refault cost: the share of time spent on bringing evicted
	// pages back, in %.
	Cost memcg.Term
	// Lent is by how many bytes memory.high is above what its operator set.
	// Missing where nothing is ever lent.
	Lent memcg.Field
	// Nodes is what the cgroup has on each node, in ascending id; empty where
	// memory.numa_stat does not tell.
	Nodes []NodeUse

	Want       uint64 // bytes the law asked for, after its own bounds
	Swappiness memcg.Swappiness
	OlderThan  time.Duration // only memory not used for so long; 0: any
	Floor      uint64        // bytes below which nothing is asked
	// Draw is by which draw the request is for memory on one node alone; nil
	// where it is for all. NodeRule is the rule that decided so, in kebab-case;
	// "" where the policy leaves nodes to the kernel.
	Draw     *Draw
	NodeRule string
	Mems     Mems
	Because  []memcg.Term // the figures that decided, in order
	Clipped  string       // the bound that clipped Want, "" if none

	// Acted tells that a request was handed to the kernel. Held says why not,
	// when something was wanted: observe mode, a request still in flight, a
	// budget, a right that is missing.
	Acted bool
	Held  string

	// Done is what came of a request that finished since the previous record
	// of this cgroup; nil when none did.
	Done *memcg.Outcome
	// Settings are the knobs whose writing finished since the previous record.
	Settings []Setting

	Lending Lending
	// Guarded tells that memory.swap.max is held at what was in swap, so that a
	// stream pushes no anon out; GuardHeld why it is not where it should be, or
	// not let go where it should.
	Guarded   bool
	GuardHeld string
}

// NodeUse is what a cgroup has on one node, in bytes.
type NodeUse struct {
	Node       memcg.NodeID
	Anon, File memcg.Field
}

// Sink takes records. It is called from one goroutine, in order, and must not
// keep the Record or what it points to after it returns.
type Sink interface {
	Record(r *Record)
}

// Sinks hands every record to each of several sinks, in order.
type Sinks []Sink

// Record passes r on.
func (s Sinks) Record(r *Record) {
	for _, sink := range s {
		sink.Record(r)
	}
}
