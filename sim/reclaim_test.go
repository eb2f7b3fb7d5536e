package sim

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestSwappinessChoosesTheKind(t *testing.T) {
	for _, tc := range []struct {
		name       string
		kernel     Kernel
		swappiness memcg.Swappiness
		anon, file bool // whether some of it goes
	}{
		{"0 takes file only", Kernel612, memcg.SwappinessOf(0), false, true},
		{"nothing passed is the host's 60, which leans to file", Kernel612, memcg.Swappiness{}, false, true},
		{"200 takes anon", Kernel612, memcg.SwappinessOf(200), true, false},
		{"max takes anon only", Kernel73, memcg.SwappinessOf(memcg.SwappinessMax), true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := oneNode(t, tc.kernel, 256*mib)
			id := h.Cgroup("/app", Limits{})
			// A busy file: idle cache on the inactive list is taken first whatever
			// the swappiness.
			settle(t, h, h.Start("/app", Idle{Anon: 64 * mib}))
			h.Start("/app", Touch{Bytes: 64 * mib, Kind: File})
			h.Run(10 * time.Second)
			anon, cache := stat(t, h, "/app", memcg.StatAnon), stat(t, h, "/app", memcg.StatFile)
			o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 8 * mib, Swappiness: tc.swappiness})
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			anonGone, fileGone := stat(t, h, "/app", memcg.StatAnon) < anon, stat(t, h, "/app", memcg.StatFile) < cache
			if anonGone != tc.anon || fileGone != tc.file {
				t.Errorf("anon went: %v, want %v; file went: %v, want %v", anonGone, tc.anon, fileGone, tc.file)
			}
			mustHold(t, h)
		})
	}
}

func TestWhatAKernelDoesNotTakeIsUnsupported(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kernel Kernel
		swap   memcg.Swappiness
		errno  error
	}{
		{"no memory.reclaim", Kernel56, memcg.Swappiness{}, syscall.ENOENT},
		{"no swappiness", Kernel61, memcg.SwappinessOf(0), syscall.EINVAL},
		{"no max", Kernel612, memcg.SwappinessOf(memcg.SwappinessMax), syscall.EINVAL},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := oneNode(t, tc.kernel, 16*mib)
			id := h.Cgroup("/app", Limits{})
			settle(t, h, h.Start("/app", Idle{Anon: 4 * mib}))
			o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, Swappiness: tc.swap})
			if !errors.Is(o.Err, memcg.ErrUnsupported) || !errors.Is(o.Err, tc.errno) {
				t.Errorf("error %v, want unsupported and %v", o.Err, tc.errno)
			}
			if h.Writes() != 0 || o.Reclaimed.Known() {
				t.Errorf("%d writes, reclaimed %v; want nothing done", h.Writes(), o.Reclaimed)
			}
		})
	}
}

// swappiness=max with nothing left to swap to frees nothing and says so.
func TestAnonOnlyWithoutSwapFreesNothing(t *testing.T) {
	h := New(Config{Nodes: []NodeConfig{{Bytes: 64 * mib}}, Kernel: Kernel73, Fail: t.Errorf})
	id := h.Cgroup("/app", Limits{})
	settle(t, h, h.Start("/app", Idle{Anon: 8 * mib, File: 8 * mib}))
	o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, Swappiness: memcg.SwappinessOf(memcg.SwappinessMax)})
	if v, _ := o.Reclaimed.Get(); v != 0 || !errors.Is(o.Err, memcg.ErrPartial) || !errors.Is(o.Err, syscall.EAGAIN) {
		t.Errorf("reclaimed %d, error %v", v, o.Err)
	}
}

