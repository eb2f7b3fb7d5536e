package workingset

// headroomMost bounds headroom as a part of the limit, however fast the cgroup
// allocates: an eighth is as much as may stay unused for the sake of peace.
const headroomMost = 1.0 / 8

// want returns the headroom in bytes below a limit: the policy's, or what is
// charged until the next look if that is more, at most an eighth of the limit.
func (h *Headroom) want(limit, filling float64) float64 {
	if !h.On {
		return 0
	}
	return min(max(h.Fraction*limit, float64(h.Bytes), filling), max(headroomMost*limit, h.Fraction*limit))
}

// headroom asks for what is missing between memory.current and the limit less
// headroom. While a stream passes, or what grows is file that nobody has missed
// yet, it takes file only, as far as the policy lets it. Where less than a tenth of memory is above the floor it asks for
// nothing: that is the last of the cache, the limit is too small, and what is
// taken would be read again at once (case c62).
func (st *State) headroom(d *Decision, v *view) (Intent, bool) {
	limit, ok := d.Signals.Limit.Get()
	if !ok || !v.policy.Headroom.On || d.Signals.Reclaimable.or(0) < tight*v.current {
		return Intent{}, false
	}
	filling := d.Signals.FillRate.or(0) * v.d.seconds
	if d.Verdict == FileThrash {
		filling = 0 // what fills it is what it has just lost
	}
	over := v.current - (limit - v.policy.Headroom.want(limit, filling))
	if !(over >= v.page) {
		return Intent{}, false
	}
	i := Intent{Kind: KindHeadroom, Bytes: bytesOf(over), Swappiness: v.policy.Swappiness.pass(d.Signals.Swappiness)}
	fileGrows := d.Verdict == Growing && 2*d.Signals.AnonGrowth.or(0) < d.Signals.AllocRate.or(0)
	if d.Verdict == Streaming || fileGrows {
		i.Swappiness = v.policy.Swappiness.least()
	}
	return i, true
}

const (
	// guardFileLow is the part of memory.current that file must exceed for the
	// swap guard: below it the kernel has nothing but anon left to take, and
	// a guard could end in an OOM kill.
	guardFileLow = 0.10
	// guardGrowth is the growth of anon, of memory.current a second, above
	// which the guard lets go.
	guardGrowth = 0.002
)

// guard reports whether swap should be pinned: a stream is passing, the kernel
// swaps for it or was doing so until the guard, file is plenty and anon still.
func guard(d *Decision, v *view) bool {
	s := &d.Signals
	if !v.policy.SwapGuard || d.Verdict != Streaming {
		return false
	}
	if v.lists.size(file) < guardFileLow*v.current || s.AnonGrowth.above(guardGrowth*v.current) {
		return false
	}
	return v.in.GuardHeld || s.KernelEvictsAnon.above(1)
}
