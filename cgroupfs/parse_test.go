package cgroupfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/memcg"
)

func fixture(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	unsupported = memcg.Unsupported
	invalid     = memcg.Invalid
)

func TestValuesAreNumbersOrInvalid(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          memcg.Field
	}{
		{"a number with its newline", "1124073472\n", memcg.Value(1124073472)},
		{"a number without newline", "7", memcg.Value(7)},
		{"zero is a value", "0\n", memcg.Value(0)},
		{"the largest size", "9223372036854775807\n", memcg.Value(1<<63 - 1)},
		{"a negative number", "-4096\n", memcg.Absent(invalid)},
		{"a negative number printed as unsigned", "18446744073709547520\n", memcg.Absent(invalid)},
		{"more than 64 bits", "18446744073709551616\n", memcg.Absent(invalid)},
		{"nothing", "", memcg.Absent(invalid)},
		{"a word", "max\n", memcg.Absent(invalid)},
		{"a blank in front", " 1\n", memcg.Absent(invalid)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseValueFile([]byte(tt.content)); got != tt.want {
				t.Errorf("parseValueFile(%q) = %v, want %v", tt.content, got, tt.want)
			}
		})
	}
}

func TestC05LimitsOfEverySpellingOfUnlimited(t *testing.T) {
	for _, tt := range []struct {
		content string
		want    memcg.Limit
	}{
		{"max\n", memcg.Unlimited()},
		{"9223372036854771712\n", memcg.Unlimited()},
		{"9223372036854775807\n", memcg.Unlimited()},
		{"18446744073709551615\n", memcg.Unlimited()},
		{"9223372036854771711\n", memcg.LimitOf(9223372036854771711)},
		{"0\n", memcg.LimitOf(0)},
		{"-1\n", memcg.NoLimitFile(invalid)},
		{"\n", memcg.NoLimitFile(invalid)},
		{"maximum\n", memcg.NoLimitFile(invalid)},
	} {
		if got := parseLimitFile([]byte(tt.content)); got != tt.want {
			t.Errorf("parseLimitFile(%q) = %v, want %v", tt.content, got, tt.want)
		}
	}
}

func TestC01AStatWithoutTheSplitSaysSo(t *testing.T) {
	var s memcg.Stats
	parseStat(fixture(t, "c01/sys/fs/cgroup/app.slice/memory.stat"), &s)
	for _, k := range []memcg.Stat{memcg.StatRefaultAnon, memcg.StatRefaultFile, memcg.StatActivateAnon, memcg.StatActivateFile} {
		if got := s.Get(k); got.State() != unsupported {
			t.Errorf("%v = %v, want unsupported: 0 would mean that nothing refaults", k, got)
		}
	}
	if got := s.Get(memcg.StatRefault); got != memcg.Value(214500) {
		t.Errorf("%v = %v", memcg.StatRefault, got)
	}
}

func TestC02KeysAreFoundByNameNotByPlace(t *testing.T) {
	var t0, t1 memcg.Stats
	parseStat(fixture(t, "c02/t0/sys/fs/cgroup/app.slice/memory.stat"), &t0)
	parseStat(fixture(t, "c02/t1/sys/fs/cgroup/app.slice/memory.stat"), &t1)
	for k, want := range map[memcg.Stat]uint64{
		memcg.StatScanProactive: 9000, memcg.StatStealProactive: 4096, memcg.StatScanDirect: 0,
		memcg.StatStealKswapd: 0, memcg.StatRefaultFile: 10,
	} {
		if d, ok := t1.Since(&t0, k); !ok || d != want {
			t.Errorf("%v grew by %d, %v; want %d", k, d, ok, want)
		}
	}
	if v := t1.Get(memcg.StatPgdeactivate); v != memcg.Value(0) {
		t.Errorf("%v = %v, want a present 0", memcg.StatPgdeactivate, v)
	}
}

func TestC03MissingAndZeroStayApart(t *testing.T) {
	var zero, old memcg.Stats
	parseStat(fixture(t, "c03/nokmem/sys/fs/cgroup/pod/memory.stat"), &zero)
	parseStat(fixture(t, "c03/pre-5.18/sys/fs/cgroup/pod/memory.stat"), &old)
	if got := zero.Get(memcg.StatKernel); got != memcg.Value(0) {
		t.Errorf("kernel printed as 0 = %v", got)
	}
	if got := zero.Get(memcg.StatZswap); got.State() != unsupported {
		t.Errorf("zswap not printed = %v", got)
	}
	if got := old.Get(memcg.StatKernel); got.State() != unsupported {
		t.Errorf("kernel not printed = %v", got)
	}
}

