package controller

import (
	"maps"
	"slices"

	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/recording"
)

// listening records what a Describer answers.
type listening struct {
	Describer
	tape *tape
}

// hear has what d answers recorded.
func (t *tape) hear(d Describer) Describer {
	if t == nil || d == nil {
		return d
	}
	return &listening{d, t}
}

// Describe asks, and records the answer: before what is decided by it.
func (l *listening) Describe(id memcg.ID) (container.Description, bool) {
	d, settled := l.Describer.Describe(id)
	t := l.tape
	// The event that it belongs to is recorded next, and has the time.
	t.e.Kind, t.e.Cgroup = recording.Described, id
	t.e.Who = recording.Who{
		Settled: settled, ID: d.ID, Runtime: d.Runtime, Inner: d.Inner, PodUID: d.Pod.UID, Namespace: d.Pod.Namespace, Pod: d.Pod.Name, Name: d.Name,
		Swappiness: d.Swappiness, Limit: d.Limit, Reservation: d.Reservation, Mems: d.Mems, Faults: d.Faults,
	}
	for _, key := range slices.Sorted(maps.Keys(d.Annotations)) {
		t.e.Who.Annotations = append(t.e.Who.Annotations, recording.Pair{Key: key, Value: d.Annotations[key]})
	}
	t.w.Write(&t.e)
	return d, settled
}

// told answers as a Describer has, in a recording.
type told map[memcg.ID]recording.Who

// Round does nothing: what was known in a round was recorded.
func (told) Round([]memcg.ID, bool) {}

// Describe returns the last answer.
func (t told) Describe(id memcg.ID) (d container.Description, settled bool) {
	w, ok := t[id]
	if !ok {
		return d, false
	}
	d = container.Description{
		ID: w.ID, Runtime: w.Runtime, Inner: w.Inner, Pod: container.Pod{UID: w.PodUID, Namespace: w.Namespace, Name: w.Pod}, Name: w.Name,
		Swappiness: w.Swappiness, Limit: w.Limit, Reservation: w.Reservation, Mems: w.Mems, Faults: w.Faults,
	}
	for _, p := range w.Annotations {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[p.Key] = p.Value
	}
	return d, w.Settled
}
