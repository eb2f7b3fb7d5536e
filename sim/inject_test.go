package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/memcg"
)

func faulty(t *testing.T) (*Host, memcg.ID) {
	h := oneNode(t, Kernel612, 64*mib)
	id := h.Cgroup("/app", Limits{})
	settle(t, h, h.Start("/app", Idle{Anon: 8 * mib, File: 8 * mib}))
	return h, id
}

func TestTheNthCallFailsAndNoOther(t *testing.T) {
	h, id := faulty(t)
	other := h.Cgroup("/other", Limits{})
	h.Inject(Fault{Op: OpSample, Path: "/app", Nth: 2, Err: memcg.ErrDenied}, Fault{Op: OpList, Nth: 1, Err: memcg.ErrInvalid})
	var s memcg.Sample
	for i, want := range []error{nil, memcg.ErrDenied, nil} {
		if err := h.Sample(id, &s); !errors.Is(err, want) {
			t.Errorf("sample %d: %v, want %v", i+1, err, want)
		}
		if err := h.Sample(other, &s); err != nil {
			t.Errorf("sample %d of another cgroup: %v", i+1, err)
		}
	}
	if unmet := h.Unmet(); len(unmet) != 1 || unmet[0].Op != OpList {
		t.Errorf("unmet faults %v, want the one of the list", unmet)
	}
	if _, err := h.Cgroups(nil); !errors.Is(err, memcg.ErrInvalid) {
		t.Errorf("list: %v", err)
	}
	if unmet := h.Unmet(); len(unmet) != 0 {
		t.Errorf("unmet faults %v", unmet)
	}
	for _, call := range []struct {
		op  Op
		run func() error
	}{
		{OpHostSample, func() error { return h.HostSample(new(memcg.HostSample)) }},
		{OpWatch, func() error { _, err := h.Watch(t.Context()); return err }},
	} {
		h.Inject(Fault{Op: call.op, Err: memcg.ErrDenied})
		for range 2 {
			if err := call.run(); !errors.Is(err, memcg.ErrDenied) {
				t.Errorf("%s: %v, want it to fail every time", call.op, err)
			}
		}
	}
}

func TestReclaimEndsAfterHalfTheWorkWhereTold(t *testing.T) {
	h, id := faulty(t)
	h.Inject(Fault{Op: OpReclaim, Path: "/app", Nth: 1, Err: memcg.ErrPartial, Done: 2 * mib})
	o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 4 * mib})
	if got, _ := o.Reclaimed.Get(); !errors.Is(o.Err, memcg.ErrPartial) || got < 2*mib || got > 3*mib {
		t.Errorf("reclaimed %v, error %v; want 2 MiB and a partial end", o.Reclaimed, o.Err)
	}
}

func TestCgroupVanishesBetweenListAndSample(t *testing.T) {
	h, id := faulty(t)
	h.Inject(Fault{Op: OpSample, Path: "/app", Nth: 1, Vanish: true})
	ids, err := h.Cgroups(nil)
	if err != nil || len(ids) != 1 || ids[0] != id {
		t.Fatalf("list %v, %v", ids, err)
	}
	if err := h.Sample(id, new(memcg.Sample)); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("sample: %v, want gone", err)
	}
	mustHold(t, h)
}

// A write that blocks holds up neither the clock nor other calls, and no
// context ends it.
func TestBlockedReclaimHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, id := faulty(t)
		release := make(chan struct{})
		h.Inject(Fault{Op: OpReclaim, Path: "/app", Nth: 1, Block: release})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan memcg.Outcome, 1)
		go func() { done <- h.Reclaim(ctx, memcg.Reclaim{Cgroup: id, Bytes: mib}) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case o := <-done:
			t.Fatalf("a blocked write ended by itself: %+v", o)
		default:
		}
		h.Run(time.Second)
		sampled(t, h, "/app")
		h.Remove("/app")
		close(release)
		if o := <-done; !errors.Is(o.Err, memcg.ErrGone) || o.Reclaimed.Known() {
			t.Errorf("error %v, reclaimed %v; the cgroup went meanwhile", o.Err, o.Reclaimed)
		}
	})
}

func TestHiddenKeysAreUnsupportedAndResetCountersGoBack(t *testing.T) {
	h, id := faulty(t)
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 4 * mib})
	before := sampled(t, h, "/app")
	h.Hide("/app", memcg.StatRefaultFile)
	h.Rewind("/app", memcg.StatSteal, 10)
	after := sampled(t, h, "/app")
	if st := after.Stat.Get(memcg.StatRefaultFile).State(); st != memcg.Unsupported {
		t.Errorf("hidden key is %v", st)
	}
	if _, ok := after.Stat.Since(&before.Stat, memcg.StatSteal); ok {
		t.Error("pgsteal did not jump back")
	}
	h.ResetCounters("/app")
	if n := stat(t, h, "/app", memcg.StatScan); n != 0 {
		t.Errorf("pgscan is %d after a reset", n)
	}
	if n := stat(t, h, "/app", memcg.StatAnon); n == 0 {
		t.Error("a reset must leave sizes alone")
	}
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib})
	if n := stat(t, h, "/app", memcg.StatSteal); n < mib/PageSize {
		t.Errorf("pgsteal is %d, want it to count on from 0", n)
	}
}