func TestC05ANegativeStatIsInvalidAndAlone(t *testing.T) {
	var s memcg.Stats
	b := fixture(t, "c05/negative/sys/fs/cgroup/c/memory.stat")
	parseStat(b, &s)
	for _, k := range []memcg.Stat{memcg.StatShmem, memcg.StatFileDirty} {
		if got := s.Get(k); got.State() != invalid {
			t.Errorf("%v = %v, want invalid", k, got)
		}
	}
	if got := s.Get(memcg.StatAnon); got != memcg.Value(126976000) {
		t.Errorf("anon = %v", got)
	}
	if s.Valid() {
		t.Error("the reading passes for valid")
	}
	if got := string(invalidLine(b)); got != "shmem -40960" {
		t.Errorf("invalidLine = %q", got)
	}
}

func TestOddLinesOfAStatArePassedOver(t *testing.T) {
	var s memcg.Stats
	parseStat([]byte("\nanon\nanon 1\n"+strings.Repeat("k", 9000)+" 3\nno_such_key 4\nfile 2 3\nfile_dirty  5\nshmem 6"), &s)
	for k, want := range map[memcg.Stat]memcg.Field{
		memcg.StatAnon: memcg.Value(1), memcg.StatFile: memcg.Absent(invalid),
		memcg.StatFileDirty: memcg.Absent(invalid), memcg.StatShmem: memcg.Value(6), memcg.StatSlab: memcg.Absent(unsupported),
	} {
		if got := s.Get(k); got != want {
			t.Errorf("%v = %v, want %v", k, got, want)
		}
	}
}

func nodeField(t *testing.T, nodes []memcg.NodeStats, id memcg.NodeID, k memcg.NodeStat) memcg.Field {
	t.Helper()
	s := memcg.Sample{Nodes: nodes}
	n, ok := s.Node(id)
	if !ok {
		t.Fatalf("node %d is not among %v", id, ids(nodes))
	}
	return n.Get(k)
}

func ids(nodes []memcg.NodeStats) (list []memcg.NodeID) {
	for i := range nodes {
		list = append(list, nodes[i].ID)
	}
	return list
}

func TestC07TheV2FormatIsBytesAndCounts(t *testing.T) {
	nodes, state := parseNumaStat(fixture(t, "c07/v2/sys/fs/cgroup/pod/memory.numa_stat"), nil)
	if state != memcg.Present {
		t.Fatal(state)
	}
	for _, tt := range []struct {
		id   memcg.NodeID
		key  memcg.NodeStat
		want memcg.Field
	}{
		{0, memcg.NodeAnon, memcg.Value(193236992)}, {1, memcg.NodeAnon, memcg.Value(4096)},
		{0, memcg.NodeRefaultAnon, memcg.Value(1153)}, {1, memcg.NodeRefaultFile, memcg.Value(3)},
		{0, memcg.NodeSteal, memcg.Absent(unsupported)}, {1, memcg.NodeFile, memcg.Value(0)},
	} {
		if got := nodeField(t, nodes, tt.id, tt.key); got != tt.want {
			t.Errorf("node %d key %d = %v, want %v", tt.id, tt.key, got, tt.want)
		}
	}
}

func TestC07TheV1FormatIsNotReadByTheV2Rule(t *testing.T) {
	nodes, state := parseNumaStat(fixture(t, "c07/v1/sys/fs/cgroup/memory/pod/memory.numa_stat"), nil)
	if state != invalid || len(nodes) != 0 {
		t.Errorf("got %d nodes, %v; want none, invalid", len(nodes), state)
	}
}

func TestC09NodeIdsAreIds(t *testing.T) {
	nodes, state := parseNumaStat(fixture(t, "c09/sys/fs/cgroup/db/memory.numa_stat"), nil)
	if want := []memcg.NodeID{0, 8, 252, 253, 254, 255}; state != memcg.Present || !cmp.Equal(ids(nodes), want) {
		t.Fatalf("nodes %v, %v; want %v", ids(nodes), state, want)
	}
	if got := nodeField(t, nodes, 255, memcg.NodeAnon); got != memcg.Value(1073741824) {
		t.Errorf("anon of node 255 = %v", got)
	}
	wide, _ := parseNumaStat(fixture(t, "c09/wide/sys/fs/cgroup/db/memory.numa_stat"), nodes)
	if want := []memcg.NodeID{0, 300, 1023}; !cmp.Equal(ids(wide), want) {
		t.Fatalf("nodes %v, want %v", ids(wide), want)
	}
	if got := nodeField(t, wide, 1023, memcg.NodeFile); got != memcg.Value(4096) {
		t.Errorf("file of node 1023 = %v", got)
	}
	if got := nodeField(t, wide, 1023, memcg.NodeActiveFile); got.State() != unsupported {
		t.Errorf("active_file left over from an earlier reading: %v", got)
	}
}

