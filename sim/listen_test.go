package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
)

func TestEventsNameTheCgroupAndThoseAbove(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h := sim.New(sim.Config{Kernel: sim.Kernel612, Nodes: []sim.NodeConfig{{Bytes: 64 * mib}}, Fail: t.Errorf})
	app := h.Cgroup("/app", sim.Limits{High: memcg.LimitOf(4 * mib)})
	deaf := h.Cgroup("/deaf", sim.Limits{High: memcg.LimitOf(4 * mib)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := h.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Events(ctx); !errors.Is(err, memcg.ErrInvalid) {
		t.Errorf("a second channel: %v", err)
	}
	for _, id := range []memcg.ID{app, deaf} {
		if err := h.Listen(id); err != nil {
			t.Fatal(err)
		}
	}
	h.Forget(deaf)
	for _, p := range []string{"/app", "/deaf"} {
		h.Start(p, sim.Idle{File: 16 * mib})
	}
	h.Run(time.Second)
	select {
	case id := <-events:
		if id != app {
			t.Errorf("heard of %v", id)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
	}
	cancel()
	for id := range events {
		if id != app {
			t.Errorf("heard of %v", id)
		}
	}
}

func TestTheClassicLRUTellsNoAges(t *testing.T) {
	h := busy(t, sim.Config{Kernel: sim.Kernel73})
	id := h.Cgroup("/x", sim.Limits{})
	if gens, err := h.Generations(id, nil); !errors.Is(err, memcg.ErrUnsupported) || len(gens) != 0 {
		t.Errorf("Generations: %v, %v", gens, err)
	}
	if _, err := h.Age(t.Context(), id); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("Age: %v", err)
	}
	o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, OlderThan: time.Minute})
	if !errors.Is(o.Err, memcg.ErrUnsupported) || o.Writes != 0 || h.Writes() != 0 {
		t.Errorf("outcome %+v", o)
	}
	h.Remove("/x")
	if _, err := h.Generations(id, nil); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("a removed cgroup: %v", err)
	}
	if err := h.Listen(id); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("Listen to a removed cgroup: %v", err)
	}
}
