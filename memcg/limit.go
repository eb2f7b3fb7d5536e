package memcg

import "strconv"

// unlimitedFrom is the lowest number that means "no limit" where a limit file
// prints a number for it: page counters cap at LONG_MAX pages, so kernels and
// tools have printed 2^63-1, 2^63-4096 and 2^64-1 for the same thing.
const unlimitedFrom = 1<<63 - 4096

// Limit is the value of a limit file (memory.min, low, high, max, swap.max):
// a number of bytes, or no limit at all, or absent. The zero Limit is Missing.
type Limit struct {
	f Field
}

// LimitOf returns the limit that a number in a limit file stands for, in
// bytes. Values of 2^63-4096 and above mean no limit.
func LimitOf(bytes uint64) Limit {
	if bytes >= unlimitedFrom {
		return Unlimited()
	}
	return Limit{Value(bytes)}
}

// Unlimited returns the limit that the kernel prints as "max".
func Unlimited() Limit { return Limit{Value(unlimitedFrom)} }

// NoLimitFile returns a limit that could not be had, and why.
func NoLimitFile(why State) Limit { return Limit{Absent(why)} }

// Bytes returns a finite limit; ok is false when the file says "max" and when
// the limit is absent. Use State and IsMax to tell those apart.
func (l Limit) Bytes() (b uint64, ok bool) {
	if l.IsMax() {
		return 0, false
	}
	return l.f.Get()
}

// IsMax reports whether the limit was read and is "max".
func (l Limit) IsMax() bool { return l.f.state == Present && l.f.v >= unlimitedFrom }

// State tells whether the limit is present, and if not, why.
func (l Limit) State() State { return l.f.state }

// Room returns how many bytes usage may still grow before this limit: a
// present number, Unlimited for "max", or the absence of either value.
func (l Limit) Room(usage Field) Limit {
	if l.f.state != Present {
		return l
	}
	if l.IsMax() {
		return l
	}
	u, ok := usage.Get()
	if !ok {
		return Limit{Absent(usage.State())}
	}
	if u >= l.f.v {
		return Limit{Value(0)}
	}
	return Limit{Value(l.f.v - u)}
}

// Min returns the tighter of two limits. An absent limit does not bind: it is
// the caller's business to ask for its State first where that matters.
func (l Limit) Min(other Limit) Limit {
	switch {
	case l.f.state != Present:
		return other
	case other.f.state != Present || l.f.v <= other.f.v:
		return l
	}
	return other
}

// String returns what the kernel would print: a number or "max". An absent
// limit prints its state.
func (l Limit) String() string {
	if l.IsMax() {
		return "max"
	}
	return l.f.String()
}

// AppendKernel appends the limit as it must be written to a limit file. "max"
// is always the literal word, never a number.
func (l Limit) AppendKernel(b []byte) []byte {
	if l.IsMax() {
		return append(b, "max"...)
	}
	return strconv.AppendUint(b, l.f.v, 10)
}