func TestScanAndStealOfANodeAreSumsOverTheActors(t *testing.T) {
	const content = "pgscan_kswapd N0=1 N1=10\npgscan_direct N0=2 N1=20\npgscan_khugepaged N0=3 N1=30\npgscan_proactive N0=4 N1=40\n" +
		"pgscan_anon N0=1000 N1=1000\npgsteal_kswapd N0=5 N1=-1\npgsteal_proactive N0=6 N1=60\npgdemote_kswapd N0=7 N1=70\n"
	nodes, _ := parseNumaStat([]byte(content), nil)
	for _, tt := range []struct {
		id   memcg.NodeID
		key  memcg.NodeStat
		want memcg.Field
	}{
		{0, memcg.NodeScan, memcg.Value(10)}, {1, memcg.NodeScan, memcg.Value(100)}, {0, memcg.NodeSteal, memcg.Value(11)},
		{1, memcg.NodeSteal, memcg.Absent(invalid)}, {1, memcg.NodeDemote, memcg.Value(70)}, {0, memcg.NodeAnon, memcg.Absent(unsupported)},
	} {
		if got := nodeField(t, nodes, tt.id, tt.key); got != tt.want {
			t.Errorf("node %d key %d = %v, want %v", tt.id, tt.key, got, tt.want)
		}
	}
}

func TestNodesComeOutInAscendingIdWhateverTheOrder(t *testing.T) {
	nodes, _ := parseNumaStat([]byte("anon N3=3 N1=1 N2=2\nfile N2=20 X9=1 N1=10 N3 N4096=5 N3=30\n"), nil)
	if want := []memcg.NodeID{1, 2, 3}; !cmp.Equal(ids(nodes), want) {
		t.Fatalf("nodes %v, want %v", ids(nodes), want)
	}
	for id := memcg.NodeID(1); id <= 3; id++ {
		if a, f := nodeField(t, nodes, id, memcg.NodeAnon), nodeField(t, nodes, id, memcg.NodeFile); a != memcg.Value(uint64(id)) || f != memcg.Value(uint64(id)*10) {
			t.Errorf("node %d: anon %v, file %v", id, a, f)
		}
	}
}

func TestC24PressureIsReadOrUnsupportedNeverZero(t *testing.T) {
	ok := parsePSI(fixture(t, "c24/ok/sys/fs/cgroup/p/memory.pressure"))
	want := memcg.Pressure{
		Some: memcg.Stall{Total: memcg.Value(3559632828), Avg10: 70.24, Avg60: 68.52},
		Full: memcg.Stall{Total: memcg.Value(3300487258), Avg10: 57.59, Avg60: 58.06},
	}
	if ok != want {
		t.Errorf("got %+v, want %+v", ok, want)
	}
	off := parsePSI(fixture(t, "c24/disabled/sys/fs/cgroup/p/memory.pressure"))
	if off.Some.Total.State() != unsupported || off.Full.Total.State() != unsupported {
		t.Errorf("an empty file reads as %+v", off)
	}
	for _, line := range []string{
		"some avg10=0.00 avg60=0.00 avg300=0.00\n", "some avg10=x avg60=0.00 total=1\n", "some avg10=0.00 total=1\n",
		"some avg10=0.00 avg60=0.00 total=-1\n", "some avg10=999.00 avg60=0.00 total=1\n", "some avg10=1.1.1 avg60=0.00 total=1\n",
	} {
		if got := parsePSI([]byte(line)).Some; got.Total.State() != invalid {
			t.Errorf("%q reads as %+v, want invalid", line, got)
		}
	}
}

func TestEventsOfOlderKernelsLackKeys(t *testing.T) {
	got := parseEvents([]byte("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n"))
	want := memcg.Events{Low: memcg.Value(1), High: memcg.Value(2), Max: memcg.Value(3), OOM: memcg.Value(4), OOMKill: memcg.Value(5)}
	if got != want {
		t.Errorf("got %+v", got)
	}
	if e := parseEvents([]byte("low 1\nhigh\n")); e.Low != memcg.Value(1) || e.High.State() != invalid || e.OOM.State() != unsupported {
		t.Errorf("got %+v", e)
	}
	if e := parseSwapEvents([]byte("high 1\nmax 2\nfail 3\n")); e != (memcg.SwapEvents{High: memcg.Value(1), Max: memcg.Value(2), Fail: memcg.Value(3)}) {
		t.Errorf("got %+v", e)
	}
	if p, f := parseCgroupEvents([]byte("populated 1\n")); p != memcg.Value(1) || f.State() != unsupported {
		t.Errorf("populated %v, frozen %v", p, f)
	}
	if p, _ := parseCgroupEvents([]byte("populated 2\n")); p.State() != invalid {
		t.Errorf("populated 2 reads as %v", p)
	}
}

func TestParsersAllocateNothing(t *testing.T) {
	stat := fixture(t, "c02/t0/sys/fs/cgroup/app.slice/memory.stat")
	numa := fixture(t, "c09/sys/fs/cgroup/db/memory.numa_stat")
	psi := fixture(t, "c24/ok/sys/fs/cgroup/p/memory.pressure")
	events, list := []byte("low 1\nhigh 2\n"), []byte("0-3,8,252-255\n")
	var s memcg.Stats
	nodes, _ := parseNumaStat(numa, nil)
	if n := testing.AllocsPerRun(100, func() {
		parseStat(stat, &s)
		nodes, _ = parseNumaStat(numa, nodes)
		parsePSI(psi)
		parseEvents(events)
		parseSwapEvents(events)
		parseNodesFile(list)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
