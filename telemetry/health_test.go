package telemetry

import (
	"errors"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestHealthFollowsTheLoop(t *testing.T) {
	start := time.Unix(1000, 0)
	late := NewHealth(5*time.Second, start).Late()
	if late != 25*time.Second {
		t.Fatalf("late after %s", late)
	}
	unreadable := errors.New("meminfo is gone")
	for name, c := range map[string]struct {
		ticks []Tick
		now   time.Duration
		alive error
		ready error
	}{
		"before the first tick it is alive and not ready":    {nil, time.Second, nil, ErrNotTicked},
		"a first tick that never comes is a stuck loop":      {nil, 26 * time.Second, ErrStuck, ErrNotTicked},
		"a tick makes it ready":                              {[]Tick{{Began: start}}, time.Second, nil, nil},
		"a tick over and done is good for a while":           {[]Tick{{Began: start, Took: 5 * time.Second}}, 29 * time.Second, nil, nil},
		"then it is stuck, though it stays ready":            {[]Tick{{Began: start}}, 26 * time.Second, ErrStuck, nil},
		"a look between ticks proves nothing":                {[]Tick{{Began: start.Add(20 * time.Second), Early: true}}, 26 * time.Second, ErrStuck, ErrNotTicked},
		"an unreadable host is alive, not ready, and why":    {[]Tick{{Began: start, Err: unreadable}}, time.Second, nil, unreadable},
		"a host that cannot be read for once is still ready": {[]Tick{{Began: start}, {Began: start, Err: unreadable}}, time.Second, nil, nil},
	} {
		h := NewHealth(5*time.Second, start)
		for i := range c.ticks {
			c.ticks[i].Host = &memcg.HostSample{}
			h.Ticked(&c.ticks[i])
		}
		if err := h.Alive(start.Add(c.now)); !errors.Is(err, c.alive) || c.alive == nil && err != nil {
			t.Errorf("%s: alive: %v", name, err)
		}
		if err := h.Ready(); !errors.Is(err, c.ready) || c.ready == nil && err != nil {
			t.Errorf("%s: ready: %v", name, err)
		}
	}
}
