package cgroupfs

import (
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/memagent/memagent/memcg"
)

// noSwappiness is the error of a request whose swappiness memory.reclaim
// refuses. Its amount and key are well formed, so EINVAL says just that.
func (q *request) noSwappiness() *opError {
	e := newError("write", q.t.fs.file(q.t.id.Path, reclaimFile), syscall.EINVAL)
	e.Kind = memcg.ErrUnsupported
	e.Hint = "this kernel takes no swappiness with a request (6.11)"
	if v, _ := q.r.Swappiness.Get(); v == memcg.SwappinessMax {
		e.Hint = "this kernel takes no swappiness=max (6.16)"
	}
	return e
}

// refusals remembers which swappiness this kernel's memory.reclaim has
// refused, and whether lru_gen has refused max. What a kernel takes does not
// change while it runs.
type refusals struct{ number, max, evictMax atomic.Bool }

func (k *refusals) of(v int) *atomic.Bool {
	if v == memcg.SwappinessMax {
		return &k.max
	}
	return &k.number
}

// swappiness reports whether a swappiness was refused.
func (k *refusals) swappiness(s memcg.Swappiness) bool {
	v, asked := s.Get()
	return asked && k.of(v).Load()
}

// learn takes in how a request with a swappiness ended, and reports whether
// the swappiness was refused.
func (k *refusals) learn(s memcg.Swappiness, err error) bool {
	v, asked := s.Get()
	if !asked || errnoOf(err) != syscall.EINVAL || !errors.Is(err, memcg.ErrUnsupported) {
		return false
	}
	k.of(v).Store(true)
	return true
}
