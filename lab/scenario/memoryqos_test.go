package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckMemoryQoS(t *testing.T) {
	run := func(agent string, events, stallUS, changes, pass float64) result.Run {
		r := result.Run{Agent: agent, PassMS: []float64{1, pass, pass}, Facts: map[string]float64{"high_events": events, "high_changes": changes}}
		r.Counters.PSISomeUS = uint64(stallUS)
		return r
	}
	off := run("off", 6000, 2e6, 0, 1000)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"nobody is stopped", []result.Run{off, run("on", 100, 1e5, 0, 1090)},
			[]string{"throttling ok", "pressure ok", "memory.high changed ok", "pass time ok"}},
		{"stopped, slower, and the value written over", []result.Run{off, run("on", 200, 3e5, 1, 1200)},
			[]string{"throttling FAIL", "pressure FAIL", "memory.high changed FAIL", "pass time FAIL"}},
		{"a kernel that never throttles is nothing to compare with", []result.Run{run("off", 0, 0, 0, 1000), run("on", 0, 0, 0, 1000)},
			[]string{"throttling FAIL", "pressure FAIL", "memory.high changed ok", "pass time ok"}},
		{"without the agent there is nothing to check", []result.Run{off},
			[]string{"throttling skip", "pressure skip", "memory.high changed skip", "pass time skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkMemoryQoS(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
