package controller

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

const keptBelow = `
policies:
  - name: app
    match: [{path: /app}]
    squeeze: off
    headroom: 10%
`

// limited is a cgroup under a limit of 100 MiB.
func limited(current uint64) Observation {
	o := seen("/app", current)
	o.Sample.Max = memcg.LimitOf(100 * mib)
	return o
}

// glanceBench is a bench whose cgroup was sampled twice, a second apart, while
// it grew by 20 MiB a second to 80 of 100 MiB.
func glanceBench(t *testing.T, mode telemetry.Mode) *bench {
	t.Helper()
	b := newBench(t, mode, "", keptBelow)
	b.track(id("/app"))
	for current := uint64(40 * mib); current <= 80*mib; current += 20 * mib {
		if requests, _ := b.step(nil, 4, limited(current)); len(requests) > 0 {
			t.Fatalf("at %d MiB of 100: %+v", current/mib, requests)
		}
	}
	return b
}

// glance lets some time pass and looks at memory.current alone.
func (b *bench) glance(after time.Duration, current uint64) ([]Request, []telemetry.Record) {
	b.now = b.now.Add(after)
	ob := Observation{ID: id("/app"), Current: memcg.Value(current)}
	requests, records := b.core.Step(b.now, &b.host, func(yield func(Observation) bool) { yield(ob) }, nil, 4)
	return requests, records
}

func TestAGlanceAsksForWhatIsAboveTheHold(t *testing.T) {
	b := glanceBench(t, telemetry.Enforce)
	if at, ok := b.core.NextWake(); !ok || at.Sub(b.now) > 400*time.Millisecond {
		t.Fatalf("10 MiB below the headroom at 20 MiB a second, the next look is in %v (%v)", at.Sub(b.now), ok)
	}
	b.now, _ = b.core.NextWake()
	if look := b.core.Woken(id("/app"), b.now); look != Glance {
		t.Fatalf("look %v, want a glance", look)
	}
	if requests, records := b.glance(0, 85*mib); len(requests)+len(records) > 0 {
		t.Errorf("below the headroom: %v, %v", requests, records)
	}
	requests, records := b.glance(200*time.Millisecond, 91*mib)
	if len(requests) != 1 || len(records) != 1 {
		t.Fatalf("1 MiB into the headroom: %d requests, %d records", len(requests), len(records))
	}
	// What is over, and what is charged while the write is under way.
	if got := requests[0].Reclaim.Bytes; got < mib || got > 4*mib {
		t.Errorf("%d bytes asked for 1 MiB over", got)
	}
	r := records[0]
	if !r.Glance || !r.Acted || r.Rule != "headroom" || r.Verdict == "" {
		t.Errorf("record %+v", r)
	}
	if _, ok := b.core.NextWake(); ok {
		t.Error("it is looked at again although the request is in flight")
	}
	came := Result{Request: requests[0], Outcome: outcome(requests[0].Reclaim, nil, 0)}
	b.core.CameBack(came, b.now)
	if at, ok := b.core.NextWake(); !ok || at.Sub(b.now) > glanceLeast {
		t.Error("its result came back, and it is not looked at")
	}
}

func TestEveryOutcomeIsInARecord(t *testing.T) {
	b := glanceBench(t, telemetry.Enforce)
	var done []Result
	told := 0
	for i := range 10 {
		b.now = b.now.Add(100 * time.Millisecond)
		ob := Observation{ID: id("/app"), Current: memcg.Value(91 * mib)}
		slots := 4
		if i%3 == 1 {
			slots = 0 // a glance that comes to nothing
		}
		requests, records := b.core.Step(b.now, &b.host, func(yield func(Observation) bool) { yield(ob) }, done, slots)
		done = done[:0]
		for _, r := range records {
			if r.Done != nil {
				told++
			}
		}
		for _, r := range requests {
			done = append(done, Result{Request: r, Outcome: outcome(r.Reclaim, nil, 0)})
		}
	}
	if told != 6 { // of seven, the last of which is still under way
		t.Errorf("%d outcomes were told, want 6", told)
	}
}

func TestAGlanceThatCannotBeFollowedLeavesNoRecord(t *testing.T) {
	b := glanceBench(t, telemetry.Enforce)
	b.now = b.now.Add(200 * time.Millisecond)
	ob := Observation{ID: id("/app"), Current: memcg.Value(95 * mib)}
	requests, records := b.core.Step(b.now, &b.host, func(yield func(Observation) bool) { yield(ob) }, nil, 0)
	if len(requests)+len(records) > 0 {
		t.Errorf("no worker is free: %v, %v", requests, records)
	}
	if at, ok := b.core.NextWake(); !ok || at.Sub(b.now) != wakeLeast {
		t.Errorf("the next look is in %v (%v), want %v", at.Sub(b.now), ok, wakeLeast)
	}
}

func TestAGlanceThatFailsIsLeftToTheTick(t *testing.T) {
	b := glanceBench(t, telemetry.Enforce)
	ob := Observation{ID: id("/app"), Current: memcg.Value(0), Err: memcg.ErrGone}
	requests, records := b.core.Step(b.now, &b.host, func(yield func(Observation) bool) { yield(ob) }, nil, 4)
	if _, ok := b.core.NextWake(); ok || len(requests)+len(records) > 0 {
		t.Errorf("woken %v, %v, %v", ok, requests, records)
	}
}

