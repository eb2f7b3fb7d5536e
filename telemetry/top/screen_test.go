package top

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/status"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./telemetry/top -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update writes it:\n%s", file, diff)
	}
}

func of[T any](v T) *T { return &v }

var now = time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC)

// host is a busy host with what there is to see: every kind of verdict,
// figures that are absent, names of all sorts.
func host() *status.Status {
	s := &status.Status{
		Version: 1, Now: now,
		Agent: status.Agent{Version: "1.2.3", PID: 4711, Mode: "enforce", Config: status.Config{Name: "/etc/memagent/memagent.yaml", Policies: 3},
			Started: now.Add(-26*time.Hour - 3*time.Minute), IntervalMS: 5000, Ticks: 18756, LastTick: of(now.Add(-2 * time.Second)), LastTickUS: 3456,
			InFlight: 1, Requests: 1234, Reclaimed: 52 << 30, CPUMS: 61_500, PeakRSS: 21 << 20},
		Host: status.Host{MemTotal: of[uint64](64 << 30), MemAvailable: of[uint64](21 << 30), SwapTotal: of[uint64](8 << 30), SwapFree: nil,
			Nodes: []status.Node{{Node: 0, MemFree: of[uint64](512 << 20)}, {Node: 2, MemFree: of[uint64](9 << 30)}}},
	}
	add := func(path, verdict string, resident, swap uint64, cost, press float64, last *status.Action) {
		s.Cgroups = append(s.Cgroups, status.Cgroup{Path: path, Name: path, Policy: "p", Mode: "enforce", Verdict: verdict,
			Current: of(resident), Anon: of(resident / 4), File: of(resident / 2), Swap: of(swap), Cost: of(cost), Pressure: of(press), Last: last,
			Nodes: []status.NodeUse{{Node: 0, Anon: of(resident / 4), File: of(resident / 4)}, {Node: 2, Anon: of[uint64](0), File: nil}}})
	}
	add("/system.slice/postgresql@16-main.service", "fits", 17<<30, 0, 0.00012, 0.0004, nil)
	add("/system.slice/nginx.service", "idle", 212<<20, 9<<20, 0, 0, &status.Action{Time: now, Text: "took 1.02 MiB of 1.06 MiB, 64 KiB to swap", Want: 1 << 20, Took: of[uint64](1 << 20)})
	add("/batch.slice/job-17.service", "file-thrash", 3<<30, 1<<30, 0.213, 0.334, &status.Action{Time: now.Add(-time.Minute), Text: "taking 24 MiB", Want: 24 << 20})
	add("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0d4c1c0e.slice/cri-containerd-6f8e2b8d.scope", "throttled", 256<<20, 0, 0.05, 0.91,
		&status.Action{Time: now.Add(-time.Hour), Text: "would take 2 MiB: the swap write budget is spent", Want: 2 << 20, Held: "the swap write budget is spent"})
	add("/user.slice/日本語", "growing", 1<<20, 0, 0, 0, nil)
	s.Cgroups = append(s.Cgroups,
		status.Cgroup{Path: "/odd name\n", Name: `"/odd name\n"`, Error: "reading memory.stat: access denied", Verdict: "idle", Current: of[uint64](4096)},
		status.Cgroup{Path: "/new.slice", Name: "/new.slice", Verdict: "unknown"})
	return s
}

func TestScreensOfThreeSizes(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {20, 10}, {200, 50}} {
		name := fmt.Sprintf("%dx%d", size.w, size.h)
		golden(t, name, (&View{Sort: colResident}).screen(host(), "", size.w, size.h)+"\n")
		golden(t, name+"-nodes", (&View{Sort: colResident, Nodes: true}).screen(host(), "", size.w, size.h)+"\n")
	}
	lent := host()
	lent.Cgroups[0].Lent = of[uint64](2 << 30)
	golden(t, "120x12-lent-paused", (&View{Sort: colVerdict, Paused: true}).screen(lent, "", 120, 12)+"\n")
}

func TestTheTableForAPipeIsWholeAndPlain(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, host()); err != nil {
		t.Fatal(err)
	}
	golden(t, "pipe", b.String())
	s := host()
	s.Agent.Trouble, s.Agent.Config.Refused, s.Agent.LastTick, s.Cgroups = "meminfo is gone", "memagent.yaml:3:1: mode: is missing", nil, nil
	b.Reset()
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	golden(t, "pipe-trouble", b.String())
}

