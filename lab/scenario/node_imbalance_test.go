package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckNodeImbalance(t *testing.T) {
	run := func(agent string, wrong, victim, all float64) result.Run {
		return result.Run{Agent: agent, Facts: map[string]float64{
			"wrong_anon_pages": wrong, "victim_freed_bytes": victim * mib, "freed_bytes": all * mib,
		}}
	}
	off := run("off", 12000, 50, 96)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"all of it from the right node", []result.Run{off, run("on", 0, 97, 97)}, []string{"ok", "ok", "ok"}},
		{"what the kernel gave is no measure", []result.Run{run("off", 12000, 40, 90), run("on", 0, 96, 96)}, []string{"ok", "ok", "ok"}},
		{"one page from the wrong one, and too much in all", []result.Run{off, run("on", 1, 99, 100)}, []string{"ok", "FAIL", "FAIL"}},
		{"too little in all", []result.Run{off, run("on", 0, 93, 93)}, []string{"ok", "ok", "FAIL"}},
		{"an agent that made the wrong node grow did no harm", []result.Run{off, run("on", -5, 96, 96)}, []string{"ok", "ok", "ok"}},
		{"a kernel that errs nowhere proves nothing", []result.Run{run("off", 3, 95, 96), run("on", 0, 96, 96)}, []string{"FAIL", "ok", "ok"}},
		{"the kernel alone can be judged alone", []result.Run{off}, []string{"ok", "skip", "skip"}},
		{"nothing to compare with", []result.Run{run("on", 0, 96, 96)}, []string{"skip", "ok", "ok"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"anon out on the wrong node, by the kernel", "anon out on the wrong node", "freed on the right node"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkNodeImbalance(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
