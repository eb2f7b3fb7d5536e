package sim

// Reclaim, after mm/vmscan.c: lists are scanned with growing pressure until
// enough is freed.

// batch is how many pages are scanned at a time and the least that is ever
// asked for (SWAP_CLUSTER_MAX).
const batch = 32

// firstPriority is where pressure starts: a 4096th of every list
// (DEF_PRIORITY). At 0 lists are scanned whole.
const firstPriority = 12

// maxSwappiness stands for swappiness=max, anon only.
const maxSwappiness = 201

// reclaimer is on whose account pages are scanned.
type reclaimer int

const (
	kswapd reclaimer = iota
	direct
	proactive
)

// request is one call of reclaim.
type request struct {
	target     *cgroup
	nodes      []int // indexes, in the order they are visited
	goal       uint64
	swappiness int
	by         reclaimer
	global     bool // for a node, not for a cgroup's limit
}

// progress is what came of it, in pages.
type progress struct {
	reclaimed, scanned uint64
	written            uint64 // of the reclaimed, to swap
}

type scan struct {
	h *Host
	request
	progress
	priority uint

	mayDeactivate       [numKinds]bool
	force               bool // deactivate whatever the lists look like
	skippedDeactivate   bool
	breakLow            bool // memory.low no longer protects
	skippedLow          bool
	fullWalk            bool
	cacheTrim, fileTiny bool
	cost                [numKinds]uint64
}

// shrink takes pages from a subtree on some nodes.
func (h *Host) shrink(q request) progress {
	s := scan{h: h, request: q, fullWalk: !h.kernel.PartialWalk || q.by == kswapd}
	for {
		s.pass()
		switch {
		case s.reclaimed > 0:
			return s.progress
		case !s.fullWalk:
			s.fullWalk = true
		case s.skippedDeactivate:
			s.force, s.skippedDeactivate = true, false
		case s.skippedLow:
			s.breakLow, s.skippedLow, s.force = true, false, false
		default:
			return s.progress
		}
	}
}

// pass raises the pressure until the goal is met.
func (s *scan) pass() {
	for p := firstPriority; p >= 0 && s.reclaimed < s.goal; p-- {
		s.priority = uint(p)
		for _, n := range s.nodes {
			s.node(n)
		}
	}
	for _, n := range s.nodes {
		v := &s.target.vecs[n]
		for kind := range numKinds {
			v.seen[kind] = v.count[cActivateAnon+counter(kind)]
		}
	}
}

// node scans the subtree of the target on one node.
func (s *scan) node(n int) {
	s.prepare(n)
	v := &s.target.vecs[n]
	if len(s.target.kids) == 0 {
		s.group(s.target, n)
		return
	}
	groups := s.target.subtree(s.h.scratch[:0])
	s.h.scratch = groups
	start := 0
	if !s.fullWalk {
		start = v.cursor % len(groups)
	}
	for i := range groups {
		at := (start + i) % len(groups)
		s.group(groups[at], n)
		if !s.fullWalk && s.reclaimed >= s.goal {
			v.cursor = at + 1
			return
		}
	}
}

func (s *scan) group(c *cgroup, n int) {
	if c != s.target {
		if m := c.limits.Min / PageSize; m > 0 && c.usage <= m {
			return
		}
		if low := c.limits.Low / PageSize; low > 0 && c.usage <= low {
			if !s.breakLow {
				s.skippedLow = true
				return
			}
			c.note(eventLow)
		}
	}
	s.lists(c, n)
}

// lists scans the lists of one cgroup on one node, in small steps over all of
// them. When the goal is met, what was left to do of the larger side is cut to
// the proportion that the smaller one has been scanned in.
func (s *scan) lists(c *cgroup, n int) {
	nr := s.counts(c, n)
	targets := nr
	var reclaimed uint64
	cut := s.global && s.by != kswapd && s.priority == firstPriority
	for nr[inactiveAnon]+nr[activeFile]+nr[inactiveFile] > 0 {
		for l := inactiveAnon; l <= activeFile; l++ {
			if step := min(nr[l], batch); step > 0 {
				nr[l] -= step
				reclaimed += s.list(c, n, l, step)
			}
		}
		if reclaimed < s.goal || cut {
			continue
		}
		anonLeft, fileLeft := nr[inactiveAnon]+nr[activeAnon], nr[inactiveFile]+nr[activeFile]
		if anonLeft == 0 || fileLeft == 0 {
			break
		}
		smaller, left := anonKind, anonLeft
		if fileLeft <= anonLeft {
			smaller, left = fileKind, fileLeft
		}
		larger := 1 - smaller
		percent := left * 100 / (targets[inactiveOf(smaller)] + targets[activeOf(smaller)] + 1)
		nr[inactiveOf(smaller)], nr[activeOf(smaller)] = 0, 0
		for _, l := range []lru{inactiveOf(larger), activeOf(larger)} {
			done := targets[l] - nr[l]
			want := targets[l] * (100 - percent) / 100
			nr[l] = want - min(want, done)
		}
		cut = true
	}
	s.reclaimed += reclaimed
	if s.h.canSwap(c) && s.h.inactiveLow(&c.vecs[n], anonKind) {
		s.deactivate(c, n, anonKind, batch)
	}
}

// list scans part of one list.
func (s *scan) list(c *cgroup, n int, l lru, nr uint64) uint64 {
	switch l {
	case inactiveAnon, inactiveFile:
		return s.inactive(c, n, int(l)/2, nr)
	}
	if kind := int(l) / 2; s.mayDeactivate[kind] {
		s.deactivate(c, n, kind, nr)
	} else {
		s.skippedDeactivate = true
	}
	return 0
}
