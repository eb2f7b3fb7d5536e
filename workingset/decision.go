package workingset

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Input is what is known of one cgroup at one sample.
type Input struct {
	Sample *memcg.Sample
	Host   *memcg.HostSample
	// Elapsed is the time since the previous accepted sample of this cgroup, 0
	// on the first.
	Elapsed time.Duration
	Own     Own
	// Gens is what the multi-gen LRU says of ages, nil where it says nothing.
	Gens *Generations
	// ClassicLRU is true where the host is known to run the classic LRU, whose
	// clock also counts plain activations (pgactivate).
	ClassicLRU bool
	// GuardHeld is true while the agent itself holds memory.swap.max at
	// memory.swap.current: that lack of swap room is then our own doing and
	// must not be read as the cgroup's.
	GuardHeld bool
}

// Own is what the agent took from the cgroup since the previous sample, in
// pages, by its own measurement. Kernels from 6.15 on count it themselves
// (*_proactive), and their word is taken first.
type Own struct {
	AnonPages, FilePages uint64
	Known                bool // false: what was taken is not known, which is not 0
}

// IntentKind tells what an intent is for.
type IntentKind uint8

// Kinds of intent.
const (
	KindNone     IntentKind = iota // leave alone
	KindSqueeze                    // take what is not needed
	KindHeadroom                   // stay below the cgroup's own limit
	KindMoveAnon                   // swap cold anon out, to make room for file
	KindMoveFile                   // drop cold file, to make room for anon
)

var intentNames = [...]string{"none", "squeeze", "headroom", "move-anon", "move-file"}

// String returns the kind in kebab-case.
func (k IntentKind) String() string {
	if int(k) < len(intentNames) {
		return intentNames[k]
	}
	return "intent(?)"
}

// Intent is what ought to be asked of the kernel for this cgroup. Bytes == 0
// means leave it alone.
type Intent struct {
	Kind IntentKind
	// Bytes is in whole pages and never more than memory.current - Floor.
	Bytes uint64
	// Swappiness is within the policy; the zero value passes nothing.
	Swappiness memcg.Swappiness
	// Floor is the memory.current, in bytes, at which to stop.
	Floor uint64
	// OlderThan, where not 0, restricts the request to generations at least
	// this old: an actuator that cannot choose generations must not carry it
	// out at more than the policy's MaxStep.
	OlderThan time.Duration
	// SwapGuard asks to hold memory.swap.max at memory.swap.current for as long
	// as it stays true; it is independent of Bytes.
	SwapGuard bool
}

// Decision is the answer for one sample.
type Decision struct {
	Verdict Verdict
	Signals Signals
	Intent  Intent
	// Hold is what to keep to until the next decision.
	Hold Hold
	// Because lists the figures that decided, the weightiest first. It is kept
	// in the State: valid until the next Decide with that State.
	Because []memcg.Term
	// Rule is the kebab-case name of the rule that decided.
	Rule string
	// Clipped names the bound that made the intent smaller than the rule asked
	// for ("floor", "swap-room", "budget", "cold", "rate"), "" if none did.
	Clipped string
}

// Signals are the figures computed from one sample and the State before it.
// Sizes are bytes, rates are pages a second unless the name says otherwise,
// shares are fractions of time.
type Signals struct {
	Anon, File Side

	Elapsed Figure // seconds the deltas span

	Pressure     Figure // share of time some task stalled, since the last sample
	PressureFull Figure // share of time all tasks stalled, since the last sample
	Cost         Figure // share of time refaults cost since the last sample, both sides
	CostSmooth   Figure // the same, smoothed

	Clock            Figure // smoothed age clock: evictions + activations
	KernelEvicts     Figure // evictions since the last sample that were not the agent's own
	KernelEvictsAnon Figure // of these, anon, smoothed
	Efficiency       Figure // pages stolen of pages scanned by the kernel itself, since the last sample
	AllocRate        Figure // bytes a second newly charged, smoothed: growth plus what left for good
	FillRate         Figure // bytes a second charged in all, since the last sample: growth plus all that left
	AnonGrowth       Figure // bytes a second, smoothed: new anon, swapped or not

	Floor       Figure // bytes that must stay
	Reclaimable Figure // memory.current - Floor
	SwapRoom    Figure // bytes of anon that may still go out
	Limit       Figure // min(memory.high, memory.max); unknown where neither binds
	AtLimit     bool   // within 3 % (and the headroom) of Limit, or its events rise
	HighRises   bool   // memory.events high rose since the last sample
	MaxRises    bool   // memory.events max rose since the last sample

	// Short is what is out and comes back, on both sides, in reach or not, at
	// most four times what is resident of a side.
	Short Figure
	// Missed is the same without that bound, and by what the last two samples
	// say where that is more: how much higher a limit would have kept it. It is
	// the figure to lend by.
	Missed Figure
	// RefaultRate is refaults of both sides since the last sample.
	RefaultRate Figure
	// Swappiness is the effective value of an auto policy before clamping.
	Swappiness Figure
}

// Side are the signals of one page type.
type Side struct {
	Evictions  Figure // smoothed
	Refaults   Figure // smoothed
	Out        Figure // the non-resident set
	TimeOut    Figure // seconds that what comes back was out, in the mean; an upper bound like Distance
	Distance   Figure // D, the mean refault distance
	WorkingSet Figure // what could have been traded to keep these pages
	Need       Figure // what is out, comes back and is in reach; 0 out of reach
	Price      Figure // microseconds a refault
	Cost       Figure // share of time refaults of this type cost, smoothed
	InReach    bool   // Distance is known and <= WorkingSet
}
