package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// companion is the agent of a run. With the agent off it is nobody, and does nothing.
type companion struct{ agent *guest.Agent }

// firstLooks is how many samples of a cgroup the agent takes before a run begins: from the second
// on it knows rates. Without an agent as much time passes.
const (
	firstLooks     = 2
	firstWithin    = time.Minute
	firstLooksTime = 3 * time.Second
)

// accompany starts the agent where the run has one and waits until it knows the cgroups.
func accompany(ctx context.Context, g *guest.Guest, config string, cgroups ...guest.Cgroup) (companion, error) {
	if g.Spec.Agent != "on" {
		select {
		case <-ctx.Done():
		case <-time.After(firstLooksTime):
		}
		return companion{}, ctx.Err()
	}
	a, err := guest.StartAgent(config, guest.Enforce)
	if err != nil {
		return companion{}, err
	}
	c := companion{a}
	const poll = 100 * time.Millisecond
	deadline := time.Now().Add(firstWithin)
	for _, cg := range cgroups {
		for len(a.Decisions(cg.Path)) < firstLooks {
			err := a.Alive()
			if err == nil && time.Now().After(deadline) {
				err = fmt.Errorf("the agent did not decide about %s within %s: %s", cg.Path, firstWithin, a.Transcript())
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				c.end()
				return companion{}, err
			}
			time.Sleep(poll)
		}
	}
	return c, nil
}

// alive returns an error when the agent or a workload has ended by itself.
func (c companion) alive(procs ...*guest.Proc) error {
	if c.agent != nil {
		if err := c.agent.Alive(); err != nil {
			return err
		}
	}
	for _, p := range procs {
		if err := p.Alive(); err != nil {
			return err
		}
	}
	return nil
}

// decisions are the agent's about a cgroup.
func (c companion) decisions(cg guest.Cgroup) []guest.Decision {
	if c.agent == nil {
		return nil
	}
	return c.agent.Decisions(cg.Path)
}

// reclaimed is what the agent measured to have taken from a cgroup, in bytes.
func (c companion) reclaimed(cg guest.Cgroup) uint64 {
	if c.agent == nil {
		return 0
	}
	_, bytes := c.agent.Latest(cg.Path)
	return bytes
}

// finish ends the agent and keeps what it said: its summary, the end of its log, and its
// decisions about the cgroups as a table with times since start.
func (c companion) finish(run *result.Run, start time.Time, cgroups ...guest.Cgroup) error {
	if c.agent == nil {
		return nil
	}
	st, err := c.agent.Stop()
	if err != nil {
		return err
	}
	run.AgentStats = &st
	run.Artifacts = map[string]string{"agent.jsonl": c.agent.Transcript()}
	for _, cg := range cgroups {
		run.Artifacts["decisions-"+cg.Path[1:]+".txt"] = table(c.decisions(cg), start)
	}
	return nil
}

// end kills the agent if it is still there.
func (c companion) end() {
	if c.agent != nil {
		c.agent.Kill()
	}
}

// table writes decisions one a line: when, what was judged, what was asked and what came of the
// request before.
func table(list []guest.Decision, start time.Time) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "%7.2fs %s/%s", d.Heard.Sub(start).Seconds(), d.Verdict, d.Rule)
		if d.Want > 0 {
			fmt.Fprintf(&b, " want %d KiB swappiness %s acted %t", d.Want>>10, d.Swappiness, d.Acted)
		}
		if d.Held != "" {
			fmt.Fprintf(&b, " held: %s", d.Held)
		}
		if o := d.Outcome; o != nil && o.Reclaimed != nil {
			fmt.Fprintf(&b, " | took %d KiB in %d ms", *o.Reclaimed>>10, o.TookUS/1000)
			if o.SwapOut != nil {
				fmt.Fprintf(&b, ", %d to swap", *o.SwapOut>>10)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
