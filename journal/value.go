package journal

import (
	"strconv"

	"github.com/memagent/memagent/memcg"
)

// Valid reports whether a value can stand in a knob: bytes in decimal or "max"
// for limits, a list of nodes, which may be empty, for cpuset.mems.
func Valid(k memcg.Knob, value string) bool {
	if k == memcg.KnobMems {
		_, err := memcg.ParseNodeMask(value)
		return err == nil
	}
	_, ok := limitOf(value)
	return ok && k.Known()
}

// Same reports whether two values of a knob mean the same to the kernel. Limits
// are compared in whole pages, to which it rounds them down, and every number
// from 2^63-4096 on is "max"; lists of nodes are compared as sets. A value that
// is none is the same as nothing.
func Same(k memcg.Knob, a, b string, pageSize uint64) bool {
	if k == memcg.KnobMems {
		x, errX := memcg.ParseNodeMask(a)
		y, errY := memcg.ParseNodeMask(b)
		return errX == nil && errY == nil && x == y
	}
	x, okX := limitOf(a)
	y, okY := limitOf(b)
	if !okX || !okY {
		return false
	}
	p, finiteP := x.Bytes()
	q, finiteQ := y.Bytes()
	return finiteP == finiteQ && p/pageSize == q/pageSize
}

// raises reports whether going from one value of a limit to another lets a
// cgroup have more: that never blocks, and may be what it waits for.
func raises(k memcg.Knob, from, to string) bool {
	if k == memcg.KnobMems {
		return false
	}
	x, okX := limitOf(from)
	y, okY := limitOf(to)
	if !okX || !okY || x.IsMax() {
		return false
	}
	p, _ := x.Bytes()
	q, finite := y.Bytes()
	return !finite || q > p
}

func limitOf(value string) (memcg.Limit, bool) {
	if value == "max" {
		return memcg.Unlimited(), true
	}
	for _, c := range value {
		if c < '0' || c > '9' { // ParseUint takes a plus sign
			return memcg.Limit{}, false
		}
	}
	v, err := strconv.ParseUint(value, 10, 64)
	return memcg.LimitOf(v), err == nil
}
