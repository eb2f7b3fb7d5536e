package sim

import (
	"math"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestStateAsText(t *testing.T) {
	h := New(Config{
		Nodes: []NodeConfig{{ID: 0, Bytes: 4 * mib}, {ID: 3, Bytes: 4 * mib}}, Kernel: Kernel612,
		Swap: SwapConfig{Bytes: mib}, Fail: t.Errorf,
	})
	h.Cgroup("/a", Limits{Max: memcg.LimitOf(mib), Mems: memcg.NodesOf(3)})
	h.Start("/a", Idle{Anon: mib / 2})
	h.Cgroup("/b", Limits{})
	h.Run(time.Second)
	h.Inject(Fault{Op: OpList, Nth: 2, Err: memcg.ErrDenied})
	const want = `kernel 6.12  time 1s  writes 0
swap zram  0 of 256 pages
node 0  1024 of 1024 pages free  low 4  high 8
node 3  896 of 1024 pages free  low 4  high 8
/  inode 1  usage 128  swap 0  high max  max max  swap.max max  mems 0,3
  N3  inactive_anon 128 (own 0)  age 0  cost 0/0
  fault 128
/a  inode 2  usage 128  swap 0  high max  max 256  swap.max max  mems 3
  N3  inactive_anon 128  age 0  cost 0/0
  fault 128
  job 0  idle anon 512KiB file 0B  touches 128  refaults 0  passes 0  finished
/b  inode 3  usage 0  swap 0  high max  max max  swap.max max  mems 0,3
fault list  number 2: access denied
`
	if got := h.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestFullNodeSpillsToItsNeighbourAndSwapsOnlyWhenAllAreFull(t *testing.T) {
	h := New(Config{
		Nodes: []NodeConfig{
			{ID: 0, Bytes: 16 * mib, Distance: []int{10, 30, 20}}, {ID: 4, Bytes: 16 * mib}, {ID: 9, Bytes: 16 * mib},
		},
		Kernel: Kernel73, Swap: SwapConfig{Bytes: 64 * mib}, Fail: t.Errorf,
	})
	h.Cgroup("/wide", Limits{})
	settle(t, h, h.Start("/wide", Idle{Anon: 24 * mib}, 0))
	s := sampled(t, h, "/wide")
	if n := nodeAnon(t, s, 9); n < 7*mib || nodeAnon(t, s, 4) != 0 {
		t.Errorf("node 9 has %d, node 4 %d; node 9 is nearer", n, nodeAnon(t, s, 4))
	}
	if n, _ := s.SwapCurrent.Get(); n != 0 {
		t.Errorf("%d bytes swapped with a node free", n)
	}

	// A cgroup that may use one node only swaps beside free ones.
	h.Cgroup("/narrow", Limits{Mems: memcg.NodesOf(4)})
	settle(t, h, h.Start("/narrow", Idle{Anon: 20 * mib}))
	s = sampled(t, h, "/narrow")
	if n, _ := s.SwapCurrent.Get(); n < 4*mib {
		t.Errorf("%d bytes swapped, want at least 4 MiB", n)
	}
	if s.MemsEffective != memcg.NodesOf(4) || nodeAnon(t, s, 9) != 0 {
		t.Errorf("mems %v, node 9 has %d", s.MemsEffective, nodeAnon(t, s, 9))
	}
	mustHold(t, h)
	var host memcg.HostSample
	if err := h.HostSample(&host); err != nil {
		t.Fatal(err)
	}
	if n := host.Nodes[1]; n.ID != 4 || n.MemFree == (memcg.Field{}) || !n.HasMemory || host.Swap != memcg.SwapZram {
		t.Errorf("node %+v, swap %v", n, host.Swap)
	}
}

func nodeAnon(t *testing.T, s *memcg.Sample, id memcg.NodeID) uint64 {
	t.Helper()
	n, ok := s.Node(id)
	if !ok {
		t.Fatalf("no node %d", id)
	}
	v, _ := n.Get(memcg.NodeAnon).Get()
	return v
}

func TestKernelsPrintWhatTheyHave(t *testing.T) {
	for _, tc := range []struct {
		kernel  Kernel
		key     memcg.Stat
		present bool
	}{
		{Kernel56, memcg.StatRefault, true}, {Kernel56, memcg.StatRefaultFile, false},
		{Kernel61, memcg.StatRefault, false}, {Kernel61, memcg.StatRefaultFile, true},
		{Kernel61, memcg.StatPswpout, false}, {Kernel61, memcg.StatDemoteDirect, false},
		{Kernel612, memcg.StatDemoteDirect, true}, {Kernel612, memcg.StatPswpout, false},
		{Kernel73, memcg.StatPswpout, true}, {Kernel73, memcg.StatStealProactive, true},
		{Kernel73, memcg.StatHugetlb, false},
		{Kernel73.Without(memcg.StatZswap), memcg.StatZswap, false},
	} {
		h := New(Config{Nodes: []NodeConfig{{Bytes: mib}}, Kernel: tc.kernel})
		h.Cgroup("/app", Limits{})
		want := memcg.Unsupported
		if tc.present {
			want = memcg.Present
		}
		if got := sampled(t, h, "/app").Stat.Get(tc.key).State(); got != want {
			t.Errorf("%s: %v is %v, want %v", tc.kernel, tc.key, got, want)
		}
	}
	if !Kernel73.Prints(memcg.StatZswap) {
		t.Error("Without changed the kernel it was called on")
	}
}

func TestWhatAHostLacksIsUnsupported(t *testing.T) {
	h := New(Config{
		Nodes: []NodeConfig{{Bytes: mib}}, Kernel: Kernel61, NoPSI: true, NoNUMAStat: true, NoCpuset: true,
	})
	h.Cgroup("/app", Limits{SwapMax: memcg.NoLimitFile(memcg.Unsupported)})
	s := sampled(t, h, "/app")
	for name, st := range map[string]memcg.State{
		"pressure": s.Pressure.Some.Total.State(), "numa_stat": s.NodesState, "cpuset": s.MemsState,
		"swap.current": s.SwapCurrent.State(), "swap.max": s.SwapMax.State(), "swap room": s.SwapRoom.State(),
		"swap events": s.SwapEvents.Fail.State(),
	} {
		if st != memcg.Unsupported {
			t.Errorf("%s is %v", name, st)
		}
	}
}

func TestPressureIsTheTimeSomebodyWaited(t *testing.T) {
	h := oneNode(t, Kernel612, 64*mib)
	h.Cgroup("/app", Limits{Max: memcg.LimitOf(8 * mib)})
	h.Start("/app", FileLoop{Bytes: 16 * mib})
	h.Run(20 * time.Second)
	before := sampled(t, h, "/app").Pressure
	h.Run(20 * time.Second)
	after := sampled(t, h, "/app").Pressure
	some, _ := after.Some.Total.Since(before.Some.Total)
	share := float64(some) / 20e6
	if share < 0.5 || share > 1 {
		t.Errorf("waited %.2f of the time", share)
	}
	if math.Abs(after.Some.Avg10-100*share) > 5 || after.Full.Total != after.Some.Total {
		t.Errorf("avg10 %.1f%%, some %v, full %v; one workload waits alone", after.Some.Avg10, after.Some.Total, after.Full.Total)
	}
}

func TestStallsThatOverlapCountOnce(t *testing.T) {
	var s stallClock
	if o := s.add(0, 10); o != 0 {
		t.Errorf("overlap %v", o)
	}
	if o := s.add(4, 12); o != 6 {
		t.Errorf("overlap %v, want 6", o)
	}
	if o := s.add(5, 8); o != 3 {
		t.Errorf("overlap %v, want 3", o)
	}
	if got := []time.Duration{s.at(12), s.at(11), s.at(6)}; got[0] != 12 || got[1] != 11 || got[2] != 6 {
		t.Errorf("stalls %v", got)
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	h := oneNode(t, Kernel73, 64*mib)
	id := h.Cgroup("/app", Limits{Max: memcg.LimitOf(8 * mib)})
	h.Start("/app", Idle{Anon: 16 * mib})
	h.Run(time.Second)
	var s memcg.Sample
	var host memcg.HostSample
	ids := make([]memcg.ID, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		h.BeginTick()
		ids, _ = h.Cgroups(ids[:0])
		if h.Sample(id, &s) != nil || h.HostSample(&host) != nil {
			t.Error("a read failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestZswapIsCountedApart(t *testing.T) {
	h := New(Config{
		Nodes: []NodeConfig{{Bytes: 64 * mib}}, Kernel: Kernel73, Swap: SwapConfig{Bytes: 64 * mib, Class: memcg.SwapZswap},
	})
	id := h.Cgroup("/app", Limits{})
	h.Start("/app", Idle{Anon: 8 * mib})
	h.Run(time.Second)
	h.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 4 * mib})
	if z, p := stat(t, h, "/app", memcg.StatZswpout), stat(t, h, "/app", memcg.StatPswpout); z == 0 || p != 0 {
		t.Errorf("zswpout %d, pswpout %d", z, p)
	}
	if n := stat(t, h, "/app", memcg.StatZswapped); n < 4*mib {
		t.Errorf("zswapped %d", n)
	}
}
