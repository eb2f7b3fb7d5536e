package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckHotColdLend(t *testing.T) {
	run := func(agent string, ms, swapIn uint64, late float64) result.Run {
		r := result.Run{Agent: agent, ElapsedMS: int64(ms), Facts: map[string]float64{"late_swap_ins": late}}
		r.Counters.SwapIn = swapIn
		return r
	}
	off := run("off", 78000, 500000, 400000)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"lent before it is swapped", []result.Run{off, run("on", 20000, 20000, 200)},
			[]string{"swap-ins once lent ok", "swap-ins in all ok", "run time ok"}},
		{"lent once it is missed", []result.Run{off, run("on", 20000, 110000, 200)},
			[]string{"swap-ins once lent ok", "swap-ins in all FAIL", "run time ok"}},
		{"never lent", []result.Run{off, run("on", 79000, 510000, 400000)},
			[]string{"swap-ins once lent FAIL", "swap-ins in all FAIL", "run time FAIL"}},
		{"without the agent there is nothing to check", []result.Run{off},
			[]string{"swap-ins once lent skip", "swap-ins in all skip", "run time skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkHotColdLend(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
