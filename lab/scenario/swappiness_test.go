package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckSwappiness(t *testing.T) {
	run := func(swapped, anon, zeroOwn, highOwn float64) result.Run {
		return result.Run{Agent: "on", Facts: map[string]float64{
			"zero_swapped_pages": swapped, "zero_reclaimed_pages": 1000, "zero_by_agent_pages": zeroOwn,
			"high_anon_pages": anon, "high_reclaimed_pages": 1000, "high_by_agent_pages": highOwn,
		}}
	}
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"each by its own swappiness, and by the agent", []result.Run{run(0, 800, 950, 1000)},
			[]string{"swapped out at 0 ok", "anon at 180 ok", "by the agent at 0 ok", "by the agent at 180 ok"}},
		{"the kernel did it, in its own way", []result.Run{run(1, 700, 900, 900)},
			[]string{"swapped out at 0 FAIL", "anon at 180 FAIL", "by the agent at 0 FAIL", "by the agent at 180 FAIL"}},
		{"without the agent there is nothing to check", []result.Run{{Agent: "off"}},
			[]string{"swapped out at 0 skip", "anon at 180 skip", "by the agent at 0 skip", "by the agent at 180 skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkSwappiness(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
