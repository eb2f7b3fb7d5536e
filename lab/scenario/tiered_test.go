package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

func TestCheckTiered(t *testing.T) {
	run := func(agent string, demoted, tooMuch float64) result.Run {
		return result.Run{Agent: agent, Facts: map[string]float64{"demoted_pages": demoted, "called_too_freed": tooMuch, "demoted_of_asked": demoted * page / tieredAsk}}
	}
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"moved pages are called moved", []result.Run{run("off", 16000, 0), run("on", 16000, 0.01)}, []string{"ok", "ok", "ok"}},
		{"moved pages are called freed", []result.Run{run("off", 16000, 0), run("on", 16000, 1)}, []string{"ok", "FAIL", "ok"}},
		{"a kernel without tiers proves nothing", []result.Run{run("off", 0, 0), run("on", 0, 0)}, []string{"FAIL", "ok", "ok"}},
		{"the kernel alone can be judged alone", []result.Run{run("off", 16000, 0)}, []string{"ok", "skip", "skip"}},
		{"what was only moved was asked for again", []result.Run{run("off", 16000, 0), run("on", 34700, 0)}, []string{"ok", "ok", "FAIL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"demoted, by the kernel", "called freed though it was moved", "demoted, with the agent"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkTiered(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOnlyWhatWasDoneWasAskedFor(t *testing.T) {
	if got := wanted([]guest.Decision{{Want: 5, Acted: true}, {Want: 7}, {Want: 2, Acted: true}}); got != 7 {
		t.Errorf("got %v", got)
	}
}
