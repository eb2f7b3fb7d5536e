package numapolicy

import (
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
)

// State is what is remembered of one cgroup between samples. Its size goes with
// the number of nodes the cgroup's memory.numa_stat lists. The zero State knows
// nothing. It must not be copied: decisions point into it.
type State struct {
	nodes []history // in the order of Sample.Nodes
	own   history   // the cgroup's scan, steal and demote, of all nodes together

	// events is how many pages came, went or were taken since the table was
	// built from what built says.
	events float64
	built  basis
	fresh  bool // the table stands

	shares  []Share
	entries []Entry[memcg.NodeID]
	lottery Lottery[memcg.NodeID]
	spill   spill
	owed    owed

	terms [maxTerms]memcg.Term
}

// history is what is remembered of one node.
type history struct {
	id          memcg.NodeID
	scan, steal flow        // pages
	demote      flow        // pages, which the kernel counts in steal as well
	anon, file  flow        // refaults
	size        memcg.Field // bytes of anon and file in the last sample
}

// fade is the time constant of the decayed sums. The seed's kernel halves its
// sums of scanned and rotated pages when they reach a quarter of the list; an
// agent that takes half a percent every few seconds would need a quarter of an
// hour for so much. A minute is a dozen samples of the default interval. Longer
// keeps a node cheap after its cold pages are gone; shorter forgets between two
// draws what the last one found.
const fade = time.Minute

// flow is the sum of a counter's growth that fades with time, and the time it
// spans, fading alike, so that sum/seconds is a rate whatever the interval.
type flow struct {
	last    memcg.Field
	sum     float64
	seconds float64 // 0: nothing is known yet
}

// step is one interval: what is kept of the sums before it, and what growth
// within it counts, having itself faded on average.
type step struct{ seconds, keep, weigh float64 }

func stepOf(elapsed time.Duration) step {
	if elapsed <= 0 {
		return step{keep: 1}
	}
	s := step{seconds: elapsed.Seconds()}
	lost := -math.Expm1(-s.seconds / fade.Seconds())
	s.keep, s.weigh = 1-lost, lost*fade.Seconds()/s.seconds
	return s
}

// add takes in one reading and returns the growth since the one before. ok is
// false where there is none: without an earlier reading, or with a counter that
// is absent or went back. Such a flow knows nothing until it has two readings
// again.
func (f *flow) add(now memcg.Field, s step) (growth float64, ok bool) {
	d, ok := now.Since(f.last)
	f.last = now
	switch {
	case !ok:
		f.sum, f.seconds = 0, 0
		return 0, false
	case s.seconds <= 0:
		return 0, false
	}
	f.sum = f.sum*s.keep + float64(d)*s.weigh
	f.seconds = f.seconds*s.keep + s.seconds*s.weigh
	return float64(d), true
}

// known reports whether the sum means anything.
func (f *flow) known() bool { return f.seconds > 0 }

// aMinute is the growth as a rate.
func (f *flow) aMinute() float64 { return f.sum / f.seconds * 60 }

// learn takes in one sample.
func (st *State) learn(s *memcg.Sample, elapsed time.Duration, page float64) {
	st.align(s.Nodes)
	step := stepOf(elapsed)
	st.own.scan.add(s.Stat.Get(memcg.StatScan), step)
	taken, whole := st.own.steal.add(s.Stat.Get(memcg.StatSteal), step)
	st.own.demote.add(memcg.SumKnown(s.Stat.Get(memcg.StatDemoteKswapd), s.Stat.Get(memcg.StatDemoteDirect),
		s.Stat.Get(memcg.StatDemoteKhugepaged), s.Stat.Get(memcg.StatDemoteProactive)), step)
	byNode := 0.0
	for i := range s.Nodes {
		n, h := &s.Nodes[i], &st.nodes[i]
		h.scan.add(n.Get(memcg.NodeScan), step)
		d, _ := h.steal.add(n.Get(memcg.NodeSteal), step)
		byNode += d
		h.demote.add(n.Get(memcg.NodeDemote), step)
		h.anon.add(n.Get(memcg.NodeRefaultAnon), step)
		h.file.add(n.Get(memcg.NodeRefaultFile), step)
		size := memcg.Sum(n.Get(memcg.NodeAnon), n.Get(memcg.NodeFile))
		if d, ok := size.Change(h.size); ok {
			st.events += math.Abs(float64(d)) / page
		}
		h.size = size
	}
	if !whole {
		taken = byNode
	}
	st.events += taken
}

// align makes the histories name the nodes of the sample, in its order. A node
// that is new begins with nothing known.
func (st *State) align(nodes []memcg.NodeStats) {
	same := len(st.nodes) == len(nodes)
	for i := 0; same && i < len(nodes); i++ {
		same = st.nodes[i].id == nodes[i].ID
	}
	if same {
		return
	}
	list := make([]history, len(nodes))
	for i := range nodes {
		list[i].id = nodes[i].ID
		for j := range st.nodes {
			if st.nodes[j].id == nodes[i].ID {
				list[i] = st.nodes[j]
			}
		}
	}
	st.nodes, st.fresh = list, false
}
