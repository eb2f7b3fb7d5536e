package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckBuild(t *testing.T) {
	run := func(agent string, faults, stallUS uint64, ms float64) result.Run {
		r := result.Run{Agent: agent, Facts: map[string]float64{"build_ms": ms}}
		r.Counters.PgMajFault, r.Counters.PSISomeUS = faults, stallUS
		return r
	}
	off := run("off", 9688, 80e6, 100e3)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"half the faults, half the waiting, no slower", []result.Run{off, run("on", 4844, 40e6, 104e3)}, []string{"ok", "ok", "ok", "ok"}},
		{"hardly better, and slower", []result.Run{off, run("on", 5578, 42e6, 106e3)}, []string{"ok", "FAIL", "FAIL", "FAIL"}},
		{"memory was never short", []result.Run{run("off", 40, 1000, 100e3), run("on", 10, 100, 100e3)}, []string{"FAIL", "ok", "ok", "ok"}},
		{"the kernel alone can be judged alone", []result.Run{off}, []string{"ok", "skip", "skip", "skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"major faults, by the kernel", "major faults", "pressure", "time of the build"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkBuild(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
