package sim

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestTouchKeepsItsPace(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	h.Cgroup("/app", Limits{})
	j := h.Start("/app", Touch{Bytes: mib, Every: 100 * time.Millisecond})
	h.Run(10 * time.Second)
	if s := j.Stats(); s.Passes < 99 || s.Passes > 100 || s.LastPass < 99*time.Millisecond || s.LastPass > 101*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestGrowHoldsAndLetsGo(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	h.Cgroup("/app", Limits{})
	j := h.Start("/app", Grow{Bytes: 8 * mib, Rate: 4 * mib, Hold: 3 * time.Second})
	h.Run(time.Second)
	if n := stat(t, h, "/app", memcg.StatAnon); n < 3*mib || n > 5*mib {
		t.Errorf("%d bytes after a second at 4 MiB/s", n)
	}
	h.Run(3 * time.Second)
	if n := stat(t, h, "/app", memcg.StatAnon); n != 8*mib {
		t.Errorf("%d bytes held", n)
	}
	h.Run(2 * time.Second)
	if n := stat(t, h, "/app", memcg.StatAnon); n != 0 || !j.Done() {
		t.Errorf("%d bytes left, done %v", n, j.Done())
	}
	mustHold(t, h)
}

// Page k is drawn with a weight of 1/k^exponent.
func TestZipfDrawsByWeight(t *testing.T) {
	for _, tc := range []struct {
		exponent, want float64 // share of the first 10 of 1000 pages
	}{{0, 0.01}, {1, 2.929 / 7.485}} {
		z := newZipf(1000, 1, tc.exponent, 1, Config{Seed: 3}.source(1))
		const draws = 20_000
		first := 0
		for range draws {
			if z.draw() < 10 {
				first++
			}
		}
		if got := float64(first) / draws; got < tc.want-0.02 || got > tc.want+0.02 {
			t.Errorf("exponent %g: the first 10 of 1000 pages take %.3f, want %.3f", tc.exponent, got, tc.want)
		}
	}
}

func TestStoppedJobLeavesOnlyItsCache(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	id := h.Cgroup("/app", Limits{})
	j := h.Start("/app", Idle{Anon: 8 * mib, File: 8 * mib})
	settle(t, h, j)
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 6 * mib, Swappiness: memcg.SwappinessOf(200)})
	j.Stop()
	s := sampled(t, h, "/app")
	if n := stat(t, h, "/app", memcg.StatAnon); n != 0 {
		t.Errorf("%d bytes of anon left", n)
	}
	if n, _ := s.SwapCurrent.Get(); n != 0 {
		t.Errorf("%d bytes left in swap", n)
	}
	if n, _ := s.Populated.Get(); n != 0 || stat(t, h, "/app", memcg.StatFile) == 0 {
		t.Errorf("populated %d, file %d", n, stat(t, h, "/app", memcg.StatFile))
	}
	mustHold(t, h)
}

func TestLockedMemoryIsNeverReclaimed(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	id := h.Cgroup("/app", Limits{})
	h.Start("/app", Grow{Bytes: 8 * mib, Kind: Locked})
	h.Run(time.Second)
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 8 * mib})
	if n := stat(t, h, "/app", memcg.StatUnevictable); n != 8*mib {
		t.Errorf("%d bytes are left", n)
	}
}

// Program text in use stays active when other mapped pages do not.
func TestTextInUseIsProtected(t *testing.T) {
	h := oneNode(t, Kernel612, 128*mib)
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(16 * mib)})
	text := h.Start("/app", Touch{Bytes: 2 * mib, Kind: Text, Every: 10 * time.Millisecond})
	h.Run(time.Second)
	h.Start("/app", FileLoop{Bytes: 64 * mib})
	h.Run(20 * time.Second)
	if s := text.Stats(); s.Refaults > 512 {
		t.Errorf("%d refaults of text in %d touches", s.Refaults, s.Touches)
	}
}
