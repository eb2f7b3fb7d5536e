package workingset

import "time"

// Cooling returns the kind of move that was in vain and is not tried again for
// another while, and how long that is to last in all. left is 0 where none is.
func (st *State) Cooling() (kind IntentKind, left, length time.Duration) {
	e := &st.episode
	if e.cool <= 0 {
		return 0, 0, 0
	}
	return e.kind, e.cool, max(e.cool, e.nextCool/2)
}

// Cool has a new State go on with a cool-down of an earlier one: what Cooling
// returned, less the time since. Longer ones than there are count as the longest.
func (st *State) Cool(kind IntentKind, left, length time.Duration) {
	if kind != KindMoveAnon && kind != KindMoveFile || left <= 0 {
		return
	}
	e := &st.episode
	e.kind, e.cool = kind, min(left, lastCool)
	e.nextCool = min(2*min(max(length, firstCool), lastCool), lastCool)
}
