package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

const headroomApp = `
policies:
  - name: app
    match: [{path: /app}]
    swappiness: 0
    squeeze: off
    headroom: 10%
`

// A stream of 20 MiB/s fills the 6 MiB of headroom in a third of a second;
// looked at once a second, the cgroup would meet its limit in between.
func TestACgroupThatFillsUpIsLookedAtInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		id := h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(64 * mib)})
		h.Start("/app", sim.Stream{Rate: 20 * mib})
		h.Run(time.Second)
		tr, _ := run(t, h, telemetry.Enforce, headroomApp, func(context.CancelFunc) { pass(h, 20*time.Second) })
		var s memcg.Sample
		if err := h.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
		glances := 0
		for _, r := range tr.of("/app") {
			if r.Glance {
				glances++
			}
		}
		if glances == 0 {
			t.Error("nothing was asked for between two samples")
		}
		// Until the first looks have told how fast it fills, the limit is met.
		if met, ok := s.Events.Max.Get(); !ok || met > 64 {
			t.Errorf("met its limit %d times", met)
		}
	})
}

func TestACgroupThatStandsStillIsNotWokenFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(64 * mib)})
		h.Start("/app", sim.Idle{File: 20 * mib, Rate: 256 * mib})
		h.Run(time.Second)
		tr, _ := run(t, h, telemetry.Enforce, headroomApp, func(context.CancelFunc) { pass(h, 20*time.Second) })
		if n := len(tr.of("/app")); n > 24 {
			t.Errorf("looked %d times in 20 s at something that does not move", n)
		}
	})
}

func TestObservingWakesForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{ReadOnly: true})
		h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(64 * mib)})
		h.Start("/app", sim.Stream{Rate: 20 * mib})
		h.Run(time.Second)
		tr, _ := run(t, h, telemetry.Observe, headroomApp, func(context.CancelFunc) { pass(h, 10*time.Second) })
		if n := len(tr.of("/app")); n > 12 {
			t.Errorf("looked %d times in 10 s", n)
		}
	})
}

func TestALimitThatIsMetIsNoticedBeforeTheTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(64 * mib)})
		var met time.Time
		tr, _ := run(t, h, telemetry.Enforce, "interval: 1m\n"+headroomApp, func(context.CancelFunc) {
			pass(h, time.Second)
			h.Start("/app", sim.Stream{Rate: 256 * mib})
			pass(h, time.Second)
			met = time.Now()
		})
		early := 0
		for _, r := range tr.of("/app") {
			if r.Tick > 1 && !r.Time.After(met) {
				early++
			}
		}
		if early == 0 {
			t.Error("the next look was a minute away, and the limit did not bring it forward")
		}
	})
}
