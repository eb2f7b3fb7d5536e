package top

import (
	"cmp"
	"strings"

	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/status"
)

// column is one column of the table.
type column struct {
	key   rune // that sorts by it
	title string
	width int // of its widest usual value; the name and the action take what is left
	right bool
	text  func(*status.Cgroup) string
	// order compares two rows so that what is most worth a look comes first.
	order func(a, b *status.Cgroup) int
}

// Places in columns.
const (
	colName = iota
	colVerdict
	colResident
	colSwap
	colCost
	colPressure
	colLent
	colAction
)

var columns = []column{
	colName: {'c', "CGROUP", 20, false, func(c *status.Cgroup) string { return c.Name },
		func(a, b *status.Cgroup) int { return strings.Compare(a.Path, b.Path) }},
	colVerdict: {'v', "VERDICT", 11, false, verdict,
		func(a, b *status.Cgroup) int { return cmp.Compare(urgency(b), urgency(a)) }},
	colResident: {'m', "RESIDENT", 8, true, func(c *status.Cgroup) string { return size(c.Current) },
		func(a, b *status.Cgroup) int { return descending(a.Current, b.Current) }},
	colSwap: {'s', "SWAP", 8, true, func(c *status.Cgroup) string { return size(c.Swap) },
		func(a, b *status.Cgroup) int { return descending(a.Swap, b.Swap) }},
	colCost: {'f', "COST", 6, true, func(c *status.Cgroup) string { return share(c.Cost) },
		func(a, b *status.Cgroup) int { return descending(a.Cost, b.Cost) }},
	colPressure: {'p', "PRESS", 6, true, func(c *status.Cgroup) string { return share(c.Pressure) },
		func(a, b *status.Cgroup) int { return descending(a.Pressure, b.Pressure) }},
	colLent: {'l', "LENT", 8, true, func(c *status.Cgroup) string { return size(c.Lent) },
		func(a, b *status.Cgroup) int { return descending(a.Lent, b.Lent) }},
	colAction: {'a', "LAST ACTION", 14, false, action,
		func(a, b *status.Cgroup) int { return latest(b).Compare(latest(a)) }},
}

// kept is the order in which columns get room; the name always has some.
var kept = []int{colResident, colVerdict, colCost, colPressure, colSwap, colLent, colAction}

// absent is shown where a figure is not known, which is not a zero.
const absent = "-"

func size(v *uint64) string {
	if v == nil {
		return absent
	}
	return telemetry.Bytes(*v)
}

func share(v *float64) string {
	if v == nil {
		return absent
	}
	return telemetry.Percent(*v)
}

func verdict(c *status.Cgroup) string {
	if c.Error != "" {
		return "unreadable"
	}
	return c.Verdict
}

// urgency orders verdicts: what an operator may have to do something about
// first.
func urgency(c *status.Cgroup) int {
	switch verdict(c) {
	case "throttled":
		return 8
	case "limit-bound":
		return 7
	case "file-thrash", "anon-thrash":
		return 6
	case "unreadable":
		return 5
	case "streaming":
		return 4
	case "growing":
		return 3
	case "fits":
		return 2
	case "idle":
		return 1
	}
	return 0
}

// descending puts the larger first and what is not known last.
func descending[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}
