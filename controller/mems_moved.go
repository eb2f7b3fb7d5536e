package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
)

// moving is what the core keeps of a change of cpuset.mems until it has seen
// whether memory has moved.
type moving struct {
	due        bool           // the write has come back and was not looked at
	again      bool           // it was made a second time
	to, before memcg.NodeMask // the set, and the one in force before
	left       memcg.NodeMask // nodes in the latter alone
	was        memcg.Field    // bytes of anon there
}

// movingTo is a change that is about to be made.
func movingTo(to memcg.NodeMask, s *memcg.Sample) moving {
	left := s.MemsEffective.Without(to)
	return moving{to: to, before: s.MemsEffective, left: left, was: numapolicy.AnonOn(s, left)}
}

// moveAgain looks, once after each change, whether memory has moved off the nodes
// that were left. Where it has not, the set before and then the new one are
// written by one worker: the first of these writes tells the kernel which nodes
// to move from, and the second moves (numapolicy.Stayed). It is done once; after
// that the record says what stayed. It reports whether it has asked for that.
func (c *Core) moveAgain(now time.Time, cg *cgroup, s *memcg.Sample, r *telemetry.Record) bool {
	m := &cg.steering.moving
	if !m.due {
		return false
	}
	still := numapolicy.AnonOn(s, m.left)
	if s.Mems != m.to || !numapolicy.Stayed(m.was, still) {
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
