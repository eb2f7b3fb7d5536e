package controller

import (
	"fmt"
	"math"
	"testing"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// obey is what a kernel takes that does as it is told, as long as there is anon.
func obey(s memcg.Swappiness, bytes, anon uint64) *memcg.Outcome {
	v, _ := s.Get()
	swapped := uint64(0)
	switch {
	case v == memcg.SwappinessMax:
		swapped = min(bytes, anon)
		bytes = swapped
	case v > 0:
		swapped = min(bytes/10, anon) // a hint, badly taken
	}
	return &memcg.Outcome{Request: memcg.Reclaim{Bytes: bytes, Swappiness: s}, Reclaimed: memcg.Value(bytes), SwapOut: memcg.Value(swapped)}
}

func TestRequestsOfOneSideAddUpToTheSwappiness(t *testing.T) {
	for _, v := range []int{150, 180, 200} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			var s sides
			var anon, all float64
			for i := range 200 {
				o := obey(s.next(v), uint64(1+i%7)<<20, math.MaxUint64)
				s.took(o)
				swapped, _ := o.SwapOut.Get()
				taken, _ := o.Reclaimed.Get()
				anon, all = anon+float64(swapped), all+float64(taken)
			}
			if got, want := anon/all, float64(v)/200; math.Abs(got-want) > 0.04 {
				t.Errorf("%.3f of all was anon, want %.3f", got, want)
			}
		})
	}
}

func TestWhenAnonAloneGivesNothingFileGivesForAWhile(t *testing.T) {
	var s sides
	o := obey(s.next(180), mib, 0)
	o.Request.Bytes = mib
	s.took(o)
	for range sidesRest {
		if got := s.next(180); got != memcg.SwappinessOf(0) {
			t.Errorf("after nothing came of it: %v, want file alone", got)
		}
	}
	if got := s.next(180); got != memcg.SwappinessOf(memcg.SwappinessMax) {
		t.Errorf("then: %v, want another try", got)
	}
}

func TestASideIsPickedOnlyWhere(t *testing.T) {
	of := memcg.SwappinessOf
	for _, c := range []struct {
		name  string
		set   func(*Core, *cgroup, *memcg.HostSample, *telemetry.Record)
		wants memcg.Swappiness
	}{
		{"mostly anon is wanted", nil, of(memcg.SwappinessMax)},
		{"a balance is wanted", func(_ *Core, _ *cgroup, _ *memcg.HostSample, r *telemetry.Record) { r.Swappiness = of(100) }, of(100)},
		{"nothing is passed", func(_ *Core, _ *cgroup, _ *memcg.HostSample, r *telemetry.Record) { r.Swappiness = memcg.Swappiness{} }, memcg.Swappiness{}},
		{"there is hardly any file", func(_ *Core, cg *cgroup, _ *memcg.HostSample, _ *telemetry.Record) { cg.file = page }, of(180)},
		{"there is no swap", func(_ *Core, _ *cgroup, h *memcg.HostSample, _ *telemetry.Record) { h.SwapTotal = memcg.Value(0) }, of(180)},
		{"anon alone cannot be asked for", func(c *Core, _ *cgroup, _ *memcg.HostSample, _ *telemetry.Record) { c.noMax = true }, of(180)},
		{"max is the policy's and cannot be asked for", func(c *Core, _ *cgroup, _ *memcg.HostSample, r *telemetry.Record) {
			c.noMax, r.Swappiness = true, of(memcg.SwappinessMax)
		}, of(200)},
		{"anon is moved by age", func(_ *Core, cg *cgroup, _ *memcg.HostSample, r *telemetry.Record) {
			cg.moves, r.OlderThan = true, 1
		}, of(memcg.SwappinessMax)},
		{"what is cold is squeezed by age", func(_ *Core, _ *cgroup, _ *memcg.HostSample, r *telemetry.Record) { r.OlderThan = 1 }, of(180)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, telemetry.Enforce, "", "policies: [{name: app, match: [{path: /app}]}]")
			b.track(id("/app"))
			cg := b.core.cgroups[id("/app")]
			cg.file = 64 * mib
			r := telemetry.Record{Want: mib, Swappiness: of(180)}
			if c.set != nil {
				c.set(b.core, cg, &b.host, &r)
			}
			if got := b.core.side(&b.host, cg, &r); got != c.wants {
				t.Errorf("%v, want %v", got, c.wants)
			}
		})
	}
}

func TestAnonAloneThatIsRefusedIsNotAskedForAgain(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", "policies: [{name: app, match: [{path: /app}]}]")
	b.track(id("/app"))
	refused := memcg.Outcome{
		Request: memcg.Reclaim{Cgroup: id("/app"), Bytes: mib, Swappiness: memcg.SwappinessOf(memcg.SwappinessMax)},
		Err:     fmt.Errorf("max: %w", memcg.ErrUnsupported),
	}
	b.step([]memcg.Outcome{refused}, 0)
	if !b.core.noMax || b.core.swappiness == unsupported {
		t.Errorf("max refused: %v, any swappiness: %v; want only the former", b.core.noMax, b.core.swappiness)
	}
	if len(b.notes.said) != 1 || b.notes.said[0] != "swappiness-max" {
		t.Errorf("said %v", b.notes.said)
	}
}
