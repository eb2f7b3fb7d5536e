package telemetry

import "github.com/memagent/memagent/memcg"

// CopyFrom makes r an independent copy of o, reusing r's memory: what keeps
// records needs it, since a Sink may not keep what it is given.
func (r *Record) CopyFrom(o *Record) {
	because, nodes, settings := r.Because[:0], r.Nodes[:0], r.Settings[:0]
	done, draw := r.Done, r.Draw
	*r = *o
	r.Because = append(because, o.Because...)
	r.Nodes = append(nodes, o.Nodes...)
	r.Settings = append(settings, o.Settings...)
	if o.Done != nil {
		if done == nil {
			done = new(memcg.Outcome)
		}
		byNode := append(done.Nodes[:0], o.Done.Nodes...)
		*done = *o.Done
		done.Nodes = byNode
		r.Done = done
	}
	if o.Draw != nil {
		if draw == nil {
			draw = new(Draw)
		}
		weights := append(draw.Weights[:0], o.Draw.Weights...)
		*draw = *o.Draw
		draw.Weights = weights
		r.Draw = draw
	}
}
