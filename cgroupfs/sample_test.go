package cgroupfs

import (
	"errors"
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

// memcgFields lets samples be compared field by field.
var memcgFields = cmp.AllowUnexported(memcg.Field{}, memcg.Limit{}, memcg.Stats{}, memcg.NodeStats{}, memcg.NodeMask{})
