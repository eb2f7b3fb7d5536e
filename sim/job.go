package sim

import (
	"container/heap"
	"time"
)

// Job is a workload that was started in a cgroup.
type Job struct {
	h       *Host
	group   *cgroup
	name    string
	nodes   []int // indexes its pages go to in turn
	turn    int
	gap     time.Duration // between two touches
	regions []*region
	program program
	threads int // that touch at once

	due      time.Duration // of the next touch, or when a CPU may be free for it
	ready    time.Duration // of the next touch
	order    uint64        // among jobs that are due at the same time
	place    int           // in the queue; -1 when it has nothing to do
	finished bool          // has nothing to do any more, but keeps its memory
	ended    bool          // stopped or killed

	wait  time.Duration // of the touch that is going on
	work  time.Duration // of the step that is going on, on a CPU
	over  int           // pages charged over memory.high since the last brake
	began time.Duration // of the pass that is going on
	stats JobStats
}

// JobStats is how a workload fared.
type JobStats struct {
	Touches  uint64        // pages touched
	Refaults uint64        // of them, how many had been resident before
	Waited   time.Duration // for devices, for reclaim and at memory.high
	Passes   int           // rounds completed
	LastPass time.Duration // how long the last of them took
	Killed   bool          // by the out-of-memory killer
}

// program is what a job does: at most one touch at a time.
type program interface {
	// step acts and returns how long to wait before the next step; over when
	// there is none.
	step(h *Host, j *Job) (after time.Duration, over bool)
}

// Stats returns how the workload fared so far.
func (j *Job) Stats() JobStats {
	j.h.mu.Lock()
	defer j.h.mu.Unlock()
	return j.stats
}

// Done reports whether the workload has nothing to do any more.
func (j *Job) Done() bool {
	j.h.mu.Lock()
	defer j.h.mu.Unlock()
	return j.finished
}

// Stop ends the workload as its exit would: its anonymous memory is freed,
// what it has in swap too; the pages of its files stay in the cache. Stopping
// twice is misuse.
func (j *Job) Stop() {
	j.h.mu.Lock()
	defer j.h.mu.Unlock()
	if j.ended {
		j.h.misuse("stop %s in %s: it has ended already", j.name, j.group.id.Path)
		return
	}
	j.h.end(j)
}

func (j *Job) home() int {
	n := j.nodes[j.turn%len(j.nodes)]
	j.turn++
	return n
}

func (j *Job) blocked(d time.Duration) {
	j.wait += d
	j.stats.Waited += d
}

func (j *Job) pass() {
	j.stats.Passes++
	j.stats.LastPass = j.h.now + j.wait - j.began
	j.began = j.h.now + j.wait
}

func (j *Job) residentAnon() uint64 {
	var n uint64
	for _, r := range j.regions {
		for _, i := range r.pages {
			if i != 0 && j.h.arena.pages[i].flags&(resident|file) == resident {
				n++
			}
		}
	}
	return n
}

// finish takes a job out of the queue; its memory stays.
func (h *Host) finish(j *Job) {
	if j.finished {
		return
	}
	j.finished = true
	if j.place >= 0 {
		heap.Remove(&h.queue, j.place)
	}
	for c := j.group; c != nil; c = c.parent {
		c.running -= j.threads
	}
}

// end takes a job out of the world.
func (h *Host) end(j *Job) {
	h.finish(j)
	j.ended = true
	for _, r := range j.regions {
		for _, i := range r.pages {
			switch {
			case i == 0:
			case h.arena.pages[i].flags&(resident|file) == resident|file:
				h.arena.pages[i].flags |= orphan
			default:
				h.drop(i)
			}
		}
		r.pages = nil
	}
	c := j.group
	for k, other := range c.jobs {
		if other == j {
			c.jobs = append(c.jobs[:k], c.jobs[k+1:]...)
			break
		}
	}
	for ; c != nil; c = c.parent {
		c.procs--
	}
}

// queue holds the jobs that have something to do, the next one first.
type queue []*Job

func (q queue) Len() int { return len(q) }
func (q queue) Less(a, b int) bool {
	if q[a].due != q[b].due {
		return q[a].due < q[b].due
	}
	if q[a].ready != q[b].ready {
		return q[a].ready < q[b].ready
	}
	return q[a].order < q[b].order
}
func (q queue) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].place, q[b].place = a, b
}
func (q *queue) Push(x any) {
	j := x.(*Job)
	j.place = len(*q)
	*q = append(*q, j)
}
func (q *queue) Pop() any {
	old := *q
	j := old[len(old)-1]
	*q = old[:len(old)-1]
	j.place = -1
	return j
}