func TestReclaimWorksInChunksAndStopsWhereTold(t *testing.T) {
	start := func(t *testing.T) (*Host, memcg.ID) {
		h := oneNode(t, Kernel612, 256*mib)
		id := h.Cgroup("/app", Limits{})
		settle(t, h, h.Start("/app", Idle{Anon: 64 * mib}))
		return h, id
	}
	t.Run("20 MiB are three writes", func(t *testing.T) {
		h, id := start(t)
		o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 20*mib + 100})
		if o.Err != nil || o.Writes != 3 || o.Asked != 20*mib || o.Took <= 0 || h.Now() == 0 {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("the floor ends it between chunks", func(t *testing.T) {
		h, id := start(t)
		o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 60 * mib, Floor: 50 * mib})
		if o.Err != nil || o.Writes != 2 {
			t.Errorf("%d writes, error %v; want 2 of 8 MiB from 64 to below 50", o.Writes, o.Err)
		}
	})
	t.Run("the deadline ends it between chunks", func(t *testing.T) {
		h, id := start(t)
		o := h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 60 * mib, Deadline: time.Nanosecond})
		if !errors.Is(o.Err, memcg.ErrPartial) || o.Writes != 1 {
			t.Errorf("%d writes, error %v", o.Writes, o.Err)
		}
	})
	t.Run("asking for more than there is ends with EAGAIN", func(t *testing.T) {
		h, id := start(t)
		o := h.Reclaim(context.Background(), memcg.Reclaim{Cgroup: id, Bytes: 100 * mib})
		if v, _ := o.Reclaimed.Get(); !errors.Is(o.Err, syscall.EAGAIN) || v != 64*mib {
			t.Errorf("reclaimed %d, error %v", v, o.Err)
		}
		if out, _ := o.SwapOut.Get(); out != 64*mib {
			t.Errorf("swapped out %d", out)
		}
		mustHold(t, h)
	})
}

// Whose account reclaim goes on is the kernel's choice.
func TestProactiveReclaimIsCountedByGeneration(t *testing.T) {
	for _, tc := range []struct {
		kernel Kernel
		key    memcg.Stat
	}{{Kernel61, memcg.StatStealDirect}, {Kernel612, memcg.StatStealDirect}, {Kernel73, memcg.StatStealProactive}} {
		h := oneNode(t, tc.kernel, 64*mib)
		id := h.Cgroup("/app", Limits{})
		settle(t, h, h.Start("/app", Idle{Anon: 16 * mib}))
		h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 4 * mib})
		if n := stat(t, h, "/app", tc.key); n < 4*mib/PageSize {
			t.Errorf("%s: %v is %d", tc.kernel, tc.key, n)
		}
		s := sampled(t, h, "/app")
		if tc.key == memcg.StatStealProactive {
			if n := stat(t, h, "/app", memcg.StatStealDirect); n != 0 {
				t.Errorf("%s: pgsteal_direct is %d", tc.kernel, n)
			}
		} else if st := s.Stat.Get(memcg.StatStealProactive).State(); st != memcg.Unsupported {
			t.Errorf("%s: pgsteal_proactive is %v", tc.kernel, st)
		}
	}
}

// The formula of the balance, by hand: equal costs leave swappiness alone; a
// side whose pages keep coming back is spared, but never wholly.
func TestFractionsWeighSwappinessByCost(t *testing.T) {
	for _, tc := range []struct {
		name               string
		anon, file, swappy uint64
		want               float64 // share of anon
	}{
		{"no costs, 60", 0, 0, 60, 0.3},
		{"no costs, 200", 0, 0, 200, 1},
		{"no costs, 0", 0, 0, 0, 0},
		{"equal costs", 10_000, 10_000, 100, 0.5},
		{"anon expensive", 1_000_000, 0, 100, 1. / 3},
		{"file expensive", 0, 1_000_000, 100, 2. / 3},
	} {
		s := fractions(tc.anon, tc.file, tc.swappy)
		got := float64(s.anon) / float64(s.anon+s.file)
		if got < tc.want-0.02 || got > tc.want+0.02 {
			t.Errorf("%s: anon gets %.3f, want %.3f", tc.name, got, tc.want)
		}
	}
}

func TestInactiveListMayBeSmallerOnBigLists(t *testing.T) {
	h := oneNode(t, Kernel612, mib)
	gib := uint64(1 << 30 / PageSize)
	for _, tc := range []struct {
		gib  uint64
		want uint64 // active pages for one inactive
	}{{1, 3}, {10, 10}, {100, 31}, {1024, 101}} {
		total := tc.gib * gib
		low, enough := total/(tc.want+2), total/(tc.want+1)+1
		for _, c := range []struct {
			inactive uint64
			want     bool
		}{{low, true}, {enough, false}} {
			v := vec{}
			v.size[inactiveFile], v.size[activeFile] = c.inactive, total-c.inactive
			if got := h.inactiveLow(&v, fileKind); got != c.want {
				t.Errorf("%d GiB with %d inactive: low is %v, want %v", tc.gib, c.inactive, got, c.want)
			}
		}
	}
}
