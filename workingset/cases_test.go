package workingset

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// readCase reads the files of one cgroup of a fixture. Keys and files that are
// not there are unsupported, as a reader would have it.
func readCase(t *testing.T, dir string) *memcg.Sample {
	t.Helper()
	s := &memcg.Sample{Min: memcg.LimitOf(0), SwapRoom: memcg.Unlimited()}
	s.Stat.SetAll(memcg.Unsupported)
	for key, v := range keyed(t, filepath.Join(dir, "memory.stat")) {
		if k, ok := memcg.StatNamed([]byte(key)); ok {
			s.Stat.Set(k, v)
		}
	}
	s.Current = single(t, filepath.Join(dir, "memory.current"))
	s.SwapCurrent = single(t, filepath.Join(dir, "memory.swap.current"))
	s.High, s.Max = limitFile(t, filepath.Join(dir, "memory.high")), limitFile(t, filepath.Join(dir, "memory.max"))
	events := keyed(t, filepath.Join(dir, "memory.events"))
	s.Events.High, s.Events.Max = events["high"], events["max"]
	s.Pressure.Some = pressureLine(t, dir, "some")
	s.Pressure.Full = pressureLine(t, dir, "full")
	return s
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func field(s string) memcg.Field {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return memcg.Absent(memcg.Invalid)
	}
	return memcg.Value(v)
}

func single(t *testing.T, path string) memcg.Field {
	t.Helper()
	s := text(t, path)
	if s == "" {
		return memcg.Absent(memcg.Unsupported)
	}
	return field(s)
}

func limitFile(t *testing.T, path string) memcg.Limit {
	t.Helper()
	if text(t, path) == "max" || text(t, path) == "" {
		return memcg.Unlimited()
	}
	v, _ := single(t, path).Get()
	return memcg.LimitOf(v)
}

func keyed(t *testing.T, path string) map[string]memcg.Field {
	t.Helper()
	m := map[string]memcg.Field{}
	for line := range strings.Lines(text(t, path)) {
		if w := strings.Fields(line); len(w) >= 2 {
			m[strings.TrimSuffix(w[0], ":")] = field(w[1])
		}
	}
	return m
}

func pressureLine(t *testing.T, dir, which string) (s memcg.Stall) {
	t.Helper()
	for line := range strings.Lines(text(t, filepath.Join(dir, "memory.pressure"))) {
		w := strings.Fields(line)
		if w[0] != which {
			continue
		}
		s.Avg10, _ = strconv.ParseFloat(strings.TrimPrefix(w[1], "avg10="), 64)
		s.Avg60, _ = strconv.ParseFloat(strings.TrimPrefix(w[2], "avg60="), 64)
		s.Total = field(strings.TrimPrefix(w[4], "total="))
	}
	return s
}

// readHost reads a fixture's meminfo; 4 GiB of free swap where it has none.
func readHost(t *testing.T, dir string) *memcg.HostSample {
	t.Helper()
	h := defaultHost()
	info := keyed(t, filepath.Join(dir, "proc/meminfo"))
	for key, f := range map[string]*memcg.Field{
		"MemTotal": &h.MemTotal, "MemFree": &h.MemFree, "MemAvailable": &h.MemAvailable, "SwapTotal": &h.SwapTotal, "SwapFree": &h.SwapFree,
	} {
		if v, ok := info[key].Get(); ok {
			*f = memcg.Value(v * 1024)
		}
	}
	return &h
}

// twice decides on two samples five seconds apart.
func twice(a, b *memcg.Sample, h *memcg.HostSample, p Policy, own Own) Decision {
	var st State
	Decide(&st, Input{Sample: a, Host: h}, p)
	return Decide(&st, Input{Sample: b, Host: h, Elapsed: 5 * time.Second, Own: own}, p)
}

func fold(s *memcg.Sample, k memcg.Stat, by uint64) *memcg.Sample {
	var c memcg.Sample
	c.CopyFrom(s)
	v, _ := c.Stat.Get(k).Get()
	c.Stat.Set(k, memcg.Value(v+by))
	return &c
}

