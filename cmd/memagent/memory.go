package main

import (
	"os"

	"github.com/memagent/memagent/telemetry"
)

// What memagent keeps grows with the number of cgroups and with nothing else. Go
// lets the heap grow to twice that before it collects garbage, and then keeps
// what was freed for a while; with a limit for its memory it collects in time.
// The limit must leave room above what is kept, or collecting never ends.
const (
	// ownLeast is the limit up to five thousand cgroups, in bytes.
	ownLeast = 64 << 20
	// ownBase and ownForEach make the limit beyond that: what is kept of a
	// cgroup on a machine of eight nodes is 6 KiB with all that can be asked
	// for (measured on 10,000 cgroups, docs/performance.md), and a third more for what containers,
	// steering and outcomes of requests add.
	ownBase    = 24 << 20
	ownForEach = 8 << 10
)

// ownLimit is the limit for memagent's memory with so many cgroups watched, in
// bytes.
func ownLimit(watched int) int64 {
	return max(ownLeast, ownBase+ownForEach*int64(watched))
}

// ownMemory sets the limit as cgroups come and go.
type ownMemory struct {
	set func(bytes int64) (before int64)
	now int64
}

// newOwnMemory returns one that sets the limit through set; nil where set is
// nil, or where the environment says what the limit is (GOMEMLIMIT).
func newOwnMemory(set func(int64) int64) telemetry.TickList {
	if _, given := os.LookupEnv("GOMEMLIMIT"); given || set == nil {
		return nil
	}
	return telemetry.TickList{&ownMemory{set: set}}
}

// Ticked takes how many cgroups a tick watched.
func (o *ownMemory) Ticked(t *telemetry.Tick) {
	if limit := ownLimit(t.Watched); limit != o.now {
		o.set(limit)
		o.now = limit
	}
}
