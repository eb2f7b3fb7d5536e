package controller

import (
	"errors"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// steering is what the core keeps of a cgroup's cpuset.mems.
type steering struct {
	holds   bool                    // the file holds a set of ours
	found   memcg.NodeMask          // what it held before, where ours is there
	wrote   memcg.NodeMask          // the last set of ours
	changed bool                    // it was ever written, or tried in vain
	changes []memsChange            // of the last numapolicy.MemsMemory
	ago     []numapolicy.MemsChange // reused
	moving  moving
}

// steers is what is kept of a cgroup whose cpuset.mems is looked after, which most are not.
func (cg *cgroup) steers() *steering {
	if cg.steering == nil {
		cg.steering = &steering{}
	}
	return cg.steering
}

// memsModes are the node law's names for what a policy says of cpuset.mems.
var memsModes = map[config.NumaMems]numapolicy.MemsMode{
	config.NumaMemsKeep:       numapolicy.MemsKeep,
	config.NumaMemsAvoidShort: numapolicy.MemsAvoidShort,
	config.NumaMemsCompact:    numapolicy.MemsCompact,
	config.NumaMemsSpread:     numapolicy.MemsSpread,
}

// WantsParent reports whether the plan for a cgroup rests on the nodes that its
// parent may use.
func (c *Core) WantsParent(id memcg.ID) bool {
	cg, ok := c.cgroups[id]
	return ok && cg.policy.Numa.Mems != config.NumaMemsKeep
}

// steer plans which nodes a cgroup should use, and has the file written where
// they are others. The write blocks for as long as the kernel moves memory: it
// is a worker's, and the tick goes on.
func (c *Core) steer(now time.Time, host *memcg.HostSample, cg *cgroup, ob Observation, d *workingset.Decision, r *telemetry.Record) {
	mode := memsModes[cg.policy.Numa.Mems]
	switch {
	case mode == numapolicy.MemsKeep:
		return
	case ob.ParentErr != nil && !errors.Is(ob.ParentErr, memcg.ErrUnsupported):
		r.Mems.Rule = "parent-unknown"
		return
	case c.setting[cg.id]:
		r.Mems.Rule = "in-flight"
		return
	}
	st := cg.steers()
	if c.lookBack(now, cg, ob.Sample, r) {
		return
	}
	in := numapolicy.MemsInput{
		Mode: mode, Sample: ob.Sample, Host: host, Nodes: &c.nodes.levels, Parent: ob.ParentMems,
		Original: ob.Sample.Mems, Wrote: st.wrote, Written: st.changed, SinceChange: now.Sub(st.at()), Changes: st.lately(now),
		Named: memcg.NodesOf(cg.policy.Numa.Nodes...), WorkingSet: needs(ob.Sample, d),
	}
	if st.holds {
		in.Original = st.found
	}
	plan := numapolicy.PlanMems(in)
	r.Mems.Rule = plan.Rule
	if !plan.Widen.Empty() {
		r.Mems.Widen = plan.Widen.String()
	}
	if !plan.Set {
		return
	}
	r.Mems.Want, r.Mems.Moves = plan.Mems.String(), plan.Moves
	value := r.Mems.Want
	if st.holds && st.found.Empty() && plan.Mems == in.Parent {
		value = "" // all that the parent grants is what inheriting was
	}
	if r.Mems.Held = c.set(now, cg, memcg.KnobMems, value, "numa.mems "+plan.Rule); r.Mems.Held == "" {
		st.moving = movingTo(plan.Mems, ob.Sample)
	}
}

// needs is how much memory a cgroup needs: what it has, and what is out and
// comes back. It errs high, so that fewer nodes are chosen only where they hold
// all of it. Absent where the law could not tell.
func needs(s *memcg.Sample, d *workingset.Decision) memcg.Field {
	out, ok := d.Signals.Short.Get()
	if !ok {
		return memcg.Field{}
	}
	return memcg.Sum(s.Current, memcg.Value(uint64(max(out, 0))))
}

// steered books what came of a write of cpuset.mems. A set that was not granted
// has been taken back by the journal's keeper, and is as good as a change for
// the time that must pass before the next.
func (cg *cgroup) steered(now time.Time, d Result) {
	if d.Setting.Knob != memcg.KnobMems {
		return
	}
	st := cg.steers()
	wrote, err := memcg.ParseNodeMask(d.Setting.Value)
	from, to := st.moving.before, st.moving.to
	if d.Setting.By != "" { // it only moves what the change before has left behind
		from = to
	}
	switch {
	case err != nil:
		return
	case d.Err != nil && d.Setting.By != "":
		st.wrote, _ = memcg.ParseNodeMask(d.Setting.By) // it got that far
		return
	case errors.Is(d.Err, memcg.ErrPartial) && d.Set.InFlight:
		// The kernel has not begun, and will: the set is ours when it comes.
	case d.Err != nil && !errors.Is(d.Err, journal.ErrNotGranted):
		return
	case d.Err != nil:
		st.changed, st.wrote = true, wrote
		st.change(now, from, from)
		return
	case d.Setting.Value == "" || d.Set.Outcome == journal.PutBack:
		if st.holds {
			st.holds = false
			st.change(now, from, to)
			st.moving.again = true
			st.moving.wrote(now, d.Set.InFlight || d.Undone.InFlight)
		}
		return
	case d.Set.Outcome != journal.Written:
		return
	}
	if !st.holds {
		if st.found, err = memcg.ParseNodeMask(d.Set.Found); err != nil {
			st.found = memcg.NodeMask{}
		}
	}
	st.holds, st.changed, st.wrote = true, true, wrote
	st.change(now, from, to)
	st.moving.wrote(now, d.Set.InFlight)
}
