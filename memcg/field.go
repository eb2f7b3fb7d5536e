package memcg

import "strconv"

// State tells why a Field has a value or has none. The four are never mixed
// up: a counter that could not be read is not a counter that reads zero.
type State uint8

const (
	// Missing means the value was not read: nobody asked, or the read failed
	// this time. It is the zero State, so a forgotten Field cannot pass for 0.
	Missing State = iota
	// Unsupported means this kernel or this cgroup does not offer the value:
	// the file does not exist, or a file that was read lacks the key.
	Unsupported
	// Invalid means the kernel printed something that is not a value of this
	// kind, a negative size for example. It must not enter a decision.
	Invalid
	// Present means the value was read and may be used. It may be zero.
	Present
)

var stateNames = [...]string{"missing", "unsupported", "invalid", "present"}

// String returns the state in one lower-case word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// Field is one number read from the kernel, or the reason why there is none.
// The zero Field is Missing. Fields are comparable values.
type Field struct {
	v     uint64
	state State
}

// Value returns a present field that holds v.
func Value(v uint64) Field { return Field{v: v, state: Present} }

// Absent returns a field without a value. A why of Present is taken as
// Missing: a present field needs a value.
func Absent(why State) Field {
	if why == Present {
		why = Missing
	}
	return Field{state: why}
}

// Get returns the value; ok is false when there is none. There is
// deliberately no accessor that answers 0 for an absent field.
func (f Field) Get() (v uint64, ok bool) { return f.v, f.state == Present }

// State tells whether the field is present, and if not, why.
func (f Field) State() State { return f.state }

// Known reports whether the field is present.
func (f Field) Known() bool { return f.state == Present }

// Since returns how much a counter grew since an earlier reading of it. ok is
// false when either reading is absent or the counter went back: such a delta
// does not exist, it is not 0.
func (f Field) Since(earlier Field) (d uint64, ok bool) {
	if f.state != Present || earlier.state != Present || f.v < earlier.v {
		return 0, false
	}
	return f.v - earlier.v, true
}

// Change returns f - earlier of a gauge, which may be negative. ok is false
// when either is absent or the difference does not fit.
func (f Field) Change(earlier Field) (d int64, ok bool) {
	if f.state != Present || earlier.state != Present {
		return 0, false
	}
	d = int64(f.v - earlier.v)
	if (f.v >= earlier.v) != (d >= 0) {
		return 0, false
	}
	return d, true
}

// String returns the value in decimal, or the state in words.
func (f Field) String() string {
	if f.state == Present {
		return strconv.FormatUint(f.v, 10)
	}
	return f.state.String()
}

// Sum adds fields. The sum exists only if every part does: a sum over a
// missing part would be an understatement that looks exact. With no fields it
// is a present 0. The state of a failed sum is that of its first absent part;
// an overflow is Invalid.
func Sum(fields ...Field) Field {
	var total uint64
	for _, f := range fields {
		if f.state != Present {
			return Absent(f.state)
		}
		if total+f.v < total {
			return Absent(Invalid)
		}
		total += f.v
	}
	return Value(total)
}

// SumKnown adds the fields that are present, for values that are printed only
// where a feature is compiled in (zswap, demotion) and mean nothing happened
// where they are not. It is absent when all parts are.
func SumKnown(fields ...Field) Field {
	sum := Field{}
	for _, f := range fields {
		switch {
		case f.state != Present:
			if sum.state < f.state {
				sum.state = f.state
			}
		case sum.state != Present:
			sum = f
		case sum.v+f.v < sum.v:
			return Absent(Invalid)
		default:
			sum.v += f.v
		}
	}
	return sum
}