func TestC01CountersWithoutASplitDecideNothing(t *testing.T) {
	s := readCase(t, "testdata/c01/sys/fs/cgroup/app.slice")
	p := defaultPolicy()
	for _, law := range []Law{Memagent, TMO, Senpai} {
		p.Law = law
		d := twice(s, fold(s, memcg.StatSteal, 1000), readHost(t, "testdata/c01"), p, Own{Known: true})
		if d.Verdict != Unknown || d.Rule != "missing-counters" || d.Intent.Bytes != 0 {
			t.Errorf("%v: %v by %s, %d bytes", law, d.Verdict, d.Rule, d.Intent.Bytes)
		}
		named := false
		for _, term := range d.Because {
			named = named || term.Name == "workingset_refault_file" && !term.Known && term.Unit == "unsupported"
		}
		if !named {
			t.Errorf("%v: the missing counter is not named: %+v", law, d.Because)
		}
	}
}

func TestC02OwnReclaimIsNoPressure(t *testing.T) {
	t0 := readCase(t, "testdata/c02/t0/sys/fs/cgroup/app.slice")
	t1 := readCase(t, "testdata/c02/t1/sys/fs/cgroup/app.slice")
	without := func(s *memcg.Sample) *memcg.Sample {
		c := fold(s, memcg.StatSteal, 0)
		c.Stat.Set(memcg.StatStealProactive, memcg.Absent(memcg.Unsupported))
		c.Stat.Set(memcg.StatScanProactive, memcg.Absent(memcg.Unsupported))
		return c
	}
	full := func(s *memcg.Sample) *memcg.Sample {
		c := fold(s, memcg.StatSteal, 0)
		c.Current = memcg.Value(80 * mib)
		c.Pressure.Some.Total, c.Pressure.Full.Total = memcg.Value(0), memcg.Value(0)
		return c
	}
	for _, c := range []struct {
		name   string
		t0, t1 *memcg.Sample
		own    Own
		want   float64 // kernel evictions a second
		known  bool
	}{
		{"the kernel counts it apart", t0, t1, Own{}, 0, true},
		{"an older kernel, and the agent measured 4096 pages", without(t0), without(t1), Own{FilePages: 4096, Known: true}, 0, true},
		{"an older kernel, and the agent took nothing", without(t0), without(t1), Own{Known: true}, 4096.0 / 5, true},
		{"an older kernel, and what the agent took is not known", without(t0), without(t1), Own{}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := twice(full(c.t0), full(c.t1), readHost(t, "testdata/c02"), defaultPolicy(), c.own)
			got, ok := d.Signals.KernelEvicts.Get()
			if ok != c.known || got != c.want {
				t.Errorf("kernel evictions %v, want %v (known %v)", d.Signals.KernelEvicts, c.want, c.known)
			}
			if e := d.Signals.File.Evictions.or(-1); e != 4096.0/5 {
				t.Errorf("file evictions %v a second: own reclaim empties memory all the same", e)
			}
		})
	}
}

func TestC03TheGapStandsInForAMissingKernelKey(t *testing.T) {
	for _, dir := range []string{"nokmem", "pre-5.18"} {
		s := readCase(t, "testdata/c03/"+dir+"/sys/fs/cgroup/pod")
		s.Current = memcg.Value(57991168)
		if got := kernelMemory(s); got != 57991168-25473024-31657984 {
			t.Errorf("%s: %d bytes of kernel memory", dir, got)
		}
	}
	nokmem := readCase(t, "testdata/c03/nokmem/sys/fs/cgroup/pod")
	old := readCase(t, "testdata/c03/pre-5.18/sys/fs/cgroup/pod")
	if a, b := nokmem.Stat.Get(memcg.StatKernel), old.Stat.Get(memcg.StatKernel); a == b {
		t.Errorf("kernel 0 and no kernel key read the same: %v, %v", a, b)
	}
}

