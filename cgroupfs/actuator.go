package cgroupfs

import (
	"context"
	"errors"
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// actuator is one way to carry out a request. The ways differ in what they
// can be told: which of them may serve follows from the request, and which of
// those does from what this host offers, found out by trying the best first.
type actuator interface {
	// name is what the operator knows it by: one of memcg.Via*.
	name() string
	// run carries the request out. It returns a *declined where this host does
	// not offer the way, or not for this request: nothing was taken, and
	// another way may serve.
	run(ctx context.Context, q *request) error
}

// actuatorsFor returns the ways that could carry a request out, best first. No
// way is among them that would widen the request: memory.reclaim cannot be
// told nodes (nodes= was taken back before any release, case c32) nor ages,
// and DAMON knows for how long it has watched itself and no more.
func actuatorsFor(r memcg.Reclaim) []actuator {
	switch {
	case r.OlderThan > 0:
		return []actuator{generationLists{}}
	case !r.Nodes.Empty():
		return []actuator{generationLists{}, monitor{}}
	}
	return []actuator{wholeCgroup{}, generationLists{}}
}

// declined is why an actuator did not carry out a request that another may.
type declined struct{ why error }

func (e *declined) Error() string { return e.why.Error() }
func (e *declined) Unwrap() error { return e.why }

// carryOut tries one way after the other until one does not decline.
func (q *request) carryOut(ctx context.Context) error {
	var refused error
	for _, a := range actuatorsFor(q.r) {
		err := a.run(ctx, q)
		var no *declined
		if !errors.As(err, &no) {
			q.o.Refused = refused
			return err
		}
		if refused == nil {
			refused = no.why
		} else {
			refused = fmt.Errorf("%w; nor can it be done through %s: %w", refused, a.name(), no.why)
		}
	}
	return refused
}

// wholeCgroup is memory.reclaim: every node in proportion.
type wholeCgroup struct{}

func (wholeCgroup) name() string { return memcg.ViaReclaim }

func (wholeCgroup) run(ctx context.Context, q *request) (err error) {
	fs := q.t.fs
	if fs.refused.swappiness(q.r.Swappiness) {
		return &declined{q.noSwappiness()}
	}
	if q.fd, err = q.t.openWrite(reclaimFile); err != nil {
		return err
	}
	defer fs.k.close(q.fd)
	if err = q.chunks(ctx); fs.refused.learn(q.r.Swappiness, err) {
		return &declined{err}
	}
	return err
}
