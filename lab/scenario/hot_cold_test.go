package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckHotCold(t *testing.T) {
	run := func(agent string, stallUS, ms, swapIn uint64, facts map[string]float64) result.Run {
		r := result.Run{Agent: agent, ElapsedMS: int64(ms), Facts: facts}
		r.Counters.PSISomeUS, r.Counters.SwapIn = stallUS, swapIn
		return r
	}
	off := run("off", 40e6, 78000, 600000, nil)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"reclaim in time", []result.Run{off, run("on", 4e6, 51000, 610000, map[string]float64{"ages": 1, "abandoned_out_seconds": 20})},
			[]string{"pressure ok", "run time ok", "swap-ins ok", "abandoned set out ok"}},
		{"reclaim in the way", []result.Run{off, run("on", 9e6, 80000, 640000, map[string]float64{"ages": 1, "abandoned_out_seconds": 61})},
			[]string{"pressure FAIL", "run time FAIL", "swap-ins FAIL", "abandoned set out FAIL"}},
		{"the abandoned set never went", []result.Run{off, run("on", 4e6, 51000, 610000, map[string]float64{"ages": 1})},
			[]string{"pressure ok", "run time ok", "swap-ins ok", "abandoned set out FAIL"}},
		{"a kernel without ages", []result.Run{off, run("on", 4e6, 51000, 610000, map[string]float64{"ages": 0})},
			[]string{"pressure ok", "run time ok", "swap-ins ok", "abandoned set out skip"}},
		{"without the agent there is nothing to check", []result.Run{off},
			[]string{"pressure skip", "run time skip", "swap-ins skip", "abandoned set out skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkHotCold(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
