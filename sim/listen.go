package sim

import (
	"context"
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// ear hears of changes of memory.events.
type ear struct {
	on      map[memcg.ID]bool // listened to; true while told and not handed out
	waiting []memcg.ID
	wake    chan struct{} // nil while there is no channel
}

// Listen has Events tell of a cgroup.
func (h *Host) Listen(id memcg.ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.find("listen to", id); err != nil {
		return err
	}
	if h.ear.on == nil {
		h.ear.on = map[memcg.ID]bool{}
	}
	if _, known := h.ear.on[id]; !known {
		h.ear.on[id] = false
	}
	return nil
}

// Events returns a channel of the cgroups that are listened to and whose
// memory.events changed, each once until it is taken. It is closed when ctx
// ends; only one may be open.
func (h *Host) Events(ctx context.Context) (<-chan memcg.ID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ear.wake != nil {
		return nil, fmt.Errorf("sim: listen to events: another channel is open: %w", memcg.ErrInvalid)
	}
	h.ear.wake = make(chan struct{}, 1)
	h.ear.forgetWaiting()
	out, wake := make(chan memcg.ID), h.ear.wake
	go func() {
		defer close(out)
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ear.wake = nil
		}()
		for {
			id, ok := h.heard()
			if !ok {
				select {
				case <-wake:
					continue
				case <-ctx.Done():
					return
				}
			}
			select {
			case out <- id:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// heard takes the cgroup that has waited longest.
func (h *Host) heard() (id memcg.ID, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := &h.ear
	for len(e.waiting) > 0 {
		id, e.waiting = e.waiting[0], e.waiting[1:]
		if _, on := e.on[id]; on {
			e.on[id] = false
			return id, true
		}
	}
	return memcg.ID{}, false
}

// forgetWaiting drops what was told before there was a channel.
func (e *ear) forgetWaiting() {
	e.waiting = e.waiting[:0]
	for id := range e.on {
		e.on[id] = false
	}
}

// tell notes that a cgroup's memory.events changed. The host is locked.
func (e *ear) tell(id memcg.ID) {
	told, on := e.on[id]
	if told || !on || e.wake == nil {
		return
	}
	e.on[id] = true
	e.waiting = append(e.waiting, id)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
