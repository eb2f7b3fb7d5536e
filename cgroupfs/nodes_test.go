package cgroupfs

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// hostOf opens a copy of testdata/<id> with a cgroup tree added, which most
// fixtures of host files come without.
func hostOf(t testing.TB, id string, extra ...string) *FS {
	t.Helper()
	extra = append(extra, "sys/fs/cgroup/cgroup.controllers", "memory\n")
	return openHost(t, fixtureCopy(t, id, extra...))
}

const kib = 1024

func TestNodesAreWhatIsOnline(t *testing.T) {
	size := func(k uint64) memcg.Field { return memcg.Value(k * kib) }
	unsupported := memcg.Absent(memcg.Unsupported)
	node := func(id memcg.NodeID, total, free uint64, memory, cpu bool, distance ...int) memcg.Node {
		return memcg.Node{ID: id, MemTotal: size(total), MemFree: size(free), InactiveFile: unsupported, ActiveFile: unsupported, Reserve: unsupported,
			HasMemory: memory, HasCPU: cpu, Distance: distance}
	}
	for _, tt := range []struct {
		name, id string
		want     []memcg.Node
	}{
		{"c09 ids have gaps and are above 8 bits' half", "c09", []memcg.Node{
			node(0, 129844224, 122053570, true, true), node(8, 129844224, 122053570, true, true),
			node(252, 16515072, 15524167, true, false), node(253, 16515072, 15524167, true, false),
			node(254, 16515072, 15524167, true, false), node(255, 16515072, 15524167, true, false)}},
		{"c10 possible 0-8, online 0 and 8", "c10/possible-0-8", []memcg.Node{
			node(0, 65798144, 30000000, true, true, 10, 20), node(8, 65798144, 30000000, true, true, 20, 10)}},
		{"c10 possible 0-19, online 0-1", "c10/possible-0-19", []memcg.Node{
			node(0, 65798144, 30000000, true, true, 10, 20), node(1, 65798144, 30000000, true, true, 20, 10)}},
		{"c10 possible 0-31, online 0", "c10/possible-0-31-synthetic", []memcg.Node{
			node(0, 65798144, 30000000, true, true, 10)}},
		{"c12 CPUs on a node without memory", "c12/lpar", []memcg.Node{
			node(0, 8871936, 2713600, true, false), node(1, 5736448, 5721088, true, false),
			node(2, 0, 0, false, true), node(3, 1047552, 125952, true, false)}},
		{"c12 two of four nodes without memory", "c12/nps4", []memcg.Node{
			node(0, 0, 0, false, true), node(1, 65850368, 19675136, true, true),
			node(2, 66019328, 28615680, true, true), node(3, 0, 0, false, true)}},
		{"c12 online with neither memory nor CPUs", "c12/dead-but-online", []memcg.Node{
			node(0, 131072000, 61440000, true, true), node(1, 0, 0, false, false)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := hostOf(t, tt.id).Nodes(nil)
			if err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(memcg.Field{}), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestC06WithoutANodeDirectoryNodesAreUnsupported(t *testing.T) {
	host := openHost(t, "testdata/c06")
	nodes, err := host.Nodes(nil)
	if len(nodes) != 0 || !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("Nodes = %v, %v", nodes, err)
	}
	var h memcg.HostSample
	if err := hostOf(t, "c06", "proc/meminfo", "MemTotal: 1024 kB\n").HostSample(&h); err != nil || len(h.Nodes) != 0 {
		t.Errorf("a host without nodes is an error each time: %v", err)
	}
	var told int
	for _, c := range host.Capabilities(t.Context(), nil) {
		if c.Name == CapNUMA && c.State == CapNo {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times that there are no nodes", told)
	}
}

func TestC09NodesRunTo1023(t *testing.T) {
	nodes, err := hostOf(t, "", nodeDir+"/online", "0,300,1023\n", nodeDir+"/has_memory", "0,300,1023\n", nodeDir+"/has_cpu", "0\n",
		nodeDir+"/node300/meminfo", "Node 300 MemTotal: 8 kB\nNode 300 Inactive(file): 4 kB\nNode 300 Active(file): 2 kB\n",
		nodeDir+"/node300/distance", "20 10 30\n").Nodes(nil)
	if err != nil || len(nodes) != 3 || nodes[1].ID != 300 || nodes[2].ID != 1023 {
		t.Fatalf("Nodes = %v, %v", nodes, err)
	}
	if n := nodes[1]; n.InactiveFile != memcg.Value(4*kib) || n.ActiveFile != memcg.Value(2*kib) || !cmp.Equal(n.Distance, []int{20, 10, 30}) {
		t.Errorf("node 300 is %+v", n)
	}
	// An online node without a directory is being plugged in or out.
	if n := nodes[2]; n.MemTotal.State() != memcg.Unsupported || len(n.Distance) != 0 {
		t.Errorf("a node without a directory is %+v", n)
	}
}

func TestANodeThatCannotBeReadCostsNoOtherItsPlace(t *testing.T) {
	root := fixtureCopy(t, "c10/possible-0-8", "sys/fs/cgroup/cgroup.controllers", "memory\n")
	host := openHost(t, root, withKernel(withFaults(t, root, []fault{
		{op: "read", path: nodeDir + "/node0/meminfo", errno: unix.EIO},
		{op: "open", path: nodeDir + "/has_cpu", errno: unix.EACCES},
	})))
	nodes, err := host.Nodes(nil)
	if !errors.Is(err, unix.EIO) || !errors.Is(err, memcg.ErrDenied) {
		t.Errorf("err = %v, want both causes", err)
	}
	if len(nodes) != 2 || nodes[0].MemTotal.State() != memcg.Missing || !nodes[1].MemTotal.Known() {
		t.Errorf("nodes = %+v", nodes)
	}
}

func TestADistanceRowThatDoesNotFitTheOnlineNodesIsRefused(t *testing.T) {
	host := hostOf(t, "c10/possible-0-8", nodeDir+"/node0/distance", "10 20 30\n")
	nodes, err := host.Nodes(nil)
	if !errors.Is(err, memcg.ErrInvalid) || !strings.Contains(err.Error(), "node0/distance") {
		t.Errorf("err = %v", err)
	}
	if len(nodes) != 2 || len(nodes[0].Distance) != 0 || len(nodes[1].Distance) != 2 {
		t.Errorf("nodes = %+v", nodes)
	}
}

func TestNodesReusesWhatItIsGiven(t *testing.T) {
	host := hostOf(t, "c10/possible-0-8")
	first, err := host.Nodes(nil)
	if err != nil {
		t.Fatal(err)
	}
	row := &first[0].Distance[0]
	again, err := host.Nodes(first[:0])
	if err != nil || len(again) != 2 || &again[0].Distance[0] != row || !cmp.Equal(again[0].Distance, []int{10, 20}) {
		t.Errorf("Nodes = %+v, %v", again, err)
	}
}

func TestNodeMeminfo(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		total    memcg.Field
	}{
		{"a size in KiB", "Node 0 MemTotal:       1000 kB\n", memcg.Value(1000 * kib)},
		{"an id of four digits", "Node 1023 MemTotal: 1 kB\n", memcg.Value(kib)},
		{"a zero is a zero", "Node 0 MemTotal: 0 kB\n", memcg.Value(0)},
		{"a negative size is invalid", "Node 0 MemTotal: -4 kB\n", memcg.Absent(memcg.Invalid)},
		{"a size that does not fit is invalid", "Node 0 MemTotal: 18446744073709551615 kB\n", memcg.Absent(memcg.Invalid)},
		{"no line is unsupported", "Node 0 MemFree: 1 kB\n", memcg.Absent(memcg.Unsupported)},
		{"no end of line", "Node 0 MemTotal: 1 kB", memcg.Value(kib)},
		{"odd lines are passed over", "\nNode\nMemTotal: 1 kB\nNode 0 MemTotal: 2 kB\n", memcg.Value(2 * kib)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n memcg.Node
			parseNodeMeminfo([]byte(tt.in), &n)
			if n.MemTotal != tt.total {
				t.Errorf("MemTotal = %v, want %v", n.MemTotal, tt.total)
			}
		})
	}
}

func FuzzNodeMeminfo(f *testing.F) {
	f.Add("Node 0 MemTotal:       1000 kB\nNode 0 MemFree: 0 kB\n")
	f.Add("Node 0 Inactive(file): -1 kB\nNode 0 Active(file): 18446744073709551615 kB")
	f.Fuzz(func(t *testing.T, s string) {
		var n memcg.Node
		parseNodeMeminfo([]byte(s), &n)
		for _, v := range []memcg.Field{n.MemTotal, n.MemFree, n.InactiveFile, n.ActiveFile} {
			if b, ok := v.Get(); ok && b%kib != 0 {
				t.Errorf("%d is no number of KiB", b)
			}
			if v.State() == memcg.Missing {
				t.Error("a file that was read leaves a field missing")
			}
		}
	})
}

func FuzzDistance(f *testing.F) {
	f.Add("10 20\n", 2)
	f.Add("10 -1\n", 2)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		row, ok := parseDistance([]byte(s), columns, []int{7})
		if len(row) == 0 || row[0] != 7 || ok && len(row) != columns+1 || !ok && len(row) != 1 {
			t.Errorf("parseDistance(%q, %d) = %v, %v", s, columns, row, ok)
		}
	})
}
