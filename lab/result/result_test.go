package result

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"of none is 0", nil, 0},
		{"of one is that one", []float64{3}, 3},
		{"of an odd number is the middle", []float64{9, 1, 3}, 3},
		{"of an even number is between the middles", []float64{4, 1, 2, 100}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Median(tc.values); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMedianLeavesItsInputAlone(t *testing.T) {
	v := []float64{3, 1, 2}
	Median(v)
	if d := cmp.Diff([]float64{3, 1, 2}, v); d != "" {
		t.Error(d)
	}
}

func TestSpread(t *testing.T) {
	if low, high := Spread([]float64{3, 1, 2}); low != 1 || high != 3 {
		t.Errorf("got %v..%v", low, high)
	}
	if low, high := Spread(nil); low != 0 || high != 0 {
		t.Errorf("got %v..%v for none", low, high)
	}
}

func TestChecks(t *testing.T) {
	list := []Check{
		AtMost("at the limit", 1.1, 1.1, " of off"),
		AtMost("above it", 1.11, 1.1, ""),
		AtLeast("at the least", 0.6, 0.6, ""),
		AtLeast("below it", 0.59, 0.6, ""),
		Skip("not made", "needs more"),
	}
	var ok []bool
	for _, c := range list {
		ok = append(ok, c.OK)
	}
	if d := cmp.Diff([]bool{true, false, true, false, false}, ok); d != "" {
		t.Error(d)
	}
	if n := Failed(list); n != 2 {
		t.Errorf("%d failed, want 2: what was skipped does not fail", n)
	}
	if list[0].Want != "<= 1.1 of off" {
		t.Errorf("want reads %q", list[0].Want)
	}
}

func TestARatioToNothingFailsAndCanBeEncoded(t *testing.T) {
	for _, got := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, c := range []Check{AtMost("most", got, 1, ""), AtLeast("least", got, 1, "")} {
			if c.OK {
				t.Errorf("%s of %v is ok", c.Name, got)
			}
			if _, err := json.Marshal(c); err != nil {
				t.Error(err)
			}
		}
	}
}

// The keys below are a promise to readers of the files.
func TestEncodeKeepsItsKeys(t *testing.T) {
	res := Result{Scenario: "s", Kernel: "k", Topology: "quad", LRU: "mglru",
		Runs:   []Run{{Agent: "on", Nodes: map[string]Node{"0": {}}, AgentStats: &AgentStats{}}},
		Checks: []Check{{Name: "refaults", OK: true, Got: 0.003, Want: "<= 0.05 of off"}},
	}
	var b bytes.Buffer
	if err := Encode(&b, []Result{res}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	has := func(where string, m any, keys ...string) map[string]any {
		t.Helper()
		obj, ok := m.(map[string]any)
		if !ok {
			t.Fatalf("%s is %T", where, m)
		}
		for _, k := range keys {
			if _, ok := obj[k]; !ok {
				t.Errorf("%s has no %q", where, k)
			}
		}
		return obj
	}
	has("the result", got, "scenario", "kernel", "topology", "lru", "runs", "checks")
	run := has("a run", got["runs"].([]any)[0], "agent", "counters", "nodes", "pass_ms", "elapsed_ms", "agent_stats", "boot_retries")
	has("counters", run["counters"], "refault_file", "refault_anon", "swapin", "swapout", "pgmajfault", "pgscan", "pgsteal", "psi_some_us", "psi_full_us")
	has("a node", run["nodes"].(map[string]any)["0"], "anon_before", "anon_after", "file_before", "file_after")
	has("agent_stats", run["agent_stats"], "cpu_ms", "rss_kib", "decisions", "actions", "reclaimed_bytes", "writes")
	has("a check", got["checks"].([]any)[0], "name", "ok", "got", "want")
}

func TestEncodeWritesAnArrayForMoreThanOneResult(t *testing.T) {
	var b bytes.Buffer
	if err := Encode(&b, []Result{{Scenario: "a"}, {Scenario: "b"}}); err != nil {
		t.Fatal(err)
	}
	var got []Result
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got) != 2 {
		t.Errorf("%d results, %v", len(got), err)
	}
}

func TestStarvedIsTheShareOfWaiting(t *testing.T) {
	if got := (Run{HostRanMS: 300, HostWaitedMS: 100}).Starved(); got != 0.25 {
		t.Errorf("got %v", got)
	}
	if got := (Run{}).Starved(); got != 0 {
		t.Errorf("got %v where the host does not tell", got)
	}
}

func TestPassTimesAreCountedInYardsticksWhereAllRunsHaveThem(t *testing.T) {
	quick := Run{PassMS: []float64{200, 210}, YardstickMS: []float64{20, 21}}
	slow := Run{PassMS: []float64{400, 600}, YardstickMS: []float64{40, 60}}
	bare := Run{PassMS: []float64{200}}
	for name, c := range map[string]struct {
		runs []Run
		unit string
		want [][]float64
	}{
		"a slow spell takes itself out":         {[]Run{quick, slow}, "yardsticks", [][]float64{{10, 10}, {10, 10}}},
		"one without":                           {[]Run{quick, bare}, "ms", [][]float64{{200, 210}, {200}}},
		"one that the clock was too coarse for": {[]Run{{PassMS: []float64{5}, YardstickMS: []float64{0}}}, "ms", [][]float64{{5}}},
	} {
		of, unit := PassTimes(c.runs)
		if got := [][]float64{}; unit != c.unit {
			t.Errorf("%s: in %s", name, unit)
		} else {
			for _, r := range c.runs {
				got = append(got, of(r))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}
