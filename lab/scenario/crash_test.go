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
		return result.Run{Agent: agent, Facts: map[string]float64{"lives": lives, "killed": killed, "changed_lives": changed, "wrong_knobs": wrong,
			"random_kills": lives, "random_changed": changed, "random_wrong": wrong, "random_strange": wrong}}
	}
	for _, tc := range []struct {
		name string
		run  result.Run
		want []string
	}{
		{"killed at every step, and all is as it was", run("on", 10, 10, 6, 0), []string{"ok", "ok", "ok", "ok", "ok", "ok"}},
		{"a step that is never passed, and a knob that stays", run("on", 10, 9, 6, 1), []string{"FAIL", "ok", "FAIL", "ok", "FAIL", "FAIL"}},
		{"an agent that changes nothing proves nothing", run("on", 10, 0, 0, 0), []string{"FAIL", "FAIL", "ok", "FAIL", "ok", "ok"}},
		{"without the agent there is nothing to check", run("off", 0, 0, 0, 0), []string{"skip", "skip", "skip", "skip", "skip", "skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"killed", "changed by the dead", "knobs not as they were", "killed at random", "limits not as they were", "somebody else's limit"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkCrash([]result.Run{tc.run}))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestALimitThatIsAnotherCgroupsIsStrange(t *testing.T) {
	a, b := &plot{file: "a", own: 24 * mib}, &plot{file: "b", own: 20 * mib}
	other := &plot{own: 32 * mib}
	p := &plots{all: []*plot{a, b, other}}
	for _, c := range []struct {
		of   *plot
		high uint64
		may  bool
	}{
		{a, 24 * mib, true},
		{a, 90 * mib, true},
		{a, 20 * mib, false},
		{a, 32 * mib, false},
		{b, 24 * mib, false},
		{other, 32 * mib, true},
		{other, 90 * mib, false},
	} {
		if got := p.may(c.of, c.high); got != c.may {
			t.Errorf("%d MiB where the operator has %d: %t, want %t", c.high/mib, c.of.own/mib, got, c.may)
		}
	}
}
