package controller

import (
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// cgroup is what the core remembers of one watched cgroup, identified by path
// and inode: a path that comes back with another inode gets a fresh one.
type cgroup struct {
	id     memcg.ID
	who    *who
	policy *config.Policy // with what its container may wish
	law    workingset.Policy
	state  workingset.State

	sampledAt time.Time // of the last accepted sample; zero before the first
	refaultA  memcg.Field
	refaultF  memcg.Field
	stall     memcg.Field

	done *memcg.Outcome // came back, not yet in a record
	own  workingset.Own // what requests took since the last sample

	swap budget // swap writes of this cgroup

	nodes []telemetry.NodeUse // of the last record, reused

	// held is why the agent only observes this cgroup for good: a right that
	// is missing, a file this kernel lacks, its place in the tree. "" if it
	// may act.
	held string

	wakeAt time.Time // when to look again before the next tick; zero: then
	fill   filling
	hold   workingset.Hold // what to keep to between two samples
	ranFor time.Duration   // what it took
	races  *[2]race        // nil until headroom is first made

	// Flags are together, since each alone would take a word.
	closely     bool               // a whole sample is wanted at wakeAt
	ran         bool               // a headroom request came back since the last look
	verdict     workingset.Verdict // of the last sample
	listened    bool               // the loop was asked to hear of its memory.events
	ages        bool               // the generations below were read
	oldestAlone bool               // of those, anon alone was to be had from the oldest at most
	moves       bool               // its intent at the last sample was to move anon

	youngest      time.Duration // age of the youngest generation
	evictableAnon uint64        // pages in generations that the kernel evicts from
	agings        int           // made for the request that waits for them
	early         int           // made while too little anon can be evicted

	sides sides
	file  uint64 // bytes of file, at the last sample

	placing  *placing  // nil until its policy first leaves nodes to the lottery
	steering *steering // nil until its policy first steers it

	anon     anonSize
	loan     loan
	loanCost float64     // share of time that refaults cost, at the last sample
	heldIn   uint64      // bytes of a loan that are in use
	heldFile uint64      // of these, page cache, and on which nodes
	heldOn   []shortNode // reused
	current  uint64      // bytes, at the last sample
	guard    guard

	knobs map[memcg.Knob]*knob
	set   []telemetry.Setting // came back, not yet in a record

	failures uint      // samples that failed in a row
	retryAt  time.Time // it is not sampled before
}

// maxBackoffShift bounds the pause between attempts to read a cgroup that
// fails to be read: 2^6 = 64 intervals, five minutes at the default of 5 s.
const maxBackoffShift = 6

func (c *cgroup) failed(now time.Time, interval time.Duration) {
	c.failures++
	c.retryAt = now.Add(interval << min(c.failures, maxBackoffShift))
	c.wakeAt = time.Time{}
}

func (c *cgroup) finished(o memcg.Outcome, pageSize uint64) {
	c.done = &o
	c.recalled(&o)
	if c.sides.took(&o) {
		if !c.oldestAlone {
			c.sides.rest = 0 // aging will show: it was taken for evictable and was not
		}
		c.oldestAlone, c.evictableAnon = true, 0
	}
	if shrunk, ok := o.Shrunk.Get(); ok {
		c.fill.taken += float64(shrunk)
	}
	swapped, okS := o.SwapOut.Get()
	taken, okT := o.Freed().Get() // what was only moved the law does not count as evicted
	if !okS || !okT || pageSize == 0 {
		c.own.Known = false
		return
	}
	c.own.AnonPages += swapped / pageSize
	if taken > swapped {
		c.own.FilePages += (taken - swapped) / pageSize
	}
}
