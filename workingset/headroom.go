package workingset

import "github.com/memagent/memagent/memcg"

const (
	// headroomMost bounds headroom as a part of the limit, however fast the
	// cgroup allocates: an eighth is as much as may stay unused for the sake of
	// peace.
	headroomMost = 1.0 / 8
	// headroomReach is the time in which a cgroup must not fill its headroom:
	// the pause between two glances at memory.current, one write of some 50 ms
	// that is under way already, and as much again for a busy CPU.
	headroomReach = 0.1 // seconds
	// headroomMissed bounds headroom while anon thrashes, as a part of what is
	// out and comes back: what is kept free is missed too, so that the refaults
	// grow by that part, 5 %.
	headroomMissed = 0.05
	// streamLeaves is the part of the room that a stream has, file and what is
	// free below the limit, that headroom leaves to it, and streamKeeps the part
	// that no request goes below: what was read ahead would be taken before it is
	// read, and be read twice. Measured with 18 MB of room and 15 MB of headroom:
	// 10 to 66 % more pages taken than read (2026-12-01).
	streamLeaves = 0.5
	streamKeeps  = 0.25
	// mostly is the part of the anon that was taken of late which must have come
	// back for more of it to come back too. Below half, most was cold.
	mostly = 0.5
)

// Hold is what keeps a cgroup below its limit between two samples, by the
// verdict of the last: a look at memory.current alone tells when to ask.
type Hold struct {
	// Above is the memory.current, in bytes, above which headroom is missing;
	// 0 where nothing is to be kept free.
	Above      uint64
	Limit      uint64           // bytes; what must not be met
	Swappiness memcg.Swappiness // of the requests; the zero value passes nothing
	Floor      uint64           // bytes at which they stop
	// Optional: requests take anon as the kernel would at the limit, so that
	// there is no gain but that nobody has to wait for reclaim. It may be let go
	// where it does not get that far.
	Optional bool
}

// want returns the headroom in bytes below a limit: the policy's, or what is
// charged while the agent reacts if that is more, at most an eighth of the
// limit.
func (h *Headroom) want(limit, filling float64) float64 {
	if !h.On {
		return 0
	}
	return min(max(h.asked(limit), filling), max(headroomMost*limit, h.Fraction*limit))
}

// asked is the policy's own figure, in bytes.
func (h *Headroom) asked(limit float64) float64 { return max(h.Fraction*limit, float64(h.Bytes)) }

// hold says where headroom begins and with which swappiness it is made. While
// anon that was taken comes back, headroom is bounded by what is out, and where
// that is less than what is charged while the agent reacts, the kernel's reclaim
// at the limit is left alone: the agent's would only come too late. While a
// stream passes, or what grows is file that nobody has missed yet, it takes file
// only, as far as the policy lets it: with a least swappiness above 0 it takes anon
// too, and is bounded as above. It leaves such file half of its room. Where less
// than a tenth of memory is above the floor nothing is kept free: that is the last of
// the cache, the limit is too small, and what is taken would be read again at once
// (case c62).
func (st *State) hold(d *Decision, v *view) (h Hold, ok bool) {
	limit, ok := d.Signals.Limit.Get()
	if !ok || !v.policy.Headroom.On || d.Signals.Reclaimable.or(0)+v.pinned() < tight*v.current {
		return Hold{}, false
	}
	asked := v.policy.Headroom.asked(limit)
	filling := d.Signals.FillRate.or(0) * headroomReach
	h.Swappiness = v.policy.Swappiness.pass(d.Signals.Swappiness)
	passing := d.Verdict == Streaming || d.Verdict == Growing && 2*d.Signals.AnonGrowth.or(0) < d.Signals.AllocRate.or(0)
	if passing {
		h.Swappiness = v.policy.Swappiness.least()
	}
	swappiness, set := h.Swappiness.Get()
	takesAnon := !set || swappiness > 0 || v.lists.size(file) < asked
	h.Optional = takesAnon && d.Verdict != FileThrash || d.Verdict == AnonThrash
	want := v.policy.Headroom.want(limit, filling)
	switch {
	case d.Verdict == FileThrash:
		want = asked // what fills it is what it has just lost
	case d.Verdict == AnonThrash, takesAnon && st.anonReturns(v):
		if want = min(asked, headroomMissed*d.Signals.Short.or(0)); want < filling {
			return Hold{}, false
		}
	}
	h.Limit, h.Floor = bytesOf(limit), v.floor.bytes
	if passing {
		room := v.lists.size(file) + max(0, limit-v.current)
		want = min(want, (1-streamLeaves)*room)
		h.Floor = max(h.Floor, bytesOf(limit-(1-streamKeeps)*room))
	}
	h.Above = bytesOf(limit - want)
	return h, true
}

