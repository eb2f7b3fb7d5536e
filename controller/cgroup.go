package controller

import (
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/workingset"
)

// cgroup is what the core remembers of one watched cgroup, identified by path
// and inode: a path that comes back with another inode gets a fresh one.
type cgroup struct {
	id     memcg.ID
	policy *config.Policy
	law    workingset.Policy
	state  workingset.State

	sampledAt time.Time // of the last accepted sample; zero before the first
	refaultA  memcg.Field
	refaultF  memcg.Field
	stall     memcg.Field

	done *memcg.Outcome // came back, not yet in a record
	own  workingset.Own // what requests took since the last sample

	swap budget // swap writes of this cgroup

	// held is why the agent only observes this cgroup for good: a right that
	// is missing, a file this kernel lacks, its place in the tree. "" if it
	// may act.
	held string

	failures uint   // samples that failed in a row
	retryAt  uint64 // tick before which it is not sampled again
}

// maxBackoffShift bounds the pause between attempts to read a cgroup that
// fails to be read: 2^6 = 64 ticks, five minutes at the default interval.
const maxBackoffShift = 6

func (c *cgroup) failed(tick uint64) {
	c.failures++
	c.retryAt = tick + 1<<min(c.failures, maxBackoffShift)
}

func (c *cgroup) finished(o memcg.Outcome, pageSize uint64) {
	c.done = &o
	swapped, okS := o.SwapOut.Get()
	taken, okT := o.Reclaimed.Get()
	if !okS || !okT || pageSize == 0 {
		c.own.Known = false
		return
	}
	c.own.AnonPages += swapped / pageSize
	if taken > swapped {
		c.own.FilePages += (taken - swapped) / pageSize
	}
}
