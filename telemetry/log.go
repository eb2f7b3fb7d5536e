package telemetry

import (
	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

// DecisionLog writes one JSON line for each record: level info, message
// "decision". The names of its fields are a promise to readers; new ones may
// be added. An absent figure is null and its state stands under "absent".
type DecisionLog struct {
	Logger zerolog.Logger
}

// Record writes the line.
func (l DecisionLog) Record(r *Record) {
	e := l.Logger.Info().
		Time("time", r.Time).
		Uint64("tick", r.Tick).
		Str("cgroup", r.Cgroup.Path).
		Uint64("inode", r.Cgroup.Inode).
		Str("policy", r.Policy).
		Str("mode", string(r.Mode)).
		Str("text", r.Describe())
	r.logContainer(e)
	if r.Err != nil {
		e.Str("error", r.Err.Error()).Msg("decision")
		return
	}
	absent := zerolog.Dict()
	anyAbsent := false
	field := func(name string, f memcg.Field) {
		if v, ok := f.Get(); ok {
			e.Uint64(name, v)
			return
		}
		e.Interface(name, nil)
		absent.Str(name, f.State().String())
		anyAbsent = true
	}
	e.Str("law", r.Law).Str("verdict", r.Verdict).Str("rule", r.Rule)
	field("current", r.Current)
	field("anon", r.Anon)
	field("file", r.File)
	field("swap", r.Swap)
	field("refault_anon", r.RefaultAnon)
	field("refault_file", r.RefaultFile)
	field("stall_us", r.Stall)
	e.Int64("elapsed_us", r.Elapsed.Microseconds()).
		Uint64("want", r.Want).
		Str("swappiness", r.Swappiness.String()).
		Uint64("floor", r.Floor).
		Bool("acted", r.Acted)
	if r.Glance {
		e.Bool("glance", true)
	}
	if r.OlderThan > 0 {
		e.Int64("older_than_ms", r.OlderThan.Milliseconds())
	}
	if r.Clipped != "" {
		e.Str("clipped", r.Clipped)
	}
	if r.Held != "" {
		e.Str("held", r.Held)
	}
	r.logNodes(e)
	if len(r.Because) > 0 {
		e.Array("because", terms(r.Because))
	}
	if r.Done != nil {
		e.Object("outcome", outcome{r.Done})
	}
	if r.Lending.On {
		e.Object("lending", &r.Lending)
	}
	if r.Guarded || r.GuardHeld != "" {
		e.Bool("guarded", r.Guarded).Str("guard_held", r.GuardHeld)
	}
	if len(r.Settings) > 0 {
		e.Array("settings", settings(r.Settings))
	}
	if anyAbsent {
		e.Dict("absent", absent)
	}
	e.Msg("decision")
}

type terms []memcg.Term

// MarshalZerologArray writes each term as an object; an unknown value is null.
func (ts terms) MarshalZerologArray(a *zerolog.Array) {
	for _, t := range ts {
		d := zerolog.Dict().Str("name", t.Name)
		if t.Known {
			d.Float64("value", t.Value)
		} else {
			d.Interface("value", nil)
		}
		a.Dict(d.Str("unit", t.Unit))
	}
}

type outcome struct{ *memcg.Outcome }

// MarshalZerologObject writes what was asked, what came of it and how long it
// took.
func (o outcome) MarshalZerologObject(e *zerolog.Event) {
	e.Uint64("requested", o.Request.Bytes).Uint64("asked", o.Asked).Int("writes", o.Writes).
		Str("via", o.Via).Int64("took_us", o.Took.Microseconds())
	for _, f := range []struct {
		name  string
		field memcg.Field
	}{{"reclaimed", o.Reclaimed}, {"shrunk", o.Shrunk}, {"swapout", o.SwapOut}, {"demoted", o.Demoted}} {
		if v, ok := f.field.Get(); ok {
			e.Uint64(f.name, v)
		} else {
			e.Interface(f.name, nil)
		}
	}
	if !o.Request.Nodes.Empty() {
		e.Str("nodes", o.Request.Nodes.String()).Array("by_node", byNode(o.Nodes))
	}
	if o.Refused != nil {
		e.Str("refused", o.Refused.Error())
	}
	if o.Err != nil {
		e.Str("error", o.Err.Error())
	}
}

type byNode []memcg.NodeOutcome

// MarshalZerologArray writes what went from each node, in bytes; what is not
// known is null.
func (ns byNode) MarshalZerologArray(a *zerolog.Array) {
	for _, n := range ns {
		d := zerolog.Dict().Int("node", int(n.Node))
		for _, f := range []struct {
			name  string
			field memcg.Field
		}{{"anon", n.Anon}, {"file", n.File}, {"reclaimed", n.Reclaimed}} {
			if v, ok := f.field.Get(); ok {
				d.Uint64(f.name, v)
			} else {
				d.Interface(f.name, nil)
			}
		}
		a.Dict(d)
	}
}