func TestNobodyIsGlancedAtWhileObserving(t *testing.T) {
	b := glanceBench(t, telemetry.Observe)
	if _, ok := b.core.NextWake(); ok {
		t.Error("woken while only observing")
	}
}

func TestALimitThatIsMetIsSampledAFewTimesAnIntervalAtMost(t *testing.T) {
	b := glanceBench(t, telemetry.Enforce)
	samples := 0
	for range 100 { // events every 10 ms for a second
		b.now = b.now.Add(10 * time.Millisecond)
		b.core.Heard(id("/app"), b.now)
		switch b.core.Woken(id("/app"), b.now) {
		case Sample:
			samples++
			b.core.Step(b.now, &b.host, func(yield func(Observation) bool) { yield(limited(85 * mib)) }, nil, 4)
		case Glance:
			b.glance(0, 85*mib)
		}
	}
	if samples < 2 || samples > earlySamples {
		t.Errorf("%d samples in a second of events, want up to %d", samples, earlySamples)
	}
}

// What a sample costs is CPU time that the cgroup may need: where it is known
// already that all comes back, nothing is learned by more of them.
func TestALimitThatIsMetIsGlancedAtOnceItIsKnownWhatComesBack(t *testing.T) {
	for _, c := range []struct {
		verdict workingset.Verdict
		look    Look
	}{
		{workingset.Growing, Sample}, {workingset.Fits, Sample}, {workingset.FileThrash, Sample},
		{workingset.AnonThrash, Glance}, {workingset.Streaming, Glance},
	} {
		b := glanceBench(t, telemetry.Enforce)
		b.core.cgroups[id("/app")].verdict = c.verdict
		b.now = b.now.Add(b.core.cfg.Interval / 2)
		b.core.Heard(id("/app"), b.now)
		if look := b.core.Woken(id("/app"), b.now); look != c.look {
			t.Errorf("%s: look %v, want %v", c.verdict, look, c.look)
		}
	}
}

func TestARaceThatIsLostIsGivenUpForLongerEachTime(t *testing.T) {
	h := workingset.Hold{Above: 92 * mib, Limit: 100 * mib, Optional: true}
	var r race
	now := time.Unix(1000, 0)
	var rests []time.Duration
	for len(rests) < 8 {
		for range raceLost {
			if r.lost(now, &h) {
				t.Fatal("given up too early")
			}
			r.ran(now, 99*mib, 100*time.Millisecond, &h)
		}
		if !r.lost(now, &h) {
			t.Fatalf("%d requests left 1 of 8 MiB free, and it goes on", raceLost)
		}
		rests = append(rests, r.until.Sub(now))
		now = r.until
	}
	if rests[0] != raceRest || rests[1] != 2*raceRest || rests[7] != raceMost {
		t.Errorf("rests of %v", rests)
	}
	for range raceLost - 1 {
		r.ran(now, 99*mib, 100*time.Millisecond, &h)
	}
	r.ran(now, 95*mib, 100*time.Millisecond, &h) // gained
	r.ran(now, 99*mib, 100*time.Millisecond, &h)
	if r.lost(now, &h) {
		t.Error("given up after headroom was there")
	}
	for range raceLost {
		r.ran(now, 99*mib, 100*time.Millisecond, &h)
	}
	if got := r.until.Sub(now); got != raceRest {
		t.Errorf("the rest after a race that was won is %v, want %v", got, raceRest)
	}
	h.Optional = false
	if r.lost(now, &h) {
		t.Error("headroom that keeps anon from a stream was given up")
	}
}

func TestARaceWithWhatGrowsIsNoRaceWithWhatComesBack(t *testing.T) {
	h := workingset.Hold{Above: 92 * mib, Limit: 100 * mib, Optional: true}
	cg := &cgroup{verdict: workingset.Growing}
	now := time.Unix(1000, 0)
	for range raceLost {
		cg.race().ran(now, 99*mib, 100*time.Millisecond, &h)
	}
	cg.verdict = workingset.AnonThrash
	if cg.race().lost(now, &h) {
		t.Error("what comes back was given up because of what grew before")
	}
	cg.verdict = workingset.Growing
	if !cg.race().lost(now, &h) {
		t.Error("what grows is raced with again before its rest is over")
	}
}

func TestAFewLongRequestsLoseARaceToo(t *testing.T) {
	h := workingset.Hold{Above: 92 * mib, Limit: 100 * mib, Optional: true}
	var r race
	now := time.Unix(1000, 0)
	for i := range 2 {
		if r.lost(now, &h) {
			t.Fatalf("given up after %d s in requests", i)
		}
		r.ran(now, 99*mib, time.Second, &h)
	}
	if got := r.until.Sub(now); got != raceRest {
		t.Errorf("after 2 s in requests that left 1 of 8 MiB free the rest is %v, want %v", got, raceRest)
	}
}

func TestWhatARequestTakesIsNoFilling(t *testing.T) {
	var f filling
	now := time.Unix(1000, 0)
	f.see(now, 100*mib, 0, false)
	now = now.Add(100 * time.Millisecond)
	f.see(now, 80*mib, 0, true) // most of a request for 30 MiB has shown
	f.taken += 30 * mib
	now = now.Add(100 * time.Millisecond)
	f.see(now, 72*mib, 0, false) // 2 MiB came meanwhile, in 0.2 s
	if f.rate < 9*mib || f.rate > 11*mib {
		t.Errorf("%.1f MiB a second, want 10", f.rate/mib)
	}
}
