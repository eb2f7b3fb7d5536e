package workingset

import (
	"math"
	"strconv"
)

// Figure is one computed number, or the knowledge that there is none. The zero
// Figure is unknown. A Figure never holds NaN or an infinity.
type Figure struct {
	v     float64
	known bool
}

// FigureOf returns a known figure, or an unknown one where v is NaN or
// infinite: what cannot be computed is not known.
func FigureOf(v float64) Figure {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Figure{}
	}
	return Figure{v: v, known: true}
}

// Get returns the number; ok is false when it is unknown.
func (f Figure) Get() (v float64, ok bool) { return f.v, f.known }

// Known reports whether there is a number.
func (f Figure) Known() bool { return f.known }

// String returns the number with three significant digits, or "unknown".
func (f Figure) String() string {
	if !f.known {
		return "unknown"
	}
	return strconv.FormatFloat(f.v, 'g', 3, 64)
}

// above reports whether the figure is known and at least limit.
func (f Figure) above(limit float64) bool { return f.known && f.v >= limit }

// or returns the number, or other where it is unknown.
func (f Figure) or(other float64) float64 {
	if f.known {
		return f.v
	}
	return other
}

// bytesOf turns a non-negative float into bytes without the undefined
// conversions of out-of-range values. NaN is 0.
func bytesOf(v float64) uint64 {
	switch {
	case !(v > 0):
		return 0
	case v >= 1<<63:
		return 1 << 63
	}
	return uint64(v)
}
