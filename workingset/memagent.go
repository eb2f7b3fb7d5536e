package workingset

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

const (
	// moveAnonFrom is the swappiness from which a request takes mostly anon,
	// and moveFileTo the one up to which it takes mostly file. A policy that
	// allows neither cannot move one side for the other.
	moveAnonFrom = 150
	moveFileTo   = 50
)

// memagent is the full law: what follows from each verdict.
//
//	unknown, no process      nothing
//	throttled, limit-bound   nothing: more reclaim is more pressure. The limit
//	                         must rise, which is for others to do
//	file-thrash              move cold anon out, as much as is needed, once
//	anon-thrash              the mirror image
//	streaming                headroom without swapping, and the swap guard
//	growing                  headroom
//	idle, fits               headroom, then squeeze
func (st *State) memagent(d *Decision, v *view) (Intent, string) {
	s := &d.Signals
	switch d.Verdict {
	case Throttled, LimitBound:
		return Intent{}, d.Verdict.String()
	case FileThrash:
		i, rule := st.moveAnon(d, v)
		return v.orHeadroom(i, rule, d)
	case AnonThrash:
		i, rule := st.moveFile(d, v)
		return v.orHeadroom(i, rule, d)
	}
	if st.episode.unfinished(KindMoveAnon) && d.Verdict != Streaming {
		// A paced loop shows itself once in a while; what its last pass was
		// found to lack is still to be moved before the next.
		if i, rule := st.moveAnon(d, v); i.Bytes > 0 {
			return i, rule
		}
	}
	st.episode.end(d.Verdict)
	if d.Verdict == Streaming {
		i, rule := v.orHeadroom(Intent{}, "streaming", d)
		i.SwapGuard = guard(d, v)
		return i, rule
	}
	if i, ok := v.headroom(); ok {
		return i, "headroom"
	}
	if d.Verdict == Growing {
		return Intent{}, "growing"
	}
	return st.squeezeNow(s, v, s.CostSmooth.or(0), v.in.Gens)
}

// orHeadroom falls back to headroom where an intent asks for nothing.
func (v *view) orHeadroom(i Intent, rule string, d *Decision) (Intent, string) {
	if i.Bytes > 0 {
		return i, rule
	}
	if h, ok := v.headroom(); ok {
		d.Clipped = ""
		return h, "headroom"
	}
	return i, rule
}

// moveAnon answers a file thrash: cold anon goes out, at the highest
// swappiness the policy allows.
func (st *State) moveAnon(d *Decision, v *view) (Intent, string) {
	s := &d.Signals
	_, hi, ok := v.policy.Swappiness.span()
	switch {
	case !ok || hi < moveAnonFrom:
		return Intent{}, "policy-forbids-move"
	case !v.swap:
		return Intent{}, "no-swap-room"
	case s.Anon.Cost.or(0)*cheaper > s.File.Cost.or(0):
		return Intent{}, "anon-not-cheap"
	}
	cold, older := v.coldest(anon)
	bytes, rule, clipped := st.move(KindMoveAnon, s, v, cold)
	if room := float64(v.floor.room); bytes > room {
		bytes, clipped = room, "swap-room"
	}
	d.Clipped = clipped
	return Intent{Kind: KindMoveAnon, Bytes: bytesOf(bytes), Swappiness: memcg.SwappinessOf(hi), OlderThan: older}, rule
}

// moveFile is the mirror image: cold file goes, at the lowest swappiness.
func (st *State) moveFile(d *Decision, v *view) (Intent, string) {
	s := &d.Signals
	lo, _, ok := v.policy.Swappiness.span()
	switch {
	case !ok || lo > moveFileTo:
		return Intent{}, "policy-forbids-move"
	case s.File.Cost.or(0)*cheaper > s.Anon.Cost.or(0):
		return Intent{}, "file-not-cheap"
	}
	cold, older := v.coldest(file)
	bytes, rule, clipped := st.move(KindMoveFile, s, v, cold)
	d.Clipped = clipped
	return Intent{Kind: KindMoveFile, Bytes: bytesOf(bytes), Swappiness: memcg.SwappinessOf(lo), OlderThan: older}, rule
}

// coldest is how much of one type may be moved, in bytes, and from which age on
// where that is known. Generations that are old enough are the best of
// evidence. A multi-gen LRU that has none, since nobody has aged it of late,
// leaves the choice to the kernel, which ages on its own before it takes
// anything: its inactive list is then empty for want of looking, not of cold
// memory. What bounds the move is the need, and the price of what comes back.
func (v *view) coldest(t int) (bytes float64, older time.Duration) {
	switch {
	case v.in.ClassicLRU:
		return v.lists.inactive[t], 0
	case v.in.Gens == nil || v.policy.Squeeze.IdleAge <= 0:
		return v.lists.size(t), 0
	}
	a, f := v.in.Gens.olderThan(v.policy.Squeeze.IdleAge)
	if pages := [types]uint64{anon: a, file: f}[t]; pages > 0 {
		return float64(pages) * v.page, v.policy.Squeeze.IdleAge
	}
	return v.lists.size(t), 0
}
