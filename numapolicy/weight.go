package numapolicy

import (
	"math"

	"github.com/memagent/memagent/memcg"
)

// Why a node has no ticket, for Share.Why.
const (
	WhyEmpty     = "empty"      // nothing of the cgroup lies there
	WhySlow      = "slow-tier"  // it has no CPU and the operator did not name it
	WhyNoFigures = "no-figures" // a list or counter that the weight needs is not known
	WhyNothing   = "no-share"   // what lies there does not count for this request
)

// Share is what was worked out for one node at the last build of the table.
type Share struct {
	Node   memcg.NodeID
	Weight uint64 // pages, discounted; 0 where the node has no ticket
	// Ratio is the part of the scanned pages that could be taken, 0..1.
	Ratio float64
	// OwnRatio is true where Ratio is the node's own. The kernel tells so from
	// 7.1 on; it is the cgroup's elsewhere, and where nothing was scanned there
	// lately.
	OwnRatio bool
	// Cost is what refaults on the node cost, in microseconds a minute for each
	// page of the list they came from. 1 halves the weight: on a list of 1 GiB
	// that is 262 ms a minute, 0.4 % of time, between the cost at which a squeeze
	// stops and the one that counts as thrash (docs/algorithms.md).
	Cost float64
	// Most is the most bytes that the node could give, as of the last Decide that
	// drew one.
	Most     uint64
	FileOnly bool   // short while another node has room: anon is not to be taken
	Why      string // why there is no ticket, "" where there is one
}

const (
	// kernelSwappiness is what a request that passes none is taken to have:
	// the value the kernel starts with (vm_swappiness in mm/vmscan.c).
	kernelSwappiness = 60
	// minSwap is the least free swap, in pages, that makes anon count: below it
	// the multi-gen LRU takes no anon (MIN_LRU_BATCH in mm/vmscan.c).
	minSwap = 64
	// minScanned is how many pages, of what is remembered, must have been
	// scanned for a ratio to mean anything: one batch of the kernel
	// (SWAP_CLUSTER_MAX in linux/swap.h). Fewer lets a few pages decide; more
	// leaves small cgroups without a ratio of their own.
	minScanned = 32
	gib        = 1 << 30
)

// scales are what all nodes of a cgroup are weighed with.
type scales struct {
	page               float64
	anonPrio, filePrio float64
	active             bool    // inactive file is low, so that active file counts
	anon               bool    // file is small against swappiness and swap has room
	ratio              float64 // the cgroup's own; 1, the same for every node, where nothing is known
	anonPrice          float64 // microseconds a refault
	filePrice          float64
}

// inactiveIsLow is the kernel's test of whether a list must be refilled from
// its active one (inactive_is_low in mm/vmscan.c), here as in the seed on the
// lists of the whole cgroup. The larger the list, the smaller the inactive part
// may be: a half below 1 GiB, a quarter at 1 GiB, 1/32 at 100 GiB.
func inactiveIsLow(inactive, active uint64) bool {
	ratio := uint64(1)
	if whole := inactive/gib + active/gib + (inactive%gib+active%gib)/gib; whole > 0 {
		ratio = intSqrt(10 * whole)
	}
	return float64(inactive)*float64(ratio) < float64(active)
}

// intSqrt is the largest number whose square is not above n (int_sqrt in
// lib/math/int_sqrt.c).
func intSqrt(n uint64) uint64 {
	r := uint64(math.Sqrt(float64(n)))
	for r > 0 && r > n/r {
		r--
	}
	for r+1 <= n/(r+1) {
		r++
	}
	return r
}

// ratio is the seed's (scanned - rotated)/(scanned + 1), where what was scanned
// and not taken counts as rotated; so does what only went to a slower node,
// where the kernel tells. ok is false where too little was scanned to tell.
func (h *history) ratio() (r float64, ok bool) {
	if !h.scan.known() || !h.steal.known() || h.scan.sum < minScanned {
		return 0, false
	}
	taken := h.steal.sum
	if h.demote.known() {
		taken = max(taken-h.demote.sum, 0)
	}
	rotated := max(h.scan.sum-taken, 0)
	return (h.scan.sum - rotated) / (h.scan.sum + 1), true
}