// anonReturns reports whether most of the anon that is taken comes back, of
// late or since the last sample: after a growth that has just ended, what it
// pushed out still outweighs what returns since.
func (st *State) anonReturns(v *view) bool {
	return st.flows.returning(anon) > mostly || v.d.evict[anon] > 0 && v.d.refault[anon] > mostly*v.d.evict[anon]
}

// holdFor is the hold until the next decision, none where the law asks for no
// headroom either. Where swap is to be kept free it takes no anon.
func (v *view) holdFor(verdict Verdict) Hold {
	h := v.hold
	if !v.holds || v.policy.Law != Memagent || verdict == Throttled || verdict == LimitBound {
		return Hold{}
	}
	if n, set := h.Swappiness.Get(); set && n == 0 || !v.floor.swapThere || float64(v.floor.hostRoom) > headroomMost*v.current {
		return h
	}
	if lo, ok := v.policy.Swappiness.least().Get(); !ok || lo > 0 {
		return Hold{}
	}
	h.Swappiness = v.policy.Swappiness.least()
	return h
}

// headroom asks for what is missing between memory.current and the limit less
// headroom.
func (v *view) headroom() (Intent, bool) {
	over := v.current - float64(v.hold.Above)
	if !v.holds || !(over >= v.page) {
		return Intent{}, false
	}
	return Intent{Kind: KindHeadroom, Bytes: bytesOf(over), Swappiness: v.hold.Swappiness}, true
}

const (
	// guardFile is the part of memory.current that file, and what is free below
	// the limit, must exceed for the swap guard to begin, and guardFileLow for it
	// to go on: below that the kernel soon has nothing but anon left to take, and
	// a guard could end in an OOM kill.
	guardFile    = 0.10
	guardFileLow = 0.05
	// guardGrowth is the growth of anon, of memory.current a second, above
	// which the guard lets go: of late, and since the last sample. A growth that
	// has ended does not hold it up, and a page or two do not end it.
	guardGrowth = 0.002
)

// pinned returns the bytes of anon that stay only because the swap guard holds:
// that is not the limit being too small.
func (v *view) pinned() float64 {
	if !v.in.GuardHeld || v.policy.Swappiness.neverSwaps() {
		return 0
	}
	return float64(min(v.floor.stuck, v.floor.hostRoom))
}

// guard reports whether swap should be pinned: a stream is passing, the kernel
// swaps for it or was doing so until the guard, file is plenty and anon still.
func guard(d *Decision, v *view) bool {
	s := &d.Signals
	if !v.policy.SwapGuard || d.Verdict != Streaming {
		return false
	}
	free, least := max(0, s.Limit.or(v.current)-v.current), guardFile // file will fill what is free
	if v.in.GuardHeld {
		least = guardFileLow
	}
	if v.lists.size(file)+free < least*v.current {
		return false
	}
	if most := guardGrowth * v.current; s.AnonGrowth.above(most) && v.d.anonGrown(v.page) > most*v.d.seconds {
		return false
	}
	return v.in.GuardHeld || s.KernelEvictsAnon.above(1)
}
