package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

const (
	mib  = 1 << 20
	page = 4096
)

// notes collects what would be said to the operator.
type notes struct{ said []string }

func (n *notes) Warn(key string, err error, text string) { n.said = append(n.said, key) }
func (n *notes) Forget(string)                           {}
func (n *notes) Clear(key, text string) {
	if slices.Contains(n.said, key) {
		n.said = append(n.said, "over: "+key)
	}
}

// bench drives a Core by hand: time moves only when told.
type bench struct {
	t     *testing.T
	core  *Core
	notes *notes
	now   time.Time
	host  memcg.HostSample
	reads map[string]uint64 // current of each cgroup, bytes
}

func newBench(t *testing.T, mode telemetry.Mode, self, policies string) *bench {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte("mode: enforce\ninterval: 1s\n"+policies))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, notes: &notes{}, now: time.Unix(1000, 0), reads: map[string]uint64{}}
	b.host = memcg.HostSample{
		PageSize: page,
		MemTotal: memcg.Value(4096 * mib), MemFree: memcg.Value(1024 * mib), MemAvailable: memcg.Value(2048 * mib),
		SwapTotal: memcg.Value(2048 * mib), SwapFree: memcg.Value(2048 * mib), Swap: memcg.SwapZram,
	}
	b.core = NewCore(cfg, mode, self, b.notes, b.now)
	return b
}

func id(path string) memcg.ID { return memcg.ID{Path: path, Inode: uint64(len(path))} }

func (b *bench) track(ids ...memcg.ID) []memcg.ID {
	watched, _ := b.core.Track(ids, true, b.now)
	return slices.Clone(watched)
}

// quiet is a cgroup that holds current bytes, half anon and half file, and
// shows no stress.
func quiet(current uint64) *memcg.Sample {
	s := &memcg.Sample{
		Current: memcg.Value(current), SwapCurrent: memcg.Value(0),
		Min: memcg.LimitOf(0), Low: memcg.LimitOf(0), High: memcg.Unlimited(), Max: memcg.Unlimited(),
		SwapMax: memcg.Unlimited(), SwapRoom: memcg.Unlimited(), Populated: memcg.Value(1), Frozen: memcg.Value(0),
		NodesState: memcg.Unsupported, MemsState: memcg.Unsupported,
	}
	for k := range memcg.NumStats {
		s.Stat.Set(k, memcg.Value(0))
	}
	half := current / 2
	for _, k := range []memcg.Stat{memcg.StatAnon, memcg.StatInactiveAnon, memcg.StatFile, memcg.StatInactiveFile} {
		s.Stat.Set(k, memcg.Value(half))
	}
	s.Pressure.Some.Total, s.Pressure.Full.Total = memcg.Value(0), memcg.Value(0)
	s.Events = memcg.Events{Low: memcg.Value(0), High: memcg.Value(0), Max: memcg.Value(0), OOM: memcg.Value(0), OOMKill: memcg.Value(0)}
	s.EventsLocal = s.Events
	return s
}

// step lets a second pass, reads the cgroups and returns the requests and the
// records, the latter copied.
func (b *bench) step(done []memcg.Outcome, slots int, obs ...Observation) ([]memcg.Reclaim, []telemetry.Record) {
	var results []Result
	for _, o := range done {
		results = append(results, Result{Request: Request{Reclaim: o.Request}, Outcome: o})
	}
	requests, records := b.stepAll(results, slots, obs...)
	var list []memcg.Reclaim
	for _, r := range requests {
		if r.Age {
			b.t.Fatalf("aging of %s was not expected", r.Reclaim.Cgroup)
		}
		list = append(list, r.Reclaim)
	}
	return list, records
}

// stepAll is step with results and requests of every kind.
func (b *bench) stepAll(done []Result, slots int, obs ...Observation) ([]Request, []telemetry.Record) {
	b.now = b.now.Add(time.Second)
	requests, records := b.core.Step(b.now, &b.host, slices.Values(obs), done, slots)
	return slices.Clone(requests), slices.Clone(records)
}

func seen(path string, current uint64) Observation {
	return Observation{ID: id(path), Sample: quiet(current)}
}

// settle gives the law the samples it needs before it asks for anything.
func (b *bench) settle(slots int, obs ...Observation) ([]memcg.Reclaim, []telemetry.Record) {
	for range 10 {
		if requests, records := b.step(nil, slots, obs...); len(requests) > 0 || records[0].Want > 0 {
			return requests, records
		}
	}
	b.t.Fatal("the law asked for nothing in ten quiet ticks")
	return nil, nil
}

const policyApp = `
policies:
  - name: app
    match: [{path: /app}]
    law: tmo
    squeeze: {max_step: 1%}
`

