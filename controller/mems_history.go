package controller

import (
	"slices"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
)

// memsChange is one change of a cgroup's set that was made or tried.
type memsChange struct {
	at          time.Time
	left, added memcg.NodeMask
}

// change books a change, from one set to another.
func (st *steering) change(now time.Time, from, to memcg.NodeMask) {
	st.changes = slices.DeleteFunc(st.changes, func(c memsChange) bool { return now.Sub(c.at) >= numapolicy.MemsMemory })
	st.changes = append(st.changes, memsChange{at: now, left: from.Without(to), added: to.Without(from)})
}

// at is when the last change was made or tried; zero before the first.
func (st *steering) at() time.Time {
	if len(st.changes) == 0 {
		return time.Time{}
	}
	return st.changes[len(st.changes)-1].at
}

// ended has the last change be made when it came to its end.
func (st *steering) ended(now time.Time) {
	if n := len(st.changes); n > 0 && now.After(st.at()) {
		st.changes[n-1].at = now
	}
}

// lately returns the changes as the node law wants them.
func (st *steering) lately(now time.Time) []numapolicy.MemsChange {
	st.ago = st.ago[:0]
	for i := range st.changes {
		c := &st.changes[i]
		st.ago = append(st.ago, numapolicy.MemsChange{Ago: now.Sub(c.at), Left: c.left, Added: c.added})
	}
	return st.ago
}
