package sim

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestMaxHoldsAndEventsTellWhoseLimitItWas(t *testing.T) {
	h := oneNode(t, Kernel612, 128*mib)
	h.Cgroup("/a", Limits{Max: memcg.LimitOf(16 * mib)})
	h.Cgroup("/a/b", Limits{})
	settle(t, h, h.Start("/a/b", Idle{Anon: 40 * mib}))
	if n := stat(t, h, "/a", memcg.StatAnon); n > 16*mib || n < 15*mib {
		t.Errorf("%d bytes under a limit of %d", n, 16*mib)
	}
	a, b := sampled(t, h, "/a"), sampled(t, h, "/a/b")
	if n, _ := a.EventsLocal.Max.Get(); n == 0 {
		t.Error("/a met its limit and counts no event")
	}
	if n, _ := b.Events.Max.Get(); n != 0 {
		t.Errorf("/a/b has no limit and counts %d events", n)
	}
	if swap, _ := a.SwapCurrent.Get(); swap != 40*mib-current(t, a) {
		t.Errorf("swap %d, current %d, in all 40 MiB", swap, current(t, a))
	}
	mustHold(t, h)
}

func TestHighReclaimsAndThrottlesOnlyWhereThatDoesNotHelp(t *testing.T) {
	for _, tc := range []struct {
		name      string
		workload  Workload
		swap      uint64
		throttled bool
	}{
		{"cache goes", Idle{File: 40 * mib}, 0, false},
		{"anon goes to swap", Grow{Bytes: 40 * mib}, 64 * mib, false},
		{"anon without swap stays", Grow{Bytes: 40 * mib}, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := New(Config{
				Nodes: []NodeConfig{{Bytes: 128 * mib}}, Kernel: Kernel612, Swap: SwapConfig{Bytes: tc.swap}, Fail: t.Errorf,
			})
			h.Cgroup("/app", Limits{High: memcg.LimitOf(16 * mib)})
			j := h.Start("/app", tc.workload)
			h.Run(20 * time.Second)
			s := sampled(t, h, "/app")
			if n, _ := s.Events.High.Get(); n == 0 {
				t.Error("no high events")
			}
			if j.Done() == tc.throttled {
				t.Errorf("done after 20s: %v, waited %v", j.Done(), j.Stats().Waited)
			}
			if n := current(t, s); !tc.throttled && n > 17*mib {
				t.Errorf("%d bytes over a high of %d", n, 16*mib)
			}
			mustHold(t, h)
		})
	}
}

// delay = 64 r^2 s, at most 2 s, none up to 10 ms.
func TestPenaltyGrowsWithTheSquareOfTheOverage(t *testing.T) {
	for _, tc := range []struct {
		over float64
		want time.Duration
	}{{0, 0}, {0.01, 0}, {0.1, 640 * time.Millisecond}, {0.5, 2 * time.Second}} {
		if got := penalty(tc.over).Round(time.Microsecond); got != tc.want {
			t.Errorf("%.2f over: %v, want %v", tc.over, got, tc.want)
		}
	}
}

func TestWithoutSwapTooMuchAnonIsKilled(t *testing.T) {
	h := New(Config{Nodes: []NodeConfig{{Bytes: 64 * mib}}, Kernel: Kernel612, Fail: t.Errorf})
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(8 * mib)})
	h.Cgroup("/other", Limits{})
	bystander := h.Start("/other", Idle{Anon: 4 * mib})
	j := h.Start("/app", Grow{Bytes: 16 * mib})
	h.Run(10 * time.Second)
	if !j.Stats().Killed || !j.Done() || bystander.Stats().Killed {
		t.Errorf("killed: %v, bystander %v", j.Stats().Killed, bystander.Stats().Killed)
	}
	s := sampled(t, h, "/app")
	if n, _ := s.Events.OOMKill.Get(); n != 1 || current(t, s) != 0 {
		t.Errorf("%d kills, %d bytes left", n, current(t, s))
	}
	mustHold(t, h)
}

func TestSwapLimitOfAnAncestorBinds(t *testing.T) {
	h := oneNode(t, Kernel612, 128*mib)
	h.Cgroup("/a", Limits{SwapMax: memcg.LimitOf(4 * mib)})
	id := h.Cgroup("/a/b", Limits{})
	settle(t, h, h.Start("/a/b", Idle{Anon: 32 * mib}))
	if b, ok := sampled(t, h, "/a/b").SwapRoom.Bytes(); !ok || b != 4*mib {
		t.Errorf("swap room %d, %v", b, ok)
	}
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 16 * mib})
	s := sampled(t, h, "/a/b")
	if n, _ := s.SwapCurrent.Get(); n != 4*mib {
		t.Errorf("%d bytes in swap, the parent allows %d", n, 4*mib)
	}
	if b, ok := s.SwapRoom.Bytes(); !ok || b != 0 {
		t.Errorf("swap room %d, %v", b, ok)
	}
	mustHold(t, h)
}

func TestProtectionOfAChildHoldsUnlessItIsTheTarget(t *testing.T) {
	h := oneNode(t, Kernel612, 128*mib)
	parent := h.Cgroup("/p", Limits{})
	child := h.Cgroup("/p/min", Limits{Min: 8 * mib})
	h.Cgroup("/p/free", Limits{})
	settle(t, h, h.Start("/p/min", Idle{Anon: 8 * mib}))
	settle(t, h, h.Start("/p/free", Idle{Anon: 8 * mib}))
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: parent, Bytes: 8 * mib})
	if n := current(t, sampled(t, h, "/p/min")); n != 8*mib {
		t.Errorf("the protected child has %d bytes left", n)
	}
	if n := current(t, sampled(t, h, "/p/free")); n != 0 {
		t.Errorf("the other child has %d bytes left", n)
	}
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: child, Bytes: 4 * mib})
	if n := current(t, sampled(t, h, "/p/min")); n > 4*mib {
		t.Errorf("asked itself, it has %d bytes left", n)
	}
}

func TestLoweredLimitReclaimsAtOnce(t *testing.T) {
	h := oneNode(t, Kernel612, 128*mib)
	h.Cgroup("/app", Limits{})
	settle(t, h, h.Start("/app", Idle{Anon: 16 * mib, File: 16 * mib}))
	h.SetLimits("/app", Limits{High: memcg.LimitOf(8 * mib)})
	s := sampled(t, h, "/app")
	if n := current(t, s); n > 8*mib {
		t.Errorf("%d bytes over a new high of %d", n, 8*mib)
	}
	if b, ok := s.High.Bytes(); !ok || b != 8*mib || !s.Max.IsMax() {
		t.Errorf("high %v, max %v", s.High, s.Max)
	}
}

func TestRemovedCgroupLeavesItsCacheToTheParent(t *testing.T) {
	h := oneNode(t, Kernel612, 128*mib)
	h.Cgroup("/p", Limits{})
	h.Cgroup("/p/c", Limits{})
	settle(t, h, h.Start("/p/c", Idle{Anon: 8 * mib, File: 8 * mib}))
	h.Remove("/p/c")
	if a, f := stat(t, h, "/p", memcg.StatAnon), stat(t, h, "/p", memcg.StatFile); a != 0 || f != 8*mib {
		t.Errorf("anon %d, file %d", a, f)
	}
	mustHold(t, h)
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, h, "/p"), Bytes: 8 * mib})
	mustHold(t, h)
}

func current(t *testing.T, s *memcg.Sample) uint64 {
	t.Helper()
	v, ok := s.Current.Get()
	if !ok {
		t.Fatalf("memory.current is %v", s.Current)
	}
	return v
}
