package cgroupfs

import (
	"bytes"
	"math"

	"github.com/memagent/memagent/memcg"
)

// parseUint reads a decimal number. ok is false for anything else, a sign or
// an overflow included.
func parseUint(b []byte) (v uint64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c) - '0'
		if d > 9 || v > math.MaxUint64/10 {
			return 0, false
		}
		v *= 10
		if v+d < v {
			return 0, false
		}
		v += d
	}
	return v, true
}

// parseField reads one size or counter. What is no number is Invalid, and so
// is a number from 2^63 on: no size or count gets there, but a negative one
// printed as unsigned does (case c05).
func parseField(b []byte) memcg.Field {
	v, ok := parseUint(b)
	if !ok || v > math.MaxInt64 {
		return memcg.Absent(memcg.Invalid)
	}
	return memcg.Value(v)
}

// parseValueFile reads a file that holds one number (memory.current).
func parseValueFile(b []byte) memcg.Field { return parseField(trimLine(b)) }

// parseLimitFile reads a limit file: a number of bytes, or "max". Numbers that
// stand for "no limit" are read as such.
func parseLimitFile(b []byte) memcg.Limit {
	b = trimLine(b)
	if string(b) == "max" {
		return memcg.Unlimited()
	}
	v, ok := parseUint(b)
	if !ok {
		return memcg.NoLimitFile(memcg.Invalid)
	}
	return memcg.LimitOf(v)
}

// parseNodesFile reads a list of nodes, "0-3,8" (nodemask_pr_args with %*pbl).
// An empty list is an empty set and ok; ok is false for what is no list.
func parseNodesFile(b []byte) (m memcg.NodeMask, ok bool) {
	b = trimLine(b)
	if len(b) == 0 {
		return m, true
	}
	for more := true; more; {
		var part []byte
		part, b, more = cut(b, ',')
		lo, hi, isRange := cut(part, '-')
		first, ok := parseUint(lo)
		if !ok || first > uint64(memcg.MaxNode) {
			return memcg.NodeMask{}, false
		}
		last := first
		if isRange {
			if last, ok = parseUint(hi); !ok || last > uint64(memcg.MaxNode) || last < first {
				return memcg.NodeMask{}, false
			}
		}
		for id := first; id <= last; id++ {
			m.Add(memcg.NodeID(id))
		}
	}
	return m, true
}

// trimLine cuts off the newline that ends a file of one line.
func trimLine(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}

// cut splits b at the first sep.
func cut(b []byte, sep byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(b, sep); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}

// keyed yields the key of each line and what follows the first blank.
func keyed(b []byte) func(yield func(key, value []byte) bool) {
	return func(yield func(key, value []byte) bool) {
		for len(b) > 0 {
			var line []byte
			line, b, _ = cut(b, '\n')
			key, value, _ := cut(line, ' ')
			if !yield(key, value) {
				return
			}
		}
	}
}