func TestMisuseIsLoud(t *testing.T) {
	never := memcg.ID{Path: "/never", Inode: 4711}
	for name, misuse := range map[string]func(h *Host){
		"a cgroup made twice":                func(h *Host) { h.Cgroup("/app", Limits{}) },
		"a cgroup without a parent":          func(h *Host) { h.Cgroup("/no/such", Limits{}) },
		"a path that is not clean":           func(h *Host) { h.Cgroup("/app/", Limits{}) },
		"the root made":                      func(h *Host) { h.Cgroup("/", Limits{}) },
		"a workload nowhere":                 func(h *Host) { h.Start("/never", Idle{}) },
		"a workload on no node":              func(h *Host) { h.Start("/app", Idle{}, 7) },
		"a loop that never ends":             func(h *Host) { h.Start("/app", FileLoop{}) },
		"a step beyond its region":           func(h *Host) { h.Start("/app", Script{Regions: []Region{{Anon, 4096}}, Steps: []Step{{Bytes: 8192}}}) },
		"a step without a region":            func(h *Host) { h.Start("/app", Script{Steps: []Step{{Region: 1}}}) },
		"a region of no kind":                func(h *Host) { h.Start("/app", Script{Regions: []Region{{Kind(9), 4096}}}) },
		"an empty zipf":                      func(h *Host) { h.Start("/app", Zipf{}) },
		"an unknown cgroup removed":          func(h *Host) { h.Remove("/never") },
		"the root removed":                   func(h *Host) { h.Remove("/") },
		"a job stopped twice":                func(h *Host) { j := h.Start("/app", Idle{Anon: mib}); j.Stop(); j.Stop() },
		"a sample of what never was":         func(h *Host) { _ = h.Sample(never, new(memcg.Sample)) },
		"reclaim from what never was":        func(h *Host) { h.Reclaim(context.Background(), memcg.Reclaim{Cgroup: never}) },
		"what never was forgotten":           func(h *Host) { h.Forget(never) },
		"time going back":                    func(h *Host) { h.Run(-1) },
		"limits of an unknown cgroup":        func(h *Host) { h.SetLimits("/never", Limits{}) },
		"the truth about an unknown cgroup":  func(h *Host) { h.Truth("/never") },
		"a working set of an unknown cgroup": func(h *Host) { h.WorkingSet("/never", time.Second) },
		"a fault on no call":                 func(h *Host) { h.Inject(Fault{Op: "open"}) },
		"a path on a call that takes none":   func(h *Host) { h.Inject(Fault{Op: OpList, Path: "/app"}) },
		"keys of an unknown cgroup hidden":   func(h *Host) { h.Hide("/never", memcg.StatAnon) },
		"an unknown cgroup reset":            func(h *Host) { h.ResetCounters("/never") },
		"a size rewound":                     func(h *Host) { h.Rewind("/app", memcg.StatAnon, 1) },
		"a counter of nothing rewound":       func(h *Host) { h.Rewind("/never", memcg.StatScan, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			h := New(Config{
				Nodes: []NodeConfig{{Bytes: 8 * mib}}, Kernel: Kernel612,
				Fail: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) },
			})
			h.Cgroup("/app", Limits{})
			misuse(h)
			if len(said) != 1 || !strings.HasPrefix(said[0], "sim: ") {
				t.Errorf("said %q, want one complaint", said)
			}
			mustHold(t, h)
		})
	}
}

func TestMisuseWithoutAnEarPanics(t *testing.T) {
	h := New(Config{Nodes: []NodeConfig{{Bytes: mib}}, Kernel: Kernel612})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	h.Remove("/never")
}

func TestTwoRequestsAtOnceForOneCgroupAreLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		complaints := 0
		h := New(Config{
			Nodes: []NodeConfig{{Bytes: 8 * mib}}, Kernel: Kernel612, Fail: func(string, ...any) { complaints++ },
		})
		id := h.Cgroup("/app", Limits{})
		release := make(chan struct{})
		h.Inject(Fault{Op: OpReclaim, Nth: 1, Block: release})
		done := make(chan memcg.Outcome, 1)
		go func() { done <- h.Reclaim(context.Background(), memcg.Reclaim{Cgroup: id, Bytes: mib}) }()
		synctest.Wait()
		if o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib}); !errors.Is(o.Err, memcg.ErrInvalid) || complaints != 1 {
			t.Errorf("error %v, %d complaints", o.Err, complaints)
		}
		close(release)
		<-done
	})
}
