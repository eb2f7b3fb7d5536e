package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// show puts into the record what people want to see of a cgroup beside what
// decided. The nodes are in memory of the cgroup's own, reused for each record.
func (c *cgroup) show(r *telemetry.Record, s *memcg.Sample, d *workingset.Decision) {
	r.Meaning = d.Verdict.Sentence()
	cost, known := d.Signals.Cost.Get()
	r.Cost = memcg.Term{Name: "refault cost", Value: cost * 100, Unit: "%", Known: known}
	c.nodes = c.nodes[:0]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		c.nodes = append(c.nodes, telemetry.NodeUse{Node: n.ID, Anon: n.Get(memcg.NodeAnon), File: n.Get(memcg.NodeFile)})
	}
	r.Nodes = c.nodes
}

// told tells Ticks of a round that began at now and is over. err is why
// nothing was decided in it.
func (l *Loop) told(now time.Time, early bool, err error) {
	if l.Ticks == nil {
		return
	}
	l.Ticks.Ticked(&telemetry.Tick{
		Began: now, Took: time.Since(now), Interval: l.Interval, Mode: l.Core.mode, Early: early,
		Watched: len(l.watched), InFlight: l.running, Err: err, Host: &l.host,
	})
}