func TestC38ThrottledBelowItsAnonIsNeverSqueezed(t *testing.T) {
	s := readCase(t, "testdata/c38/sys/fs/cgroup/system.slice/edge.service")
	for k, v := range map[memcg.Stat]uint64{memcg.StatRefaultAnon: 0, memcg.StatActivateAnon: 0, memcg.StatActivateFile: 0, memcg.StatPswpout: 0} {
		s.Stat.Set(k, memcg.Value(v))
	}
	later := fold(s, memcg.StatRefaultFile, 2000)
	later = fold(fold(later, memcg.StatScan, 79000), memcg.StatSteal, 2400)
	high, _ := s.Events.High.Get()
	later.Events.High = memcg.Value(high + 500)
	some, _ := s.Pressure.Some.Total.Get()
	full, _ := s.Pressure.Full.Total.Get()
	later.Pressure.Some.Total = memcg.Value(some + 4_400_000)
	later.Pressure.Full.Total = memcg.Value(full + 4_390_000)
	d := twice(s, later, readHost(t, "testdata/c38"), defaultPolicy(), Own{Known: true})
	if d.Verdict != Throttled || d.Intent.Bytes != 0 {
		t.Errorf("%v, %d bytes by %s: %+v", d.Verdict, d.Intent.Bytes, d.Rule, d.Because)
	}
	if floor := d.Signals.Floor.or(0); floor < 284164096+9437184 {
		t.Errorf("floor %.0f is below anon and kernel memory, and there is no swap", floor)
	}
}

func TestC52AnAncestorsFullSwapMakesAnonUnreclaimable(t *testing.T) {
	s := readCase(t, "testdata/c52/sys/fs/cgroup/a/b")
	h := readHost(t, "testdata/c52")
	p := defaultPolicy()
	s.SwapRoom = memcg.LimitOf(0) // the parent's swap.max is used up
	f, _, ok := floorOf(s, h, &p)
	if !ok || f.room != 0 || f.bytes < 4294967296 {
		t.Errorf("floor %+v, want all of anon in it", f)
	}
	s.SwapRoom = memcg.Unlimited()
	f, _, _ = floorOf(s, h, &p)
	if f.room != 7000000*1024 || f.stuck != 0 {
		t.Errorf("with room in every ancestor: %+v, want the host's free swap", f)
	}
	s.SwapRoom = memcg.NoLimitFile(memcg.Unsupported)
	if f, _, _ = floorOf(s, h, &p); f.room != 0 || f.stuck != 4294967296 {
		t.Errorf("without swap files: %+v, want no room (case c22)", f)
	}
}

func TestC53SwapThatIsKeptFreeIsNoRoom(t *testing.T) {
	f := restingFeed()
	b := newBench(t, f)
	b.host = *readHost(t, "testdata/c53")
	b.policy.SwapKeepFree = 0.2
	b.policy.Swappiness.Min = 60
	b.run(30)
	for _, tk := range b.trace[1:] {
		if tk.d.Intent.Bytes != 0 || tk.d.Signals.SwapRoom.or(-1) != 0 {
			t.Fatalf("at %.0f s: %d bytes at swappiness %v with swap 6 %% free", tk.at, tk.d.Intent.Bytes, tk.d.Intent.Swappiness)
		}
	}
	b = newBench(t, f)
	b.host = *readHost(t, "testdata/c53")
	b.policy.SwapKeepFree = 0.2
	d := b.run(30).d
	if n, set := d.Intent.Swappiness.Get(); d.Intent.Bytes == 0 || !set || n != 0 {
		t.Errorf("a policy that allows 0: %d bytes at swappiness %v, want file at 0", d.Intent.Bytes, d.Intent.Swappiness)
	}
}

