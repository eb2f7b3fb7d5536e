package controller

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// Describer tells which container a cgroup belongs to, as container.Catalog
// does. It is asked by Track alone.
type Describer interface {
	// Round begins a round of questions, with every cgroup there is where
	// complete is true.
	Round(all []memcg.ID, complete bool)
	// Describe returns what is known; where it is not settled it is asked again
	// in the next round.
	Describe(id memcg.ID) (d container.Description, settled bool)
}

// DescribeBy has the core ask d for containers: for their names, and for what
// they ask for themselves. Without it, cgroups are known by their paths alone.
func (c *Core) DescribeBy(d Describer) { c.describer = c.tape.hear(d) }

// who is what is known of the container of a cgroup.
type who struct {
	d       container.Description
	settled bool
	// payload tells whether there was a cgroup of its container's processes in it
	// when that was asked.
	payload bool
	name    string
	shown   telemetry.Container
}

// nobody is who most cgroups are: no container, and nothing asked for. It is shared.
var nobody = &who{settled: true}

// kept is what is kept of it.
func (w who) kept() *who {
	if reflect.DeepEqual(w, *nobody) {
		return nobody
	}
	return &w
}

// tell puts it into a record.
func (w *who) tell(r *telemetry.Record) { r.Name, r.Container = w.name, w.shown }

// ask asks who a cgroup is.
func (c *Core) ask(id memcg.ID) who {
	if c.describer == nil {
		return who{settled: true}
	}
	d, settled := c.describer.Describe(id)
	return who{d: d, settled: settled, payload: c.payloads[id.Path]}
}

// policyFor returns the policy of a cgroup, with those wishes of its container
// that it grants, and has w say what of them. nil: the cgroup is not watched.
func (c *Core) policyFor(id memcg.ID, w *who) *config.Policy {
	d := &w.d
	policy := MatchDescribed(c.cfg, id, d, c.payloads)
	if policy == nil {
		return nil
	}
	wishes, faults := c.cfg.Wishes(d.Annotations, d.Swappiness)
	if faults = append(d.Faults[:len(d.Faults):len(d.Faults)], faults...); len(faults) > 0 && (d.Inner == "" || d.Inner == container.Payload) {
		c.notify.Warn("container "+strings.TrimSuffix(id.Path, container.Payload), errors.Join(faults...), "this part of what its container says, or all of it, is passed over")
	}
	if !d.Known() {
		return policy
	}
	granted, denied := policy.Grant(wishes)
	w.name = d.Label()
	w.shown = telemetry.Container{
		ID: d.ID, Runtime: d.Runtime, Inner: d.Inner, PodUID: d.Pod.UID, Namespace: d.Pod.Namespace, Pod: d.Pod.Name, Name: d.Name,
		Asks: inWords(d, wishes, denied),
	}
	return granted
}

// MatchDescribed returns the policy that a cgroup falls under, given what is
// known of its container and where containers' processes are; nil where it is not
// watched.
func MatchDescribed(cfg *config.Config, id memcg.ID, d *container.Description, in Payloads) *config.Policy {
	policy := cfg.MatchContainer(id.Path, d.Annotations)
	if policy != nil && in.standFor(cfg, id, d, policy) {
		return nil
	}
	return policy
}

// Payloads has the paths of the cgroups in which there is one by the name that
// crun gives to that of a container's processes.
type Payloads map[string]bool

// FindPayloads looks for them among all cgroups.
func FindPayloads(all []memcg.ID) Payloads {
	p := Payloads{}
	for _, id := range all {
		if outer, ok := strings.CutSuffix(id.Path, container.Payload); ok {
			p[outer] = true
		}
	}
	return p
}

// standFor reports whether the cgroup of a container's processes stands for the
// container's own, where both fall under one policy: all the memory is there, and
// so are the limits, which crun before 1.8.5 sets nowhere else.
func (p Payloads) standFor(cfg *config.Config, id memcg.ID, d *container.Description, policy *config.Policy) bool {
	return p[id.Path] && d.ID != "" && d.Inner == "" && cfg.MatchContainer(id.Path+container.Payload, d.Annotations) == policy
}

// inWords says for people what a container's spec asks for, and what of
// that is not granted.
func inWords(d *container.Description, wishes config.Wishes, denied []string) string {
	var out []string
	if text := wishes.String(); text != "" {
		out = append(out, text)
	}
	if b, ok := d.Limit.Bytes(); ok {
		out = append(out, "a limit of "+telemetry.Bytes(b))
	}
	if b, ok := d.Reservation.Bytes(); ok {
		out = append(out, "a reservation of "+telemetry.Bytes(b))
	}
	if !d.Mems.Empty() {
		out = append(out, "memory of nodes "+d.Mems.String())
	}
	text := strings.Join(out, ", ")
	if len(denied) > 0 {
		text += " (not granted: " + strings.Join(denied, "; ") + ")"
	}
	return text
}

// askAgain asks who a watched cgroup is where that was not settled or its payload
// came or went, and has it start anew where its policy is another by that, or where
// another stands for it now.
func (c *Core) askAgain(cg *cgroup, now time.Time) {
	if cg.who.settled && c.payloads[cg.id.Path] == cg.who.payload {
		return
	}
	who := c.ask(cg.id)
	policy := c.policyFor(cg.id, &who)
	switch {
	case policy == nil:
		c.drop(cg)
		c.unwatched = append(c.unwatched, cg.id)
	case samePolicy(cg.policy, policy):
		cg.policy, cg.law, cg.who = policy, lawPolicy(c.cfg, policy), who.kept()
	default:
		c.drop(cg)
		c.watch(cg.id, policy, who, now)
	}
}

// Unwatched returns the cgroups that the last Track found to have no policy by
// what is now known of their containers, though they are still there.
func (c *Core) Unwatched() []memcg.ID { return c.unwatched }