const policyAll = `
policies:
  - name: all
    match: [{path: /**}]
    law: tmo
`

func TestEnforceModeAsksForAStepOfAQuietCgroup(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyApp)
	b.track(id("/app"))
	requests, records := b.settle(4, seen("/app", 512*mib))
	if len(requests) != 1 || !records[0].Acted || records[0].Held != "" {
		t.Fatalf("got %d requests, record %+v", len(requests), records[0])
	}
	if got, want := requests[0].Bytes, uint64(512*mib/100/page*page); got != want {
		t.Errorf("asked for %d bytes, want one percent in whole pages, %d", got, want)
	}
	if _, set := requests[0].Swappiness.Get(); set {
		t.Errorf("passed swappiness %s under a policy that says nothing of it", requests[0].Swappiness)
	}
}

func TestObserveModeDecidesTheSameAndAsksForNothing(t *testing.T) {
	enforce, observe := newBench(t, telemetry.Enforce, "", policyApp), newBench(t, telemetry.Observe, "", policyApp)
	enforce.track(id("/app"))
	observe.track(id("/app"))
	_, acted := enforce.settle(4, seen("/app", 512*mib))
	requests, held := observe.settle(4, seen("/app", 512*mib))
	if len(requests) != 0 || held[0].Acted || held[0].Held != "observe mode" {
		t.Errorf("got requests %v, record %+v", requests, held[0])
	}
	if acted[0].Want != held[0].Want || acted[0].Tick != held[0].Tick {
		t.Errorf("wanted %d in tick %d when enforcing, %d in tick %d when observing", acted[0].Want, acted[0].Tick, held[0].Want, held[0].Tick)
	}
}

func TestObservingSaysWhatEnforcingWouldLeaveToACgroupInside(t *testing.T) {
	for _, mode := range []telemetry.Mode{telemetry.Observe, telemetry.Enforce} {
		b := newBench(t, mode, "", strings.Replace(policyApp, "/app", "/**", 1))
		b.track(id("/app"), id("/app/in"))
		_, records := b.settle(4, seen("/app", 512*mib), seen("/app/in", 512*mib))
		if records[0].Held != heldInner || (records[1].Held == telemetry.HeldByMode) != (mode == telemetry.Observe) {
			t.Errorf("%s: the outer one is held by %q, the inner one by %q", mode, records[0].Held, records[1].Held)
		}
	}
}

func TestAPolicyCanObserveInsideAnEnforcingAgent(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", strings.Replace(policyApp, "law:", "observe: true\n    law:", 1))
	b.track(id("/app"))
	requests, records := b.settle(4, seen("/app", 512*mib))
	if len(requests) != 0 || records[0].Mode != telemetry.Observe {
		t.Errorf("got requests %v in mode %s", requests, records[0].Mode)
	}
}

func TestACgroupHasOneRequestInFlight(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyApp)
	b.track(id("/app"))
	first, _ := b.settle(4, seen("/app", 512*mib))
	for range 5 {
		requests, records := b.step(nil, 4, seen("/app", 512*mib))
		if len(requests) != 0 {
			t.Fatalf("a second request %v while the first was in flight", requests)
		}
		if records[0].Want > 0 && !strings.Contains(records[0].Held, "in flight") {
			t.Fatalf("held for %q", records[0].Held)
		}
	}
	done := memcg.Outcome{Request: first[0], Writes: 1, Reclaimed: memcg.Value(first[0].Bytes), SwapOut: memcg.Value(0)}
	requests, records := b.step([]memcg.Outcome{done}, 4, seen("/app", 512*mib))
	if records[0].Done == nil || records[0].Done.Reclaimed != memcg.Value(first[0].Bytes) {
		t.Errorf("the outcome is not in the record: %+v", records[0].Done)
	}
	if len(requests) != 1 {
		t.Errorf("got %d requests after the outcome came back", len(requests))
	}
}

func TestEachTickHasOneRecordForEachCgroup(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	watched := b.track(id("/a"), id("/b"), id("/c"))
	if len(watched) != 3 {
		t.Fatalf("watching %v", watched)
	}
	for tick := uint64(1); tick <= 3; tick++ {
		_, records := b.step(nil, 4, seen("/a", mib), Observation{ID: id("/b"), Err: fmt.Errorf("b: %w", memcg.ErrInvalid)}, seen("/c", mib))
		var got []string
		for _, r := range records {
			if r.Tick != tick {
				t.Errorf("record of tick %d says %d", tick, r.Tick)
			}
			got = append(got, r.Cgroup.Path)
		}
		if !slices.Equal(got, []string{"/a", "/b", "/c"}) {
			t.Errorf("tick %d: records of %v", tick, got)
		}
	}
}

