package numapolicy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func text(t *testing.T, path string) (s string, there bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b)), true
}

func maskFile(t *testing.T, path string) memcg.NodeMask {
	t.Helper()
	s, there := text(t, path)
	if !there {
		t.Fatalf("%s is not there", path)
	}
	m, err := memcg.ParseNodeMask(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var nodeKeys = map[string]memcg.NodeStat{
	"anon": memcg.NodeAnon, "file": memcg.NodeFile,
	"inactive_anon": memcg.NodeInactiveAnon, "active_anon": memcg.NodeActiveAnon,
	"inactive_file": memcg.NodeInactiveFile, "active_file": memcg.NodeActiveFile,
	"file_dirty":              memcg.NodeFileDirty,
	"workingset_refault_anon": memcg.NodeRefaultAnon, "workingset_refault_file": memcg.NodeRefaultFile,
}

// readCase reads the files of one cgroup of a fixture. Keys and files that are
// not there are unsupported.
func readCase(t *testing.T, dir string) *memcg.Sample {
	t.Helper()
	s := sampleOf()
	s.NodesState, s.MemsState = memcg.Unsupported, memcg.Unsupported
	if _, there := text(t, filepath.Join(dir, "cpuset.mems.effective")); there {
		s.MemsState = memcg.Present
		s.Mems = maskFile(t, filepath.Join(dir, "cpuset.mems"))
		s.MemsEffective = maskFile(t, filepath.Join(dir, "cpuset.mems.effective"))
	}
	stat, there := text(t, filepath.Join(dir, "memory.numa_stat"))
	if !there {
		return s
	}
	s.NodesState = memcg.Present
	for line := range strings.Lines(stat) {
		w := strings.Fields(line)
		for i, column := range w[1:] {
			name, digits, _ := strings.Cut(column, "=")
			id, err := strconv.Atoi(strings.TrimPrefix(name, "N"))
			if err != nil {
				t.Fatal(err)
			}
			if i == len(s.Nodes) {
				n := memcg.NodeStats{ID: memcg.NodeID(id)}
				n.SetAll(memcg.Unsupported)
				s.Nodes = append(s.Nodes, n)
			}
			if k, known := nodeKeys[w[0]]; known {
				v, err := strconv.ParseUint(digits, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				s.Nodes[i].Set(k, memcg.Value(v))
			}
		}
	}
	return s
}

// readHost reads the nodes of a fixture, with 4 GiB of free swap.
func readHost(t *testing.T, root string) *memcg.HostSample {
	t.Helper()
	h := hostOf()
	dir := filepath.Join(root, "sys/devices/system/node")
	memory, cpu := maskFile(t, filepath.Join(dir, "has_memory")), maskFile(t, filepath.Join(dir, "has_cpu"))
	for id := range maskFile(t, filepath.Join(dir, "online")).All {
		n := memcg.Node{ID: id, HasMemory: memory.Has(id), HasCPU: cpu.Has(id)}
		node := filepath.Join(dir, "node"+strconv.Itoa(int(id)))
		info, _ := text(t, filepath.Join(node, "meminfo"))
		for line := range strings.Lines(info) {
			w := strings.Fields(line)
			kib, err := strconv.ParseUint(w[3], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			switch w[2] {
			case "MemTotal:":
				n.MemTotal = memcg.Value(kib * 1024)
			case "MemFree:":
				n.MemFree = memcg.Value(kib * 1024)
			}
		}
		row, _ := text(t, filepath.Join(node, "distance"))
		for f := range strings.FieldsSeq(row) {
			d, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			n.Distance = append(n.Distance, d)
		}
		h.Nodes = append(h.Nodes, n)
	}
	return h
}

func TestC07RefaultsAreCountsAndSizesAreBytes(t *testing.T) {
	s := readCase(t, "testdata/c07/v2/sys/fs/cgroup/pod")
	for i := range s.Nodes {
		s.Nodes[i].Set(memcg.NodeRefaultFile, memcg.Value(0))
	}
	var st State
	// 77 refaults in 5 s at 100 us, on 333,796 pages of file.
	d := decideTwice(&st, inputOf(s, hostOf(8192, 8192)), lottery, countersGrow(0, memcg.NodeRefaultFile, 77))
	cost := 77. / 5 * 60 * 100 / ((1152172032 + 215052288) / 4096)
	if got := d.share(0).Cost; got < cost*0.999 || got > cost*1.001 {
		t.Errorf("cost %v, want %v", got, cost)
	}
	want := 1152172032. / 4096 * 140 / 200 / (1 + cost)
	if got := float64(d.share(0).Weight); got < want || got > want+1 {
		t.Errorf("weight %v, want %v", got, want)
	}
	if d.share(1).Weight != 0 || d.share(1).Why != WhyNothing {
		t.Errorf("one page of active anon on node 1: %+v", d.share(1))
	}
}

func TestC09SparseIdsAreIdsInTicketsSharesAndSets(t *testing.T) {
	s, h := readCase(t, "testdata/c09/sys/fs/cgroup/db"), readHost(t, "testdata/c09")
	in := inputOf(s, h)
	seen := memcg.NodeMask{}
	for _, drawn := range []ticket{0, 20_000, 40_000, 65_000} {
		var st State
		in.Random = drawn
		// Node 8 refaults: 90,000 in 5 s.
		d := decideTwice(&st, in, lottery, countersGrow(8, memcg.NodeRefaultFile, 90_000))
		if d.Reach != OneNode || d.Nodes.Len() != 1 || d.share(0).Weight == 0 || d.share(8).Weight == 0 {
			t.Fatalf("%v by %s, %+v", d.Reach, d.Rule, d.Shares)
		}
		if d.share(0).Weight < 10*d.share(8).Weight {
			t.Errorf("a node that refaults weighs %d against %d", d.share(8).Weight, d.share(0).Weight)
		}
		// 1 GiB of anon lies on node 255, which has no CPU.
		if d.share(255).Why != WhySlow {
			t.Errorf("%+v", d.share(255))
		}
		seen.Add(d.Drawing.Item)
	}
	if !seen.Has(0) || !seen.Without(memcg.NodesOf(0, 8)).Empty() {
		t.Errorf("drawn were %v", seen)
	}
	plan := PlanMems(MemsInput{
		Mode: MemsCompact, Sample: s, Host: h, Nodes: nodesOf(h), Parent: mask("0,8"), Original: mask("0,8"), WorkingSet: memcg.Value(8 << 30),
	})
	if !plan.Set || plan.Mems.String() != "0" {
		t.Errorf("compact: %+v", plan)
	}
}

func TestC09WideIdsHaveTicketsLikeAnyOther(t *testing.T) {
	s := readCase(t, "testdata/c09/wide/sys/fs/cgroup/db")
	h := hostOf()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		v, _ := n.Get(memcg.NodeAnon).Get()
		n.Set(memcg.NodeInactiveFile, memcg.Value(v))
		n.Set(memcg.NodeRefaultFile, memcg.Value(0))
		h.Nodes = append(h.Nodes, memcg.Node{ID: n.ID, HasMemory: true, HasCPU: true, MemTotal: memcg.Value(1 << 34), MemFree: memcg.Value(1 << 33)})
	}
	var st State
	in := inputOf(s, h)
	in.Random = ticket(50_000)
	if d := decideTwice(&st, in, lottery, nil); d.Nodes.String() != "1023" {
		t.Errorf("%v by %s on %v: %+v", d.Reach, d.Rule, d.Nodes, d.Shares)
	}
}

func TestC10OnlyOnlineNodesExist(t *testing.T) {
	h := readHost(t, "testdata/c10/possible-0-8")
	n := nodesOf(h)
	if n.Memory().String() != "0,8" || len(n.list) != 2 {
		t.Errorf("nodes %v", n.Memory())
	}
	// Column 1 of the distance row is node 8, not node 1.
	if d, ok := distance(h, 0, 8); d != 20 || !ok {
		t.Errorf("distance from 0 to 8 is %d, %t", d, ok)
	}
	if _, ok := distance(h, 0, 1); ok {
		t.Error("node 1 is not online and has a distance")
	}
}

func TestC12NodesWithoutMemoryAreNoTargetAndDivideNothing(t *testing.T) {
	for _, c := range []struct{ name, memory, fast string }{
		{"lpar", "0-1,3", ""}, // all CPUs are on node 2, which has no memory
		{"nps4", "1-2", "1-2"},
		{"dead-but-online", "0", "0"},
	} {
		n := nodesOf(readHost(t, "testdata/c12/"+c.name))
		if n.Memory().String() != c.memory || n.fast(memcg.NodeMask{}).String() != c.fast {
			t.Errorf("%s: memory %v, fast %v", c.name, n.Memory(), n.fast(memcg.NodeMask{}))
		}
		if n.Short().Has(2) && c.name == "lpar" || !n.Short().Without(n.Memory()).Empty() {
			t.Errorf("%s: short %v", c.name, n.Short())
		}
	}
	// On the LPAR nothing is picked, since every node with memory lacks a CPU.
	h := readHost(t, "testdata/c12/lpar")
	s := sampleOf(sizes{inactiveFile: 500}.stats(0), sizes{inactiveFile: 5}.stats(1), sizes{}.stats(3))
	var st State
	if d := decideTwice(&st, inputOf(s, h), lottery, nil); d.Reach != Everywhere || d.Rule != "nothing-to-give" {
		t.Errorf("%v by %s", d.Reach, d.Rule)
	}
	st = State{}
	if d := decideTwice(&st, inputOf(s, h), Policy{Lottery: true, Named: memcg.NodesOf(0, 1, 2)}, nil); d.Nodes.String() != "0" {
		t.Errorf("named by the operator: %v by %s on %v", d.Reach, d.Rule, d.Nodes)
	}
	// cpuset.mems 1-2 with all four nodes having CPUs: 0 and 3 are never added.
	h = readHost(t, "testdata/c12/nps4")
	app := readCase(t, "testdata/c12/nps4/sys/fs/cgroup/app")
	app.NodesState = memcg.Present
	plan := PlanMems(MemsInput{Mode: MemsSpread, Sample: app, Host: h, Nodes: nodesFor(h, time.Hour), Parent: mask("0-3"), Original: app.Mems})
	if plan.Set || plan.Rule != "equal-set" {
		t.Errorf("spread over nodes without memory: %+v", plan)
	}
}

func TestC46AnEmptyValueInherits(t *testing.T) {
	root := "testdata/c46/sys/fs/cgroup/nomad.slice/reserve.slice"
	// An empty value is a normal one: plans go by the effective set and never
	// write an empty one.
	h := hostOf(10, 9000)
	slice := readCase(t, root)
	slice.NodesState = memcg.Present
	plan := PlanMems(MemsInput{Mode: MemsAvoidShort, Sample: slice, Host: h, Nodes: nodesFor(h, time.Hour), Parent: maskFile(t, root+"/../cpuset.mems.effective")})
	if !plan.Set || plan.Mems.String() != "1" {
		t.Errorf("plan for a cgroup that inherits: %+v", plan)
	}
}

func TestC48AcceptedIsNotGranted(t *testing.T) {
	root := "testdata/c48/sys/fs/cgroup/p"
	s, parent := readCase(t, root+"/c"), maskFile(t, root+"/cpuset.mems.effective")
	s.NodesState = memcg.Present
	// The child asked for 1 and was granted 0: no plan asks for what the parent
	// does not have, however short node 0 is.
	h := hostOf(0, 9000)
	for mode := range MemsSpread + 1 {
		p := PlanMems(MemsInput{Mode: mode, Sample: s, Host: h, Nodes: nodesFor(h, time.Hour), Parent: parent, Original: s.Mems, WorkingSet: memcg.Value(mib)})
		if p.Set {
			t.Errorf("%v: %+v", mode, p)
		}
	}
}

func TestC49LeftoverCacheIsNoReasonToTryAgain(t *testing.T) {
	before, after := readCase(t, "testdata/c49/t0/sys/fs/cgroup/p"), readCase(t, "testdata/c49/t1/sys/fs/cgroup/p")
	was, still := AnonOn(before, memcg.NodesOf(0)), AnonOn(after, memcg.NodesOf(0))
	if a, _ := was.Get(); a != 8<<30 {
		t.Errorf("before: %v", was)
	}
	if b, _ := still.Get(); b != 128<<20 {
		t.Errorf("after: %v", still)
	}
	if Stayed(was, still) {
		t.Error("128 MiB of 8 GiB count as if nothing had moved")
	}
	// Set to 1, node 0 still short and holding 2 GiB of cache: nothing more to do.
	h := hostOf(10, 9000)
	after.Mems, after.MemsEffective, after.MemsState = mask("1"), mask("1"), memcg.Present
	p := PlanMems(MemsInput{
		Mode: MemsAvoidShort, Sample: after, Host: h, Nodes: nodesFor(h, time.Hour), Parent: mask("0-1"),
		Wrote: mask("1"), Written: true, SinceChange: time.Hour,
	})
	if p.Set || p.Rule != "equal-set" {
		t.Errorf("%+v", p)
	}
}

func TestC60MemoryOutsideOfTheAllowedNodesStopsReclaimWhenItGrows(t *testing.T) {
	s, h := readCase(t, "testdata/c60/sys/fs/cgroup/p"), readHost(t, "testdata/c60/host")
	in := inputOf(s, h)
	in.Demotion = true
	var st State
	d := decideTwice(&st, in, lottery, nil)
	if out, ok := d.Outside.Get(); !ok || out != 1<<30 || d.Reach == Nowhere {
		t.Fatalf("outside %v, %v by %s", d.Outside, d.Reach, d.Rule)
	}
	grown := func(by uint64) *memcg.Sample {
		var c memcg.Sample
		c.CopyFrom(s)
		c.Nodes[1].Set(memcg.NodeAnon, memcg.Value(1<<30+by))
		return &c
	}
	for _, c := range []struct {
		name string
		by   uint64
		stop bool
	}{
		{"within what the figures lag", 32 << 20, false},
		{"more", 33 << 20, true},
		{"falling, not yet back", 20 << 20, true},
		{"back", 16 << 20, false},
	} {
		in.Sample = grown(c.by)
		d := Decide(&st, in, lottery)
		if got := d.Reach == Nowhere && d.Rule == "demotes-outside"; got != c.stop {
			t.Errorf("%s: %v by %s", c.name, d.Reach, d.Rule)
		}
	}
	in.Sample = grown(1 << 30)
	if d := Decide(&st, in, Policy{Lottery: true, DemoteOutside: true}); d.Reach == Nowhere {
		t.Error("the policy allows it")
	}
	in.Demotion = false
	if d := Decide(&st, in, lottery); d.Reach == Nowhere {
		t.Error("nothing is demoted on this host")
	}
}