func TestC62ALimitTooSmallForAnonIsNotReclaimed(t *testing.T) {
	s := readCase(t, "testdata/c62/sys/fs/cgroup/lxc/392")
	for k, v := range map[memcg.Stat]uint64{
		memcg.StatInactiveAnon: 3800000000, memcg.StatActiveAnon: 65468928, memcg.StatPswpout: 0,
		memcg.StatSteal: 1_800_020_000, memcg.StatScan: 3_600_000_000, memcg.StatActivateAnon: 0, memcg.StatActivateFile: 0,
	} {
		s.Stat.Set(k, memcg.Value(v))
	}
	s.SwapRoom = memcg.LimitOf(0)
	h := readHost(t, "testdata/c62")
	var st State
	p := defaultPolicy()
	Decide(&st, Input{Sample: s, Host: h}, p)
	var d Decision
	for range 6 {
		s = fold(fold(fold(s, memcg.StatRefaultFile, 50_000), memcg.StatSteal, 50_000), memcg.StatScan, 100_000)
		some, _ := s.Pressure.Some.Total.Get()
		s.Pressure.Some.Total = memcg.Value(some + 4_600_000)
		d = Decide(&st, Input{Sample: s, Host: h, Elapsed: 5 * time.Second, Own: Own{Known: true}}, p)
		if d.Intent.Bytes != 0 {
			t.Fatalf("%d bytes by %s", d.Intent.Bytes, d.Rule)
		}
	}
	if d.Verdict != LimitBound || d.Signals.Short.or(0) <= 0 {
		t.Errorf("%v, short of %v bytes", d.Verdict, d.Signals.Short)
	}
}

// A service whose limit is just above its anon reads 8 MiB of its own program
// again at each request.
func TestC63AProgramThatIsReadAgainAtItsLimitIsNotReclaimed(t *testing.T) {
	f := underLimit(4 * mib)
	f.gauges[memcg.StatAnon], f.gauges[memcg.StatInactiveAnon] = constant(174*mib), constant(124*mib)
	f.gauges[memcg.StatFile], f.gauges[memcg.StatInactiveFile] = constant(4*mib), constant(3*mib)
	f.gauges[memcg.StatActiveFile] = constant(mib)
	f.counters[memcg.StatSteal], f.counters[memcg.StatScan] = constant(2048), constant(4096)
	f.counters[memcg.StatRefaultFile] = constant(2048).from(0.5)
	b := newBench(t, f)
	b.policy.Swappiness = Swappiness{Kind: Fixed, Value: 0}
	b.policy.Headroom = Headroom{On: true, Fraction: 0.02}
	for range 10 {
		tk := b.step()
		if tk.d.Intent.Bytes != 0 || tk.d.Hold.Above != 0 {
			t.Fatalf("after %.0f s %d bytes by %s, kept below %d", tk.at, tk.d.Intent.Bytes, tk.d.Rule, tk.d.Hold.Above)
		}
		if tk.at >= 3 && (tk.d.Verdict != LimitBound || tk.d.Signals.Short.or(0) <= 0) {
			t.Errorf("after %.0f s %v, short of %v bytes", tk.at, tk.d.Verdict, tk.d.Signals.Short)
		}
	}
}

func TestC66ReclaimableSlabIsReclaimable(t *testing.T) {
	s := &memcg.Sample{Current: memcg.Value(1300 * mib), Min: memcg.LimitOf(0), SwapRoom: memcg.Unlimited()}
	s.Stat.SetAll(memcg.Unsupported)
	s.Stat.Set(memcg.StatAnon, memcg.Value(15*mib))
	s.Stat.Set(memcg.StatFile, memcg.Value(10*mib))
	s.Stat.Set(memcg.StatKernel, memcg.Value(1275*mib))
	s.Stat.Set(memcg.StatSlabReclaimable, memcg.Value(1200*mib))
	h := defaultHost()
	p := defaultPolicy()
	if f, _, ok := floorOf(s, &h, &p); !ok || f.bytes != 75*mib {
		t.Errorf("floor %d MiB, want the 75 MiB of kernel memory that no shrinker frees", f.bytes/mib)
	}
}

func TestUnderAPolicyOfNeverSwappingAllAnonStays(t *testing.T) {
	s := readCase(t, "testdata/c52/sys/fs/cgroup/a/b")
	p := defaultPolicy()
	p.Swappiness = Swappiness{Kind: Fixed, Value: 0}
	if f, _, ok := floorOf(s, readHost(t, "testdata/c52"), &p); !ok || f.stuck != 4294967296 {
		t.Errorf("%d bytes of anon stay, want all 4 GiB", f.stuck)
	}
}