// scales works out what the cgroup's nodes are weighed with.
func (st *State) scales(in *Input, page float64) scales {
	s := min(swappinessOf(in.Swappiness), 200)
	sc := scales{page: page, anonPrio: float64(s + 1), filePrio: float64(200 - s), ratio: 1, anonPrice: in.AnonPrice, filePrice: in.FilePrice}
	if r, ok := st.own.ratio(); ok {
		sc.ratio = r
	}
	inactive, ok1 := total(in.Sample, memcg.NodeInactiveFile)
	active, ok2 := total(in.Sample, memcg.NodeActiveFile)
	sc.active = ok1 && ok2 && inactiveIsLow(inactive, active)
	anonIn, ok3 := total(in.Sample, memcg.NodeInactiveAnon)
	anonAct, ok4 := total(in.Sample, memcg.NodeActiveAnon)
	if s > 0 && ok1 && ok2 && ok3 && ok4 && in.swapHasRoom(page) {
		file, anon := float64(inactive)+float64(active), float64(anonIn)+float64(anonAct)
		sc.anon = file*sc.filePrio < anon*sc.anonPrio
	}
	return sc
}

func swappinessOf(s memcg.Swappiness) int {
	if v, ok := s.Get(); ok {
		return v
	}
	return kernelSwappiness
}

// total adds up one size over all nodes; ok is false where it is absent on any.
func total(s *memcg.Sample, k memcg.NodeStat) (sum uint64, ok bool) {
	for i := range s.Nodes {
		v, there := s.Nodes[i].Get(k).Get()
		if !there {
			return 0, false
		}
		sum = addSaturated(sum, v)
	}
	return sum, true
}

// swapHasRoom reports whether the swap limits and the host's swap are both
// known to take at least minSwap pages.
func (in *Input) swapHasRoom(page float64) bool {
	free, ok := in.Host.SwapFree.Get()
	if !ok || float64(free) < minSwap*page {
		return false
	}
	if in.Sample.SwapRoom.IsMax() {
		return true
	}
	room, ok := in.Sample.SwapRoom.Bytes()
	return ok && float64(room) >= minSwap*page
}

// weigh works out one node's share:
//
//	(anon x ratio x anon_prio + file x ratio x file_prio) / 200 / (1 + cost)
//
// in pages, rounded up, so that a node that can give anything has a weight.
func (sc *scales) weigh(n *memcg.NodeStats, h *history, fileOnly bool) Share {
	s := Share{Node: n.ID, FileOnly: fileOnly, Ratio: sc.ratio}
	if size, ok := h.size.Get(); ok && size == 0 {
		s.Why = WhyEmpty
		return s
	}
	file, anon, ok := sc.counted(n, h, fileOnly)
	if !ok {
		s.Why = WhyNoFigures
		return s
	}
	if r, ok := h.ratio(); ok {
		s.Ratio, s.OwnRatio = r, true
	}
	if file+anon == 0 {
		s.Why = WhyNothing
		return s
	}
	// The price of what would be taken, not of what would stay.
	if file > 0 {
		s.Cost += h.file.aMinute() * sc.filePrice / (list(n, memcg.NodeInactiveFile, memcg.NodeActiveFile) / sc.page)
	}
	if anon > 0 {
		s.Cost += h.anon.aMinute() * sc.anonPrice / (list(n, memcg.NodeInactiveAnon, memcg.NodeActiveAnon) / sc.page)
	}
	file, anon = file/sc.page, anon/sc.page
	w := (anon*s.Ratio*sc.anonPrio + file*s.Ratio*sc.filePrio) / 200 / (1 + s.Cost)
	if math.IsNaN(w) || s.Cost < 0 || math.IsInf(s.Cost, 0) {
		s.Why = WhyNoFigures
		return s
	}
	s.Weight = max(uint64(math.Ceil(min(w, 1<<62))), 1)
	return s
}

// list returns the bytes of both lists of a type, of which the inactive one is
// known and not empty or the active one counts.
func list(n *memcg.NodeStats, inactive, active memcg.NodeStat) float64 {
	i, _ := n.Get(inactive).Get()
	a, _ := n.Get(active).Get()
	return float64(i) + float64(a)
}

// counted returns the bytes of file and anon on a node that count for the
// request. ok is false where one that counts is not known, or its refaults are
// not.
func (sc *scales) counted(n *memcg.NodeStats, h *history, fileOnly bool) (file, anon float64, ok bool) {
	if sc.filePrio > 0 {
		v, there := n.Get(memcg.NodeInactiveFile).Get()
		if !there || !h.file.known() {
			return 0, 0, false
		}
		file = float64(v)
		if sc.active {
			v, _ := n.Get(memcg.NodeActiveFile).Get()
			file += float64(v)
		}
	}
	if sc.anon && !fileOnly {
		v, there := n.Get(memcg.NodeInactiveAnon).Get()
		if !there || !h.anon.known() {
			return 0, 0, false
		}
		anon = float64(v)
	}
	return file, anon, true
}
