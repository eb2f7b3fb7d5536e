package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// wire returns the row as it is told. It shares no memory with h.
func (h *history) wire() Cgroup {
	w := &h.latest
	c := Cgroup{
		Path: h.id.Path, Name: w.label(h.id.Path), Inode: h.id.Inode,
		Policy: w.policy, Mode: w.mode, Seen: w.seen, Verdict: w.verdict, Rule: w.rule, Error: w.err,
		Current: number(w.current), Anon: number(w.anon), File: number(w.file), Swap: number(w.swap), Lent: number(w.lent),
	}
	absent := func(name string, state memcg.State) {
		if state == memcg.Present {
			state = memcg.Missing // there is nothing to compare with
		}
		if c.Absent == nil {
			c.Absent = make(map[string]string)
		}
		c.Absent[name] = state.String()
	}
	for _, f := range [...]struct {
		name  string
		field memcg.Field
	}{{"current", w.current}, {"anon", w.anon}, {"file", w.file}, {"swap", w.swap}, {"lent", w.lent}} {
		if !f.field.Known() {
			absent(f.name, f.field.State())
		}
	}
	if n, ok := w.refaults.Get(); ok && w.elapsed > 0 {
		rate := float64(n) / w.elapsed.Seconds()
		c.Refaults = &rate
	} else {
		absent("refaults_per_s", w.refaults.State())
	}
	if us, ok := w.stall.Get(); ok && w.elapsed > 0 {
		share := float64(us) / float64(w.elapsed.Microseconds())
		c.Pressure = &share
	} else {
		absent("pressure", w.stall.State())
	}
	if w.cost.Known {
		share := w.cost.Value / 100
		c.Cost = &share
	} else {
		absent("refault_cost", memcg.Missing)
	}
	for _, n := range nodesOf(w.nodes) {
		c.Nodes = append(c.Nodes, NodeUse{Node: int(n.Node), Anon: number(n.Anon), File: number(n.File)})
	}
	if w.acted.want > 0 {
		c.Last = &Action{Time: w.acted.at, Text: w.acted.text(), Want: w.acted.want, Took: number(w.acted.took), Held: w.acted.held}
	}
	return c
}

// label is what people call a cgroup.
func (w *row) label(path string) string {
	if w.name != "" {
		return telemetry.Name(w.name)
	}
	return telemetry.Name(path)
}

// text says the action in the few words that a column has.
func (a *action) text() string {
	switch {
	case a.held != "":
		return fmt.Sprintf("would take %s: %s", telemetry.Bytes(a.want), a.held)
	case !a.done:
		return "taking " + telemetry.Bytes(a.want)
	}
	text := "took ?"
	if v, ok := a.took.Get(); ok {
		text = "took " + telemetry.Bytes(v)
	}
	text += " of " + telemetry.Bytes(a.want)
	if v, ok := a.swapped.Get(); ok && v > 0 {
		text += ", " + telemetry.Bytes(v) + " to swap"
	}
	if a.kind != "" && a.kind != "partial" {
		text += ", " + a.kind
	}
	return text
}

// told is a run of records as somebody asked for it.
type told struct {
	record telemetry.Record // the last
	since  time.Time
	times  uint64
}

// wire returns the run as it is told.
func (e *told) wire() Past {
	var line bytes.Buffer
	telemetry.DecisionLog{Logger: zerolog.New(&line)}.Record(&e.record)
	return Past{
		Since: e.since, Until: e.record.Time, Times: e.times, Text: e.record.Describe(),
		Record: json.RawMessage(bytes.TrimSpace(line.Bytes())),
	}
}
