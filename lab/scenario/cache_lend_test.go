package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckCacheLend(t *testing.T) {
	// Four passes; the refaults of the second before and after the loan, of the third and the fourth.
	run := func(agent string, before, second, third, fourth uint64, lastMS float64, facts map[string]float64) result.Run {
		r := result.Run{Agent: agent, PassMS: []float64{40e3, 40e3, lastMS, lastMS}, PassAtMS: []float64{0, 40e3, 80e3, 120e3}, Facts: facts}
		sum := uint64(0)
		for _, p := range []struct{ at, n uint64 }{{0, 0}, {41000, before}, {79000, second}, {119000, third}, {159000, fourth}} {
			sum += p.n
			r.Series = append(r.Series, result.Point{AtMS: int64(p.at), RefaultFile: sum})
		}
		r.Counters.RefaultFile = sum
		return r
	}
	facts := func(lent, recall, kills, filler, borrower float64) map[string]float64 {
		return map[string]float64{"lent_ms": lent, "recall_seconds": recall, "filler_oom_kills": kills,
			"filler_stall_share": filler, "borrower_stall_share": borrower}
	}
	off := run("off", 0, 51200, 51200, 0, 40e3, nil)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"lent at once, read from memory, back in time",
			[]result.Run{off, run("on", 6000, 45200, 6090, 10, 1e3, facts(3000, 9, 0, 0.001, 0.005))},
			[]string{"ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok"}},
		{"what the loan brought was lost again",
			[]result.Run{off, run("on", 6000, 45200, 6110, 110, 1e3, facts(3000, 9, 0, 0.001, 0.005))},
			[]string{"ok", "ok", "FAIL", "FAIL", "ok", "ok", "ok", "ok", "ok"}},
		{"lent late and too little, and back at somebody's cost",
			[]result.Run{off, run("on", 0, 51200, 30000, 30000, 20e3, facts(4000, 11, 1, 0.02, 0.03))},
			[]string{"ok", "FAIL", "FAIL", "FAIL", "FAIL", "FAIL", "FAIL", "FAIL", "FAIL"}},
		{"never lent, so never recalled",
			[]result.Run{off, run("on", 0, 51200, 51200, 51200, 40e3, map[string]float64{"filler_oom_kills": 0, "filler_stall_share": 0, "borrower_stall_share": 0})},
			[]string{"ok", "FAIL", "FAIL", "FAIL", "FAIL", "FAIL", "ok", "ok", "ok"}},
		{"the kernel alone can be judged alone", []result.Run{off},
			[]string{"ok", "skip", "skip", "skip", "skip", "skip", "skip", "skip", "skip"}},
		{"a file that fits proves nothing", []result.Run{run("off", 0, 0, 0, 0, 1e3, nil)},
			[]string{"FAIL", "skip", "skip", "skip", "skip", "skip", "skip", "skip", "skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"file refaults, by the kernel", "lent", "file refaults once lent", "file refaults in the end", "pass time once lent",
				"recalled", "the filler's kills", "the filler's waiting", "the borrower's waiting"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkCacheLend(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
