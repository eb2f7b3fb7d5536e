package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func idOf(t testing.TB, fs *FS, cgroup string) memcg.ID {
	t.Helper()
	id, err := fs.Lookup(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// sampleOf reads one cgroup of a tree once.
func sampleOf(t testing.TB, root, cgroup string, opts ...Option) *memcg.Sample {
	t.Helper()
	fs := mustOpen(t, root, opts...)
	var s memcg.Sample
	if err := fs.Sample(idOf(t, fs, cgroup), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// fullCgroup are all the files of one cgroup as 7.3 has them.
func fullCgroup(t testing.TB, dir string) []string {
	t.Helper()
	files := map[string]string{
		"memory.current": "1124073472\n", "memory.min": "0\n", "memory.low": "4096\n", "memory.high": "2147483648\n", "memory.max": "max\n",
		"memory.events": "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 0\n", "memory.events.local": "low 0\nhigh 2\nmax 0\noom 0\noom_kill 0\n",
		"memory.swap.current": "1048576\n", "memory.swap.max": "3145728\n", "memory.swap.events": "high 0\nmax 1\nfail 2\n",
		"cgroup.events": "populated 1\nfrozen 0\n", "cpuset.mems": "\n", "cpuset.mems.effective": "0-1\n",
		"memory.stat":      string(fixture(t, "c02/t0/sys/fs/cgroup/app.slice/memory.stat")),
		"memory.numa_stat": string(fixture(t, "c07/v2/sys/fs/cgroup/pod/memory.numa_stat")),
		"memory.pressure":  string(fixture(t, "c24/ok/sys/fs/cgroup/p/memory.pressure")),
	}
	var list []string
	for name, content := range files {
		list = append(list, filepath.Join(dir, name), content)
	}
	return list
}

func TestASampleHasEveryFile(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/app")...)
	s := sampleOf(t, root, "/app")
	for name, got := range map[string][2]any{
		"current": {s.Current, memcg.Value(1124073472)}, "swap": {s.SwapCurrent, memcg.Value(1 << 20)},
		"min": {s.Min, memcg.LimitOf(0)}, "low": {s.Low, memcg.LimitOf(4096)}, "high": {s.High, memcg.LimitOf(2 << 30)}, "max": {s.Max, memcg.Unlimited()},
		"swap.max": {s.SwapMax, memcg.LimitOf(3 << 20)}, "room": {s.SwapRoom, memcg.LimitOf(2 << 20)},
		"oom_kill": {s.Events.OOMKill, memcg.Value(5)}, "local": {s.EventsLocal.Low, memcg.Value(0)}, "fail": {s.SwapEvents.Fail, memcg.Value(2)},
		"populated": {s.Populated, memcg.Value(1)}, "frozen": {s.Frozen, memcg.Value(0)}, "anon": {s.Stat.Get(memcg.StatAnon), memcg.Value(25473024)},
		"nodes": {s.NodesState, memcg.Present}, "pressure": {s.Pressure.Full.Total, memcg.Value(3300487258)},
		"mems": {s.Mems, memcg.NodeMask{}}, "effective": {s.MemsEffective, memcg.NodesOf(0, 1)}, "mems state": {s.MemsState, memcg.Present},
	} {
		if got[0] != got[1] {
			t.Errorf("%s = %v, want %v", name, got[0], got[1])
		}
	}
	if len(s.Nodes) != 2 {
		t.Errorf("%d nodes", len(s.Nodes))
	}
}

func TestSampleAllocatesNothing(t *testing.T) {
	root := fixtureCopy(t, "", append(fullCgroup(t, "sys/fs/cgroup/a/b/app"),
		"sys/fs/cgroup/a/memory.swap.max", "max\n", "sys/fs/cgroup/a/memory.swap.current", "0\n")...)
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/a/b/app")
	var s memcg.Sample
	if n := testing.AllocsPerRun(2*recheck, func() {
		fs.BeginTick()
		if err := fs.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}

func TestAnOldSampleLeavesNothingBehind(t *testing.T) {
	root := fixtureCopy(t, "c01", fullCgroup(t, "sys/fs/cgroup/app")...)
	fs := mustOpen(t, root)
	var used, fresh memcg.Sample
	if err := fs.Sample(idOf(t, fs, "/app"), &used); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*memcg.Sample{&used, &fresh} {
		if err := fs.Sample(idOf(t, fs, "/app.slice"), s); err != nil {
			t.Fatal(err)
		}
	}
	used.Nodes, fresh.Nodes = append([]memcg.NodeStats{}, used.Nodes...), append([]memcg.NodeStats{}, fresh.Nodes...)
	if !cmp.Equal(used, fresh, memcgFields) {
		t.Error(cmp.Diff(fresh, used, memcgFields))
	}
}

func TestC05LimitsInASample(t *testing.T) {
	s := sampleOf(t, "testdata/c05/unlimited", "/a")
	if !s.High.IsMax() || !s.Max.IsMax() || !s.SwapMax.IsMax() {
		t.Errorf("max: high %v, max %v, swap.max %v", s.High, s.Max, s.SwapMax)
	}
	s = sampleOf(t, "testdata/c05/huge", "/b")
	if !s.High.IsMax() || !s.Max.IsMax() || !s.SwapMax.IsMax() {
		t.Errorf("huge: high %v, max %v, swap.max %v", s.High, s.Max, s.SwapMax)
	}
	fs := mustOpen(t, "testdata/c05/negative")
	s = &memcg.Sample{}
	if err := fs.Sample(idOf(t, fs, "/c"), s); err != nil || s.Stat.Valid() {
		t.Errorf("negative: %v, valid %v", err, s.Stat.Valid())
	}
	notes := fs.Notes()
	if len(notes) != 1 || notes[0].File != "memory.stat" || notes[0].Kind != memcg.ErrInvalid || !strings.Contains(notes[0].Err.Error(), "shmem -40960") {
		t.Errorf("notes %+v", notes)
	}
}

func TestC06WithoutNumaStatTheRestWorks(t *testing.T) {
	s := sampleOf(t, "testdata/c06", "/app.slice")
	if s.NodesState != memcg.Unsupported || len(s.Nodes) != 0 || s.Current != memcg.Value(1124073472) {
		t.Errorf("nodes %v %v, current %v", s.NodesState, s.Nodes, s.Current)
	}
}

func TestC09CpusetListsAreIds(t *testing.T) {
	s := sampleOf(t, "testdata/c09", "/db")
	if want := memcg.NodesOf(0, 8); s.Mems != want || s.MemsEffective != want || s.MemsState != memcg.Present {
		t.Errorf("mems %v, effective %v, %v", s.Mems, s.MemsEffective, s.MemsState)
	}
}

func TestC19NamesAreBytes(t *testing.T) {
	root := fixtureCopy(t, "c19")
	stat := fixture(t, "c19/memory.stat")
	names := strings.Split(strings.TrimRight(string(fixture(t, "c19/names.txt")), "\n"), "\n")
	for _, name := range names {
		dir := filepath.Join(root, "sys/fs/cgroup", name)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "memory.stat"), stat, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fs := mustOpen(t, root)
	for _, name := range names {
		var s memcg.Sample
		if err := fs.Sample(idOf(t, fs, "/"+name), &s); err != nil || s.Stat.Get(memcg.StatAnon) != memcg.Value(4096) {
			t.Errorf("%q: anon %v, %v", name, s.Stat.Get(memcg.StatAnon), err)
		}
	}
	for _, name := range []string{"", "odd", "/odd/", "/odd/../odd", "//odd", "/odd/."} {
		if _, err := fs.Lookup(name); !errors.Is(err, memcg.ErrInvalid) {
			t.Errorf("Lookup(%q): %v, want invalid: one cgroup has one path", name, err)
		}
	}
	_, err := fs.Lookup("/no such cgroup")
	if !errors.Is(err, memcg.ErrGone) || !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), `no such cgroup"`) {
		t.Errorf("err = %v", err)
	}
}

func TestC21TheRootLacksFilesItsChildrenHave(t *testing.T) {
	fs := mustOpen(t, "testdata/c21")
	var root, child memcg.Sample
	if err := fs.Sample(idOf(t, fs, "/"), &root); err != nil {
		t.Fatal(err)
	}
	if root.Current.State() != memcg.Unsupported || root.SwapMax.State() != memcg.Unsupported || root.Stat.Get(memcg.StatAnon) != memcg.Value(126976000) {
		t.Errorf("root: current %v, swap.max %v, anon %v", root.Current, root.SwapMax, root.Stat.Get(memcg.StatAnon))
	}
	if root.Pressure.Some.Total != memcg.Value(12) || root.NodesState != memcg.Present {
		t.Errorf("root: pressure %v, nodes %v", root.Pressure.Some.Total, root.NodesState)
	}
	if err := fs.Sample(idOf(t, fs, "/child"), &child); err != nil {
		t.Fatal(err)
	}
	if child.Current != memcg.Value(4096) || !child.SwapRoom.IsMax() || child.MemsState != memcg.Unsupported {
		t.Errorf("child: current %v, room %v, mems %v", child.Current, child.SwapRoom, child.MemsState)
	}
}

func TestC22WithoutSwapFilesSwapIsUnsupported(t *testing.T) {
	s := sampleOf(t, "testdata/c22", "/session.scope")
	for name, got := range map[string]memcg.State{"swap.current": s.SwapCurrent.State(), "swap.max": s.SwapMax.State(),
		"room": s.SwapRoom.State(), "swap.events": s.SwapEvents.Fail.State(), "numa_stat": s.NodesState} {
		if got != memcg.Unsupported {
			t.Errorf("%s is %v", name, got)
		}
	}
	if s.Max != memcg.LimitOf(314572800) || s.MemsState != memcg.Present || !s.Mems.Empty() {
		t.Errorf("max %v, mems %v %v", s.Max, s.MemsState, s.Mems)
	}
}

func TestC24PressureIsMissingInThreeWays(t *testing.T) {
	root := fixtureCopy(t, "c24", "absent/sys/fs/cgroup/p/memory.current", "4096\n")
	for _, variant := range []string{"disabled", "absent", "per-cgroup-off"} {
		t.Run(variant, func(t *testing.T) {
			fs := mustOpen(t, filepath.Join(root, variant), withKernel(withFaults(t, root, faultsOf(t, "c24"))))
			for range 3 {
				var s memcg.Sample
				if err := fs.Sample(idOf(t, fs, "/p"), &s); err != nil {
					t.Fatal(err)
				}
				if got := s.Pressure.Some.Total.State(); got != memcg.Unsupported {
					t.Errorf("pressure is %v", got)
				}
			}
			if notes := fs.Notes(); len(notes) != 0 {
				t.Errorf("a supported mode is reported as trouble: %+v", notes)
			}
		})
	}
	s := sampleOf(t, filepath.Join(root, "per-cgroup-off"), "/q")
	if s.Pressure.Some.Total != memcg.Value(5) {
		t.Errorf("the other cgroup: %v", s.Pressure.Some.Total)
	}
}

// hooked is the real kernel with a hook before opens and reads.
type hooked struct {
	*faulty
	before func(op, path string) error
}

func (k *hooked) open(dir int, name string, flags int, how resolve) (int, error) {
	if err := k.before("open", k.path(dir, name)); err != nil {
		return -1, err
	}
	return k.faulty.open(dir, name, flags, how)
}

func (k *hooked) pread(fd int, b []byte, offset int64) (int, error) {
	if err := k.before("read", k.path(fd, "")); err != nil {
		return 0, err
	}
	return k.faulty.pread(fd, b, offset)
}

func TestC24AccountingSwitchedOffLaterIsNotTheEndOfTheCgroup(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	off := false
	k := &hooked{faulty: withFaults(t, root, nil)}
	k.before = func(op, path string) error {
		if off && path == "sys/fs/cgroup/p/memory.pressure" {
			return map[string]error{"open": unix.ENOENT, "read": unix.ENODEV}[op]
		}
		return nil
	}
	fs := mustOpen(t, root, withKernel(k))
	id := idOf(t, fs, "/p")
	var s memcg.Sample
	for i, want := range []memcg.State{memcg.Present, memcg.Unsupported, memcg.Unsupported} {
		off = i > 0
		if err := fs.Sample(id, &s); err != nil || s.Pressure.Some.Total.State() != want || !s.Current.Known() {
			t.Errorf("reading %d: pressure %v, current %v, %v", i, s.Pressure.Some.Total, s.Current, err)
		}
	}
	off = false
	for range recheck {
		if err := fs.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Pressure.Some.Total.Known() {
		t.Errorf("switched on again, after %d readings: %v", recheck, s.Pressure.Some.Total)
	}
}

func TestC25ACgroupThatVanishesIsGoneAndNeverZero(t *testing.T) {
	root := fixtureCopy(t, "c25", append(fullCgroup(t, "sys/fs/cgroup/p"), fullCgroup(t, "sys/fs/cgroup/q")...)...)
	k := withFaults(t, root, nil)
	fs := mustOpen(t, root, withKernel(k))
	p, q := idOf(t, fs, "/p"), idOf(t, fs, "/q")
	var s memcg.Sample
	for _, id := range []memcg.ID{p, q} {
		if err := fs.Sample(id, &s); err != nil {
			t.Fatal(err)
		}
	}
	k.faults = faultsOf(t, "c25")
	err := fs.Sample(p, &s)
	if !errors.Is(err, memcg.ErrGone) || s.Current.State() != memcg.Missing || s.Stat.Get(memcg.StatAnon).State() != memcg.Missing || len(s.Nodes) != 0 {
		t.Errorf("ENODEV on read: %v, current %v", err, s.Current)
	}
	if err := fs.Sample(q, &s); err != nil {
		t.Errorf("the other cgroup of the tick: %v", err)
	}
	fs.Forget(q)
	if err := os.RemoveAll(filepath.Join(root, "sys/fs/cgroup/q")); err != nil {
		t.Fatal(err)
	}
	if err := fs.Sample(q, &s); !errors.Is(err, memcg.ErrGone) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("removed before open: %v", err)
	}
}

func TestC25RemovedBetweenTheDirectoryAndItsFiles(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	k := &hooked{faulty: withFaults(t, root, nil), before: func(string, string) error { return nil }}
	fs := mustOpen(t, root, withKernel(k))
	id := idOf(t, fs, "/p")
	k.before = func(op, path string) error {
		if path == "sys/fs/cgroup/p/memory.current" {
			return os.RemoveAll(filepath.Join(root, "sys/fs/cgroup/p"))
		}
		return nil
	}
	var s memcg.Sample
	if err := fs.Sample(id, &s); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("err = %v, current %v", err, s.Current)
	}
}

func TestC25APathThatComesBackIsAnotherCgroup(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/p")
	old := filepath.Join(root, "sys/fs/cgroup/p")
	if err := os.Rename(old, old+".kept"); err != nil { // so that the inode is not used again
		t.Fatal(err)
	}
	if err := os.Mkdir(old, 0o777); err != nil {
		t.Fatal(err)
	}
	var s memcg.Sample
	if err := fs.Sample(id, &s); !errors.Is(err, memcg.ErrGone) || !strings.Contains(err.Error(), "another cgroup has taken its path") {
		t.Errorf("err = %v", err)
	}
}

func TestC35ADeniedFileIsNamedOnceAndFailsOnlyWhatNeedsIt(t *testing.T) {
	root := fixtureCopy(t, "", fullCgroup(t, "sys/fs/cgroup/p")...)
	var heard []Note
	k := withFaults(t, root, []fault{{op: "open", path: "sys/fs/cgroup/p/memory.high", errno: unix.EACCES}})
	fs := mustOpen(t, root, withKernel(k), OnNote(func(n Note) { heard = append(heard, n) }))
	id := idOf(t, fs, "/p")
	var s memcg.Sample
	for range 3 {
		if err := fs.Sample(id, &s); err != nil || s.High.State() != memcg.Missing || !s.Current.Known() {
			t.Errorf("high %v, current %v, %v", s.High, s.Current, err)
		}
	}
	if len(heard) != 1 || heard[0].First != "/p" || heard[0].Kind != memcg.ErrDenied || !strings.HasSuffix(heard[0].File, "memory.high") {
		t.Errorf("heard %+v", heard)
	}
	if n := fs.Notes(); len(n) != 1 || n[0].Count != 3 {
		t.Errorf("notes %+v", n)
	}
	for _, errno := range []error{unix.EACCES, unix.EPERM, unix.EROFS} {
		k := withFaults(t, root, []fault{{op: "open", path: "sys/fs/cgroup/p/memory.stat", errno: errno.(unix.Errno)}})
		fs := mustOpen(t, root, withKernel(k))
		err := fs.Sample(idOf(t, fs, "/p"), &s)
		if !errors.Is(err, memcg.ErrDenied) || !errors.Is(err, errno) || !strings.Contains(err.Error(), "p/memory.stat") {
			t.Errorf("err = %v", err)
		}
		if !s.Current.Known() || s.Stat.Get(memcg.StatAnon).State() != memcg.Missing {
			t.Errorf("current %v, anon %v", s.Current, s.Stat.Get(memcg.StatAnon))
		}
	}
}

func TestC46AnEmptyCpusetIsNormalAndInherits(t *testing.T) {
	for cgroup, want := range map[string][2]memcg.NodeMask{
		"/nomad.slice":                         {{}, memcg.NodesOf(0, 1)},
		"/nomad.slice/reserve.slice":           {{}, memcg.NodesOf(0, 1)},
		"/nomad.slice/reserve.slice/job.scope": {memcg.NodesOf(0), memcg.NodesOf(0)},
	} {
		s := sampleOf(t, "testdata/c46", cgroup)
		if s.MemsState != memcg.Present || s.Mems != want[0] || s.MemsEffective != want[1] {
			t.Errorf("%s: %v, mems %q, effective %q", cgroup, s.MemsState, s.Mems, s.MemsEffective)
		}
	}
}

func TestC48WhatIsGrantedIsReadApartFromWhatIsAsked(t *testing.T) {
	s := sampleOf(t, "testdata/c48", "/p/c")
	if s.Mems != memcg.NodesOf(1) || s.MemsEffective != memcg.NodesOf(0) {
		t.Errorf("mems %v, effective %v", s.Mems, s.MemsEffective)
	}
	root := fixtureCopy(t, "c48/v1-names", "sys/fs/cgroup/cgroup.controllers", "memory\n")
	if s := sampleOf(t, root, "/cpuset/c"); s.MemsState != memcg.Unsupported || !s.MemsEffective.Empty() {
		t.Errorf("v1's names are read as v2: %v %v", s.MemsState, s.MemsEffective)
	}
}

func TestC52SwapRoomIsTheLeastOnTheWayUp(t *testing.T) {
	if s := sampleOf(t, "testdata/c52", "/a/b"); s.SwapRoom != memcg.LimitOf(0) || !s.SwapMax.IsMax() {
		t.Errorf("room %v, swap.max %v", s.SwapRoom, s.SwapMax)
	}
	root := fixtureCopy(t, "c52")
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/a/b")
	var s memcg.Sample
	usage := filepath.Join(root, "sys/fs/cgroup/a/memory.swap.current")
	set := func(v string) {
		t.Helper()
		if err := os.WriteFile(usage, []byte(v), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want memcg.Limit, why string) {
		t.Helper()
		if err := fs.Sample(id, &s); err != nil || s.SwapRoom != want {
			t.Errorf("%s: room %v, want %v, %v", why, s.SwapRoom, want, err)
		}
	}
	set("1073737728\n")
	read(memcg.LimitOf(4096), "before the first tick nothing is remembered")
	fs.BeginTick()
	read(memcg.LimitOf(4096), "a new tick")
	set("1073741824\n")
	read(memcg.LimitOf(4096), "within the tick")
	fs.BeginTick()
	read(memcg.LimitOf(0), "the next tick")
	set("rubbish\n")
	fs.BeginTick()
	read(memcg.NoLimitFile(memcg.Invalid), "an ancestor that cannot be read")
	fs.Forget(id)
	if len(fs.ancestors) != 0 {
		t.Errorf("ancestors kept of nobody: %v", fs.ancestors)
	}
}

func TestBeyondTheBudgetFilesAreOpenedForEachReading(t *testing.T) {
	root := fixtureCopy(t, "", append(fullCgroup(t, "sys/fs/cgroup/a"), fullCgroup(t, "sys/fs/cgroup/b")...)...)
	fs := mustOpen(t, root, withBudget(5))
	ids := []memcg.ID{idOf(t, fs, "/a"), idOf(t, fs, "/b")}
	before := openDescriptors(t)
	for range 3 {
		for _, id := range ids {
			var s memcg.Sample
			if err := fs.Sample(id, &s); err != nil || s.SwapEvents.Fail != memcg.Value(2) || s.MemsState != memcg.Present {
				t.Fatalf("%v: fail %v, mems %v, %v", id, s.SwapEvents.Fail, s.MemsState, err)
			}
		}
	}
	// Directories are kept regardless: of both cgroups and of the root.
	if got := openDescriptors(t) - before; got > 5+3 {
		t.Errorf("%d descriptors kept", got)
	}
	for _, id := range ids {
		fs.Forget(id)
	}
	if got := openDescriptors(t) - before; got != 0 {
		t.Errorf("%d descriptors left", got)
	}
	if got := fs.budget.Load(); got != 5 {
		t.Errorf("budget is %d", got)
	}
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestAFileLargerThanTheBufferIsReadWhole(t *testing.T) {
	var b strings.Builder
	for _, key := range []string{"anon", "file"} {
		b.WriteString(key)
		for n := range 1024 {
			fmt.Fprintf(&b, " N%d=9223372036854775807", n)
		}
		b.WriteString("\n")
	}
	for size := scratchSize - 1; size <= scratchSize+1; size++ {
		root := fixtureCopy(t, "", "sys/fs/cgroup/p/memory.stat", "anon 1\n"+strings.Repeat("x", size-len("anon 1\n")-len("\nfile 2"))+"\nfile 2",
			"sys/fs/cgroup/p/memory.numa_stat", b.String())
		s := sampleOf(t, root, "/p")
		if s.Stat.Get(memcg.StatFile) != memcg.Value(2) {
			t.Errorf("%d bytes: the end was cut off", size)
		}
		if len(s.Nodes) != 1024 || s.Nodes[1023].Get(memcg.NodeFile) != memcg.Value(1<<63-1) {
			t.Errorf("%d nodes", len(s.Nodes))
		}
	}
}

func TestAControllerEnabledLaterIsFound(t *testing.T) {
	root := fixtureCopy(t, "", "sys/fs/cgroup/p/cgroup.events", "populated 1\n", "sys/fs/cgroup/cgroup.controllers", "memory\n")
	fs := mustOpen(t, root)
	id := idOf(t, fs, "/p")
	var s memcg.Sample
	if err := fs.Sample(id, &s); err != nil || s.Current.State() != memcg.Unsupported || s.Stat.Get(memcg.StatAnon).State() != memcg.Unsupported {
		t.Fatalf("current %v, %v", s.Current, err)
	}
	addFiles(t, root, fullCgroup(t, "sys/fs/cgroup/p")...)
	if err := fs.Sample(id, &s); err != nil || !s.Current.Known() || !s.Stat.Get(memcg.StatAnon).Known() || s.NodesState != memcg.Present {
		t.Errorf("current %v, anon %v, nodes %v, %v", s.Current, s.Stat.Get(memcg.StatAnon), s.NodesState, err)
	}
}

// addFiles adds files to a tree, given as to fixtureCopy.
func addFiles(t testing.TB, root string, extra ...string) {
	t.Helper()
	for i := 0; i+1 < len(extra); i += 2 {
		file := filepath.Join(root, extra[i])
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(extra[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSamplesRunInParallel(t *testing.T) {
	var files []string
	for i := range 8 {
		files = append(files, fullCgroup(t, fmt.Sprintf("sys/fs/cgroup/s/c%d", i))...)
	}
	root := fixtureCopy(t, "", append(files, "sys/fs/cgroup/cgroup.controllers", "memory")...)
	fs := mustOpen(t, root)
	done := make(chan error)
	for g := range 4 {
		go func() {
			var s memcg.Sample
			for i := range 200 {
				id, err := fs.Lookup(fmt.Sprintf("/s/c%d", (i+g)%8))
				if err == nil {
					err = fs.Sample(id, &s)
				}
				if i%16 == 0 {
					fs.BeginTick()
					fs.Forget(id)
				}
				if err != nil && !errors.Is(err, memcg.ErrGone) {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// memcgFields lets samples be compared field by field.
var memcgFields = cmp.AllowUnexported(memcg.Field{}, memcg.Limit{}, memcg.Stats{}, memcg.NodeStats{}, memcg.NodeMask{})