func TestTheRootAndTheAgentsOwnCgroupAreNeverAskedFor(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "/system.slice/memagent.service", policyAll)
	watched := b.track(id("/"), id("/system.slice"), id("/system.slice/memagent.service"), id("/system.slice/memagent.service-2"))
	if slices.Contains(watched, id("/")) {
		t.Error("the root is watched")
	}
	var asked []string
	for range 10 {
		requests, _ := b.step(nil, 4, seen("/system.slice", 512*mib), seen("/system.slice/memagent.service", 512*mib), seen("/system.slice/memagent.service-2", 512*mib))
		for _, r := range requests {
			asked = append(asked, r.Cgroup.Path)
		}
	}
	if !slices.Equal(asked, []string{"/system.slice/memagent.service-2"}) {
		t.Errorf("asked %v", asked)
	}
}

func TestTheInnermostPolicyActs(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	b.track(id("/pod"), id("/pod/app"), id("/pod-2"))
	requests, _ := b.settle(4, seen("/pod", 512*mib), seen("/pod-2", 512*mib), seen("/pod/app", 512*mib))
	var asked []string
	for _, r := range requests {
		asked = append(asked, r.Cgroup.Path)
	}
	slices.Sort(asked)
	if !slices.Equal(asked, []string{"/pod-2", "/pod/app"}) {
		t.Errorf("asked %v", asked)
	}
	b.track(id("/pod"), id("/pod-2"))
	if held := b.core.cgroups[id("/pod")].held; held != "" {
		t.Errorf("with the inner cgroup gone, the outer one is still held: %s", held)
	}
}

func TestC25APathWithAnotherInodeIsAnotherCgroup(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyApp)
	b.track(id("/app"))
	b.settle(4, seen("/app", 512*mib))
	again := memcg.ID{Path: "/app", Inode: 99}
	_, gone := b.core.Track([]memcg.ID{again}, true, b.now)
	if !slices.Equal(gone, []memcg.ID{id("/app")}) {
		t.Errorf("gone: %v", gone)
	}
	_, records := b.step(nil, 4, Observation{ID: again, Sample: quiet(512 * mib)})
	if records[0].Elapsed != 0 || records[0].Want != 0 {
		t.Errorf("the new cgroup began with the old one's state: %+v", records[0])
	}
}

func TestC25ACgroupThatVanishesCostsTheOthersNothing(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	b.track(id("/a"), id("/b"))
	gone := Observation{ID: id("/a"), Err: fmt.Errorf("read /a/memory.stat: %w", memcg.ErrGone)}
	_, records := b.step(nil, 4, gone, seen("/b", 512*mib))
	if !errors.Is(records[0].Err, memcg.ErrGone) || records[1].Err != nil {
		t.Errorf("records: %v, %v", records[0].Err, records[1].Err)
	}
	if len(b.notes.said) != 0 {
		t.Errorf("said %v of a cgroup that ended", b.notes.said)
	}
	if _, still := b.core.cgroups[id("/a")]; still {
		t.Error("its state was kept")
	}
}

func TestAnIncompleteListForgetsNothing(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	b.track(id("/a"), id("/b"))
	watched, gone := b.core.Track([]memcg.ID{id("/a")}, false, b.now)
	if len(gone) != 0 || len(watched) != 2 {
		t.Errorf("watched %v, gone %v", watched, gone)
	}
}

func TestACgroupThatCannotBeReadIsLeftAloneForLongerAndLonger(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", policyAll)
	b.track(id("/a"))
	bad := Observation{ID: id("/a"), Err: fmt.Errorf("read /a/memory.stat: %w", memcg.ErrDenied)}
	var pauses []int
	pause := 0
	for range 400 {
		if !b.core.Due(id("/a"), b.now.Add(time.Second)) {
			pause++
			b.step(nil, 4)
			continue
		}
		pauses, pause = append(pauses, pause), 0
		b.step(nil, 4, bad)
	}
	if want := []int{0, 1, 3, 7, 15, 31, 63, 63, 63, 63}; !slices.Equal(pauses[:len(want)], want) {
		t.Errorf("pauses of %v ticks, want %v", pauses, want)
	}
	if !b.core.Due(id("/a"), b.now.Add(time.Second)) {
		for !b.core.Due(id("/a"), b.now.Add(time.Second)) {
			b.step(nil, 4)
		}
	}
	b.step(nil, 4, seen("/a", mib))
	if last := b.notes.said[len(b.notes.said)-1]; last != "over: sample /a" {
		t.Errorf("the end of the trouble was not said: %v", b.notes.said)
	}
	if !b.core.Due(id("/a"), b.now.Add(time.Second)) {
		t.Error("still left alone after it could be read")
	}
}
