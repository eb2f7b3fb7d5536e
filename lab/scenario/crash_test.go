package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/lab/result"
)

func TestCrashPointsAreTheJournalsSteps(t *testing.T) {
	var want []string
	for _, s := range journal.Steps() {
		want = append(want, string(s))
	}
	if d := cmp.Diff(want, crashPoints); d != "" {
		t.Error(d)
	}
}

func TestCheckCrash(t *testing.T) {
	run := func(agent string, lives, killed, changed, wrong float64) result.Run {
		return result.Run{Agent: agent, Facts: map[string]float64{"lives": lives, "killed": killed, "changed_lives": changed, "wrong_knobs": wrong}}
	}
	for _, tc := range []struct {
		name string
		run  result.Run
		want []string
	}{
		{"killed at every step, and all is as it was", run("on", 10, 10, 6, 0), []string{"ok", "ok", "ok"}},
		{"a step that is never passed, and a knob that stays", run("on", 10, 9, 6, 1), []string{"FAIL", "ok", "FAIL"}},
		{"an agent that changes nothing proves nothing", run("on", 10, 0, 0, 0), []string{"FAIL", "FAIL", "ok"}},
		{"without the agent there is nothing to check", run("off", 0, 0, 0, 0), []string{"skip", "skip", "skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"killed", "changed by the dead", "knobs not as they were"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkCrash([]result.Run{tc.run}))); d != "" {
				t.Error(d)
			}
		})
	}
}
