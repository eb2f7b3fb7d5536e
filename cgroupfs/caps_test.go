package cgroupfs

import (
	"context"
	"errors"
	"path/filepath"
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
		{CapReclaimNodes, "yes", "through lru_gen, exact: /sys/kernel/mm/lru_gen/enabled: 0x0007, /sys/kernel/debug/lru_gen is readable"},
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
