package memcg

// Knob is a file of a cgroup that keeps its value when its writer dies. Only
// these are ever written by name, and only after the journal has recorded it;
// memory.reclaim is none, since a request leaves nothing behind.
type Knob string

const (
	// KnobHigh is memory.high: bytes or "max".
	KnobHigh Knob = "memory.high"
	// KnobSwapMax is memory.swap.max: bytes or "max".
	KnobSwapMax Knob = "memory.swap.max"
	// KnobMems is cpuset.mems: a list of node ids, empty to inherit the
	// parent's.
	KnobMems Knob = "cpuset.mems"
)

// Known reports whether k is one of the knobs above: what a journal from
// another version names may not be.
func (k Knob) Known() bool { return k == KnobHigh || k == KnobSwapMax || k == KnobMems }
