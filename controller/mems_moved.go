package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
)

const (
	// movingQuiet is how long nothing must have moved off the nodes that were left
	// before a move whose write has not come back in time is taken to be over. There
	// is nobody to ask: the kernel tells only the writer. Longer puts off what comes
	// after it; shorter takes a pause for the end.
	movingQuiet = 10 * time.Second
	// movingMost bounds that. A move of some hundred MiB a second has taken 100 GiB
	// by then; what still goes away is being reclaimed.
	movingMost = 5 * time.Minute
	// movingLeast is how many bytes less count as a move: figures by node lag by up to
	// 64 pages for each CPU.
	movingLeast = 1 << 20
)

// moving is what the core keeps of a change of cpuset.mems until it has seen
// whether memory has moved.
type moving struct {
	due        bool           // the write has come back, or was waited for long enough, and was not looked at
	again      bool           // it is not made once more: it was, or what it moves from is known
	to, before memcg.NodeMask // the set, and the one in force before
	left       memcg.NodeMask // nodes in the latter alone
	was        memcg.Field    // bytes of anon there
	lay        memcg.Field    // bytes of anon and file there

	inFlight bool // the write had not come back
	since    time.Time
	fellAt   time.Time // when it was seen to go on
	low      uint64    // bytes there, then
}

// movingTo is a change that is about to be made.
func movingTo(to memcg.NodeMask, s *memcg.Sample) moving {
	left := s.MemsEffective.Without(to)
	return moving{to: to, before: s.MemsEffective, left: left, was: numapolicy.AnonOn(s, left), lay: numapolicy.LiesOn(s, left)}
}

// wrote notes that the write of the set is over, or goes on without anybody who waits.
func (m *moving) wrote(now time.Time, inFlight bool) {
	m.due, m.inFlight = true, inFlight
	m.since, m.fellAt = now, now
	m.low, _ = m.lay.Get()
}

// goesOn reports whether the kernel seems to be moving memory still, for a write that
// was not waited for.
func (m *moving) goesOn(now time.Time, there memcg.Field) bool {
	lies, ok := there.Get()
	if !ok || now.Sub(m.since) >= movingMost {
		return false
	}
	if lies+movingLeast <= m.low {
		m.low, m.fellAt = lies, now
	}
	return lies >= movingLeast && now.Sub(m.fellAt) < movingQuiet
}

// lookBack looks after each change whether memory has moved off the nodes that were
// left: once, or for a write that was not waited for until nothing moves any more. A
// change counts from its end. Where nothing has moved, the set before and then the new
// one are written by one worker: the first of these writes tells the kernel which nodes
// to move from, and the second moves (numapolicy.Stayed). It is done once; after that
// the record says what stayed. It reports whether there is nothing to plan yet.
func (c *Core) lookBack(now time.Time, cg *cgroup, s *memcg.Sample, r *telemetry.Record) bool {
	m := &cg.steering.moving
	if !m.due {
		return false
	}
	if s.MemsEffective != m.to {
		m.due = m.inFlight && now.Sub(m.since) < movingMost // the kernel may not have begun
		return false
	}
	there := numapolicy.LiesOn(s, m.left)
	if lay, ok := m.lay.Get(); ok {
		if lies, ok := there.Get(); ok {
			r.Mems.Moved = lay - min(lies, lay)
		}
	}
	if m.inFlight {
		if m.goesOn(now, there) {
			cg.steering.ended(now)
			r.Mems.Rule = "still-moving"
			return true
		}
		cg.steering.ended(m.fellAt)
		m.inFlight = false
	}
	still := numapolicy.AnonOn(s, m.left)
	if !numapolicy.Stayed(m.was, still) {
		m.due = false
		return false
	}
	r.Mems.Stays, _ = still.Get()
	if m.again {
		m.due = false
		return false
	}
	r.Mems.Rule, r.Mems.Want, r.Mems.Moves = "moved-nothing", m.to.String(), r.Mems.Stays
	r.Mems.Held = c.set(now, cg, memcg.KnobMems, r.Mems.Want, "numa.mems moved-nothing")
	if r.Mems.Held == "" {
		c.settings[len(c.settings)-1].Setting.By = m.before.String()
		m.due, m.again = false, true
	}
	return true
}
