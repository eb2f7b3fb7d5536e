package demo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheTableOfASample(t *testing.T) {
	s := Sample{Phase: "agent enforces", ElapsedMS: 12345, Groups: []Group{
		{Cgroup: idle, Resident: 300 * mib, Anon: 200 * mib, File: 100 * mib, Swap: 56 * mib, Reclaimed: 90 * mib, Decision: "idle: took 6 MiB\nof 300 MiB"},
		{Cgroup: busy, Resident: 96 * mib, Anon: 96 * mib, Refaults: 12.4, Stalled: 0.05, Decision: strings.Repeat("x", 200)},
	}}
	want := ` 12 s  agent enforces
      cgroup  resident     anon     file    swap  refault/s  PSI some  reclaimed
  /demo/idle   300 MiB  200 MiB  100 MiB  56 MiB          0    0.00 %     90 MiB
  /demo/busy    96 MiB   96 MiB    0 MiB   0 MiB         12    0.05 %      0 MiB
  idle: took 6 MiB of 300 MiB
  ` + strings.Repeat("x", decisionWidth-3) + `...
`
	if d := cmp.Diff(want, s.Table()); d != "" {
		t.Error(d)
	}
}

func show(t *testing.T, redraw bool, samples int) string {
	t.Helper()
	var out strings.Builder
	s := Screen{Out: &out, Redraw: redraw, Title: "title"}
	for range samples {
		raw, err := json.Marshal(Sample{Phase: "p", Groups: []Group{{Cgroup: idle}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Show(raw); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestATerminalIsRedrawnInPlace(t *testing.T) {
	got := show(t, true, 3)
	if n := strings.Count(got, "\x1b[3A\x1b[J"); n != 2 {
		t.Errorf("went up %d times, want 2, three lines each: %q", n, got)
	}
}

func TestAFileGetsATableNowAndThen(t *testing.T) {
	got := show(t, false, 2*appendEvery)
	if strings.Contains(got, "\x1b") {
		t.Errorf("control characters in a file: %q", got)
	}
	if n := strings.Count(got, "cgroup"); n != 3 { // the first, and every tenth
		t.Errorf("%d tables, want 3", n)
	}
}

func TestTheEndIsKeptAndToldInWords(t *testing.T) {
	end := End{Before: map[string]uint64{idle: 400 * mib, busy: 100 * mib}, After: map[string]uint64{idle: 100 * mib, busy: 99 * mib},
		PassBefore: 10, PassAfter: 10.2, AgentCPUMS: 450, AgentKernelMS: 405, AgentMS: 90000}
	raw, err := json.Marshal(Sample{End: &end})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := Screen{Out: &out}
	if s.End() != nil {
		t.Error("over before it began")
	}
	if err := s.Show(raw); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-75 %", "-1 %", "10.0 ms before, 10.2 ms after", "450 ms of CPU in 90 s (0.50 % of one CPU): 0.05 % in its own code, and 0.45 % in the kernel"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if d := cmp.Diff(&end, s.End()); d != "" {
		t.Error(d)
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name       string
		idle, busy uint64 // what is left of 100
		want       int
	}{
		{"the idle one fell and the busy one did not", 40, 99, 0},
		{"the idle one kept too much", 60, 99, 1},
		{"the busy one lost too much", 40, 80, 1},
		{"both wrong", 60, 80, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := End{Before: map[string]uint64{idle: 100, busy: 100}, After: map[string]uint64{idle: tc.idle, busy: tc.busy}}
			if got := e.Failures(); len(got) != tc.want {
				t.Errorf("got %q, want %d", got, tc.want)
			}
		})
	}
	if got := (End{}).Failures(); len(got) != 2 {
		t.Errorf("an end without figures gave %q", got)
	}
}
