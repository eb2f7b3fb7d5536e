package cgroupfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// ask returns the results by name.
func ask(t testing.TB, host *FS, in *memcg.ID) map[string]CapResult {
	t.Helper()
	m := map[string]CapResult{}
	for _, r := range host.Capabilities(t.Context(), in) {
		if _, twice := m[r.Name]; twice {
			t.Errorf("%s is reported twice", r.Name)
		}
		m[r.Name] = r
		if (r.Err != nil) != (r.State == CapUnknown) {
			t.Errorf("%s is %v with error %v", r.Name, r.State, r.Err)
		}
		if r.State != CapUnknown && r.Detail == "" {
			t.Errorf("%s is %v and does not say what was seen", r.Name, r.State)
		}
	}
	return m
}

// want checks one result: its state, and a part of what was seen.
func (r CapResult) want(t testing.TB, state CapState, seen string) {
	t.Helper()
	if r.State != state || !strings.Contains(r.Detail, seen) {
		t.Errorf("%s is %v, %q, %v; want %v, ...%q...", r.Name, r.State, r.Detail, r.Err, state, seen)
	}
}

// matched returns a cgroup as one that a policy matches.
func matched(t testing.TB, host *FS, cgroup string) *memcg.ID {
	t.Helper()
	id, err := host.Lookup(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	return &id
}

func TestCapabilitiesOfAHostThatHasThemAll(t *testing.T) {
	host := openHost(t, "testdata/full", ReadOnly())
	got := [][3]string{}
	for _, r := range host.Capabilities(t.Context(), nil) {
		got = append(got, [3]string{r.Name, r.State.String(), strings.ReplaceAll(r.Detail, host.Root(), "")})
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
	const tried = "opened for observing, nothing is written; expected to work, not tried: release 7.3.4+deb13-cloud-amd64, mainline has it since "
	want := [][3]string{
		{CapMemory, "yes", "/sys/fs/cgroup/cgroup.controllers: cpuset cpu io memory pids"},
		{CapReclaim, "yes", "/sys/fs/cgroup/CG/memory.reclaim opens for writing"},
		{CapReclaimSwappiness, "not asked", tried + "6.11"},
		{CapReclaimSwappinessMax, "not asked", tried + "6.16"},
		{CapNumaStat, "yes", "/sys/fs/cgroup/CG/memory.numa_stat: anon N0=41943040 N1=0 ..."},
		{CapNodeScan, "yes", "/sys/fs/cgroup/CG/memory.numa_stat has pgscan_kswapd and pgsteal_kswapd"},
		{CapRefaultSplit, "yes", "/sys/fs/cgroup/CG/memory.stat has workingset_refault_anon and workingset_refault_file"},
		{CapProactiveSplit, "yes", "/sys/fs/cgroup/CG/memory.stat has pgscan_proactive and pgsteal_proactive"},
		{CapHostPressure, "yes", "/proc/pressure/memory: some avg10=0.00 avg60=0.00 avg300=0.00 total=1234 ..."},
		{CapPressure, "yes", "/sys/fs/cgroup/CG/memory.pressure: some avg10=0.00 avg60=0.00 avg300=0.00 total=0 ..."},
		{CapSwap, "yes", "/dev/zram0 is used first, class zram"},
		{CapSwapLimits, "yes", "/sys/fs/cgroup/CG/memory.swap.max: max"},
		{CapZswap, "no", "/sys/module/zswap/parameters/enabled: N"},
		{CapLRUGen, "yes", "/sys/kernel/mm/lru_gen/enabled: 0x0007, /sys/kernel/debug/lru_gen is readable"},
		{CapLRUGenInode, "no", "/sys/kernel/debug/lru_gen lists /app.slice as 37, its directory is INODE"},
		{CapDAMON, "yes", "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds: 0; damon_stat is running, and no other monitor can be started until it is disabled; /sys/module/damon_stat needs paddr"},
		{CapHighNonblock, "not asked", "only a write that lowers a limit could tell; expected to work, not tried: release 7.3.4+deb13-cloud-amd64, mainline has it since 6.16"},
		{CapCpuset, "yes", "/sys/fs/cgroup/CG/cpuset.mems"},
		{CapNUMA, "yes", "3 online, without memory: 2, without CPUs: 1"},
		{CapDemotion, "no", "/sys/kernel/mm/numa/demotion_enabled: false"},
		{CapNodeReclaim, "yes", "/sys/devices/system/node/node0/reclaim"},
	}
	for i := range got {
		detail := &got[i][2]
		for _, c := range []string{"app.slice", "system.slice/memagent.service"} { // whichever the directory lists first
			*detail = strings.Replace(*detail, "/sys/fs/cgroup/"+c+"/", "/sys/fs/cgroup/CG/", 1)
		}
		if before, _, ok := strings.Cut(*detail, "its directory is "); ok {
			*detail = before + "its directory is INODE"
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("capabilities differ (-want +got):\n%s", d)
	}
	if host.Writes() != 0 {
		t.Errorf("%d writes", host.Writes())
	}
}

func TestEveryCapabilityTellsWhatItsLackCosts(t *testing.T) {
	for _, c := range capabilities {
		for what, s := range map[string]string{"Costs": c.Costs, "Remedy": c.Remedy} {
			if !strings.HasSuffix(s, ".") || len(s) < 10 {
				t.Errorf("%s of %s is no sentence: %q", what, c.Name, s)
			}
		}
	}
}

// enforceable opens a copy of a fixture as if it were a real cgroup2 mount, in
// which writes go to the fault layer alone.
func enforceable(t testing.TB, id string, faults []fault, extra ...string) (*FS, *faulty) {
	t.Helper()
	root := fixtureCopy(t, id, append(extra,
		"sys/fs/cgroup/cgroup.controllers", "memory\n",
		"proc/self/mountinfo", "26 1 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"proc/self/cgroup", "0::/system.slice/memagent.service\n",
		"sys/fs/cgroup/system.slice/memagent.service/cgroup.procs", strconv.Itoa(os.Getpid())+"\n")...)
	k := withFaults(t, root, faults)
	k.cgroup2 = true
	host := openHost(t, root, withKernel(k))
	if err := host.Enforceable(); err != nil {
		t.Fatal(err)
	}
	return host, k
}

func TestC30SwappinessIsProbedWithARequestForNothing(t *testing.T) {
	var files []string
	for _, c := range []string{"p", "q", "r"} {
		files = append(files, "sys/fs/cgroup/"+c+"/memory.current", "4096\n", "sys/fs/cgroup/"+c+"/memory.reclaim", "")
	}
	faults := append(faultsOf(t, "c30"), fault{op: "write", path: "sys/fs/cgroup/busy/memory.reclaim", errno: unix.EAGAIN})
	files = append(files, "sys/fs/cgroup/busy/memory.current", "4096\n", "sys/fs/cgroup/busy/memory.reclaim", "")
	for _, tt := range []struct {
		name, cgroup    string
		swappiness, max CapState
		err             error
	}{
		{"a kernel that takes an amount alone", "p", CapNo, CapNo, nil},
		{"a kernel that takes 0 to 200", "q", CapYes, CapNo, nil},
		{"a kernel that takes max", "r", CapYes, CapYes, nil},
		{"an answer that says nothing", "busy", CapUnknown, CapUnknown, memcg.ErrPartial},
		{"a cgroup that has gone", "gone", CapUnknown, CapUnknown, memcg.ErrGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", faults, files...)
			in := &memcg.ID{Path: "/gone", Inode: 1}
			if tt.cgroup != "gone" {
				in = matched(t, host, "/"+tt.cgroup)
			}
			caps := ask(t, host, in)
			caps[CapReclaimSwappiness].want(t, tt.swappiness, "0 swappiness=60")
			caps[CapReclaimSwappinessMax].want(t, tt.max, "0 swappiness=max")
			for _, c := range []string{CapReclaimSwappiness, CapReclaimSwappinessMax} {
				if !errors.Is(caps[c].Err, tt.err) {
					t.Errorf("%s: %v, want %v", c, caps[c].Err, tt.err)
				}
			}
			want := []string{"sys/fs/cgroup/" + tt.cgroup + "/memory.reclaim 0 swappiness=60", "sys/fs/cgroup/" + tt.cgroup + "/memory.reclaim 0 swappiness=max"}
			if tt.cgroup == "gone" {
				want = nil
			}
			if d := cmp.Diff(want, k.writes); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
			if host.Writes() != uint64(len(want)) {
				t.Errorf("%d writes counted", host.Writes())
			}
		})
	}
}

func TestProbesWriteOnlyWhereTheyMay(t *testing.T) {
	files := []string{"sys/fs/cgroup/p/memory.current", "1\n", "sys/fs/cgroup/p/memory.reclaim", "",
		"sys/fs/cgroup/memory.reclaim", "", "sys/fs/cgroup/system.slice/memagent.service/memory.reclaim", "",
		"sys/fs/cgroup/system.slice/memory.reclaim", "", "proc/sys/kernel/osrelease", "6.12.1-generic\n"}
	for _, tt := range []struct {
		name, in string
		opts     []Option
		state    CapState
		seen     string
	}{
		{name: "not without a matched cgroup", state: CapNotAsked, seen: "expected to work, not tried: release 6.12.1-generic"},
		{name: "not when observing", in: "/p", opts: []Option{ReadOnly()}, state: CapNotAsked, seen: "observing"},
		{name: "not the root", in: "/", state: CapUnknown},
		{name: "not the agent's own cgroup", in: "/system.slice/memagent.service", state: CapUnknown},
		{name: "not above the agent's own cgroup", in: "/system.slice", state: CapUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", nil, files...)
			for _, o := range tt.opts {
				o(host)
			}
			var in *memcg.ID
			if tt.in != "" {
				in = matched(t, host, tt.in)
			}
			caps := ask(t, host, in)
			caps[CapReclaimSwappiness].want(t, tt.state, tt.seen)
			caps[CapReclaimSwappinessMax].want(t, tt.state, "")
			if len(k.writes) > 0 || host.Writes() != 0 {
				t.Errorf("wrote %q", k.writes)
			}
			if err := caps[CapReclaimSwappiness].Err; tt.state == CapUnknown && !errors.Is(err, memcg.ErrDenied) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestC32NodesAreNeverAskedForAndDemotionIsSeen(t *testing.T) {
	host, k := enforceable(t, "c32", faultsOf(t, "c32"), "sys/fs/cgroup/p/memory.current", "1\n", "sys/fs/cgroup/p/memory.reclaim", "")
	caps := ask(t, host, matched(t, host, "/p"))
	caps[CapDemotion].want(t, CapYes, "demotion_enabled: true; on hosts with slower memory")
	caps[CapReclaimSwappiness].want(t, CapYes, "")
	for _, w := range k.writes {
		if strings.Contains(w, "nodes=") {
			t.Errorf("wrote %q", w)
		}
	}
}

func TestC35ReclaimThatMayNotBeOpenedIsNotAnOldKernel(t *testing.T) {
	root := fixtureCopy(t, "c35", "sys/fs/cgroup/p/memory.current", "1\n", "sys/fs/cgroup/p/memory.reclaim", "")
	host := openHost(t, root, withKernel(withFaults(t, root, faultsOf(t, "c35"))))
	r := ask(t, host, nil)[CapReclaim]
	r.want(t, CapUnknown, filepath.Join(host.Root(), "sys/fs/cgroup/p/memory.reclaim"))
	if !errors.Is(r.Err, memcg.ErrDenied) || !errors.Is(r.Err, unix.EACCES) {
		t.Errorf("err = %v", r.Err)
	}
}

func TestC21FeaturesAreLookedForBelowTheRoot(t *testing.T) {
	caps := ask(t, openHost(t, "testdata/c21"), nil)
	caps[CapMemory].want(t, CapYes, "")
	caps[CapReclaim].want(t, CapNo, "child/memory.reclaim") // the root has one
	caps[CapNumaStat].want(t, CapNo, "child/memory.numa_stat")
	caps[CapPressure].want(t, CapNo, "child/memory.pressure")
	caps[CapSwapLimits].want(t, CapYes, "child/memory.swap.max") // the root has none
	caps[CapCpuset].want(t, CapNo, "none of 1 cgroups")
}

func TestC22AnOldKernelLacksSwapLimitsAndReclaim(t *testing.T) {
	caps := ask(t, openHost(t, "testdata/c22"), nil)
	caps[CapReclaim].want(t, CapNo, "session.scope/memory.reclaim")
	caps[CapSwapLimits].want(t, CapNo, "session.scope/memory.swap.max")
	caps[CapNumaStat].want(t, CapNo, "")
	caps[CapRefaultSplit].want(t, CapNo, "workingset_refault_anon")
	caps[CapProactiveSplit].want(t, CapNo, "")
	caps[CapPressure].want(t, CapYes, "")
	caps[CapCpuset].want(t, CapYes, "")
	caps[CapSwap].want(t, CapYes, "/dev/sdb2 is used first, class unknown")
}

func TestC24PressureOfCgroups(t *testing.T) {
	for _, tt := range []struct {
		name, variant string
		extra         []string
		state         CapState
		seen          string
	}{
		{"there", "ok", nil, CapYes, "avg10=70.24"},
		{"built in and off", "disabled", nil, CapNo, "compiled in and off"},
		{"not built in", "absent", []string{"absent/sys/fs/cgroup/p/memory.pressure", ""}, CapNo, "no "},
		{"off for one cgroup, which says nothing of the kernel", "per-cgroup-off",
			[]string{"per-cgroup-off/sys/fs/cgroup/q/memory.current", "1\n"}, CapYes, "/q/memory.pressure"},
		{"off for the only cgroup", "alone", []string{"alone/sys/fs/cgroup/p/cgroup.pressure", "0\n"}, CapUnknown, "cgroup.pressure holds 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := fixtureCopy(t, "c24", append(tt.extra, tt.variant+"/sys/fs/cgroup/p/memory.current", "1\n")...)
			host := openHost(t, filepath.Join(top, tt.variant), withKernel(withFaults(t, top, faultsOf(t, "c24"))))
			ask(t, host, nil)[CapPressure].want(t, tt.state, tt.seen)
		})
	}
}

func TestCpusetIsACapabilityOfAnyBranch(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		extra    []string
		state    CapState
		seen     string
	}{
		{"c46 an empty value is a value", "c46", nil, CapYes, "nomad.slice/cpuset.mems"},
		{"c48 delegated", "c48", nil, CapYes, "p/cpuset.mems"},
		{"c48 the names of v1 do not count", "", []string{"sys/fs/cgroup/c/cpuset.effective_mems", "0\n"}, CapNo, "none of 1 cgroups"},
		{"c16 cpuset on v1", "", []string{"sys/fs/cgroup/c/cpuset.mems", "0\n", "proc/self/mountinfo",
			"26 1 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n27 1 0:25 / /cpuset rw - cgroup cgroup rw,cpuset\n"}, CapNo, "v1"},
		{"no cgroup at all", "", nil, CapUnknown, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { ask(t, hostOf(t, tt.id, tt.extra...), nil)[CapCpuset].want(t, tt.state, tt.seen) })
	}
}

func TestWithoutACgroupNothingIsSaidOfCgroups(t *testing.T) {
	caps := ask(t, hostOf(t, ""), nil)
	caps[CapMemory].want(t, CapYes, "enabled in no cgroup")
	for _, name := range []string{CapReclaim, CapNumaStat, CapNodeScan, CapRefaultSplit, CapProactiveSplit, CapPressure, CapSwapLimits, CapCpuset} {
		caps[name].want(t, CapUnknown, "")
		if err := caps[name].Err; !errors.Is(err, errNoCgroup) {
			t.Errorf("%s: %v", name, err)
		}
	}
	caps[CapHighNonblock].want(t, CapNotAsked, "release is not known either")
}

func TestACgroupThatVanishesMeanwhileSaysNothing(t *testing.T) {
	host := openHost(t, cgroupTree(t, "a"))
	p := newProber(host, &memcg.ID{Path: "/gone", Inode: 7})
	if f := p.inCgroup("memory.current", func(where string, _ []byte) finding { return yes(where) }); f.state != CapYes {
		t.Errorf("%+v: stopped at the cgroup that is gone", f)
	}
	p.cgroups = p.cgroups[:1]
	for name, probe := range map[string]func(*prober) finding{"stat": probeRefaultSplit, "reclaim": probeReclaim, "pressure": probePressure} {
		if f := probe(p); f.state != CapUnknown || !errors.Is(f.err, memcg.ErrGone) {
			t.Errorf("%s of a cgroup that is gone: %+v", name, f)
		}
	}
}

func TestAContextThatIsDoneMakesTheRestUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range openHost(t, "testdata/full").Capabilities(ctx, nil) {
		if r.State != CapUnknown || !errors.Is(r.Err, context.Canceled) || r.State.Conclusive() {
			t.Errorf("%s is %v, %v", r.Name, r.State, r.Err)
		}
	}
}

func TestOneNodeWithMemoryIsNoNUMA(t *testing.T) {
	ask(t, hostOf(t, "c12/dead-but-online"), nil)[CapNUMA].want(t, CapNo, "2 online, without memory: 1, without CPUs: 1")
	ask(t, hostOf(t, "c12/lpar"), nil)[CapNUMA].want(t, CapYes, "4 online, without memory: 2, without CPUs: 0-1,3")
	ask(t, hostOf(t, "c09"), nil)[CapNodeReclaim].want(t, CapNo, "no reclaim file in")
}

func TestParseRelease(t *testing.T) {
	for in, want := range map[string][3]int{
		"6.12.117+deb12-cloud-amd64": {6, 12, 1}, "7.3.4": {7, 3, 1}, "6.1-rc2": {6, 1, 1}, "5.4": {5, 4, 1},
		"": {}, "six.1": {0, 0, 0}, "6": {}, "6.": {6, 0, 0}, "-6.1": {},
	} {
		major, minor, ok := parseRelease(in)
		if major != want[0] || minor != want[1] || ok != (want[2] == 1) {
			t.Errorf("parseRelease(%q) = %d, %d, %v", in, major, minor, ok)
		}
	}
}

func TestExpectationsComeFromTheRelease(t *testing.T) {
	for release, want := range map[string]string{
		"6.10.3\n": "expected to be missing", "6.11.0\n": "expected to work", "7.0.0-rc1\n": "expected to work", "5.15.0\n": "expected to be missing",
		"custom\n": "says nothing about it",
	} {
		ask(t, hostOf(t, "", "proc/sys/kernel/osrelease", release), nil)[CapReclaimSwappiness].want(t, CapNotAsked, want)
	}
}