func TestWhatIsOnlyObservedIsPredictedAndSaidToBeAPrediction(t *testing.T) {
	s := host()
	s.Predicted = []telemetry.Prediction{{Policy: "all", Cgroups: 7, Resident: 40 << 30, Asking: 3, Next: 260 << 20, Most: 9 << 30}}
	for height, want := range map[int]bool{24: true, 12: false} {
		text := (&View{}).screen(s, "", 80, height)
		if strings.Contains(text, "prediction: would ask for 260 MiB now, at most 9 GiB of 40 GiB out by now\n") != want {
			t.Errorf("%d lines high:\n%s", height, text)
		}
	}
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\nprediction, nothing of it was done: 3 of 7 cgroups would be asked for 260 MiB now; of 40 GiB resident at most 9 GiB (22.5%) would be out by now\n") {
		t.Error(b.String())
	}
}

func TestRowsAreInTheOrderThatWasAskedForWithTheUnknownLast(t *testing.T) {
	for col, want := range map[int]string{
		colName:     "/batch.slice/job-17.service",
		colVerdict:  "/kubepods.slice",
		colResident: "/system.slice/postgresql",
		colSwap:     "/batch.slice/job-17.service",
		colCost:     "/batch.slice/job-17.service",
		colPressure: "/kubepods.slice",
		colAction:   "/system.slice/nginx.service",
	} {
		v := View{Sort: col}
		rows := v.sorted(host().Cgroups)
		if !strings.HasPrefix(rows[0].Path, want) {
			t.Errorf("by %s: %s is first, want %s", columns[col].title, rows[0].Path, want)
		}
		if col != colName && col != colVerdict && col != colAction && rows[len(rows)-1].Path != "/new.slice" && rows[len(rows)-1].Path != "/odd name\n" {
			t.Errorf("by %s: %s is last", columns[col].title, rows[len(rows)-1].Path)
		}
		v.Reverse = true
		reversed := v.sorted(host().Cgroups)
		if columns[col].order(&reversed[0], &rows[0]) < 0 {
			t.Errorf("by %s reversed: %s is first", columns[col].title, reversed[0].Path)
		}
	}
}

func TestTroubleIsTheSecondLineUntilItIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*status.Status)
		trouble string
		want    string
	}{
		"nothing":               {func(*status.Status) {}, "", "host: 21 GiB"},
		"the agent is gone":     {func(s *status.Status) { s.Agent.Trouble = "x" }, "no memagent answers", "! no memagent answers"},
		"the host is not read":  {func(s *status.Status) { s.Agent.Trouble = "no meminfo" }, "", "! no meminfo"},
		"the config is refused": {func(s *status.Status) { s.Agent.Config.Refused = "a.yaml:1:1" }, "", "! config refused: a.yaml:1:1"},
	} {
		s := host()
		c.change(s)
		lines := strings.Split((&View{}).screen(s, c.trouble, 80, 24), "\n")
		if !strings.HasPrefix(lines[1], c.want) {
			t.Errorf("%s: %q", name, lines[1])
		}
	}
}

func TestAScreenFitsItsTerminalWhateverIsOnIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := host()
		names := rapid.SliceOfN(rapid.StringMatching(`/[a-z日ü.-]{0,90}`), 0, 60).Draw(t, "names")
		for _, n := range names {
			s.Cgroups = append(s.Cgroups, status.Cgroup{Path: n, Name: n, Verdict: "fits", Current: of(rapid.Uint64().Draw(t, "current"))})
		}
		v := View{Sort: rapid.IntRange(0, len(columns)-1).Draw(t, "sort"), Reverse: rapid.Bool().Draw(t, "reverse"), Nodes: rapid.Bool().Draw(t, "nodes"),
			row: rapid.IntRange(-5, 100).Draw(t, "row"), node: rapid.IntRange(-2, 5).Draw(t, "node")}
		w, h := rapid.IntRange(1, 220).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
		lines := strings.Split(v.screen(s, "", w, h), "\n")
		if len(lines) != h {
			t.Fatalf("%d lines on %d", len(lines), h)
		}
		for _, l := range lines {
			if n := lipgloss.Width(l); n > w && w >= 20 {
				t.Fatalf("%d columns on %d: %q", n, w, l)
			}
		}
	})
}

func TestFromTwentyColumnsOnEveryNameShowsItsEnd(t *testing.T) {
	for w := 20; w <= 200; w++ {
		for _, nodes := range []bool{false, true} {
			screen := (&View{Sort: colResident, Nodes: nodes}).screen(host(), "", w, 24)
			if !slices.ContainsFunc(strings.Split(screen, "\n"), func(l string) bool { return strings.Contains(l, "ice ") && (nodes || strings.Contains(l, "17 GiB")) }) {
				t.Fatalf("at %d columns, by node %v:\n%s", w, nodes, screen)
			}
		}
	}
}
