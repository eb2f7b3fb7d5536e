package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

// seen runs a fight over values of memory.high in MiB, a second after each other, and returns it
// with the seconds at which the operator's value was written again.
func seen(t *testing.T, howLong time.Duration, values ...uint64) (f fight, resets []int) {
	t.Helper()
	start := time.Unix(1000, 0)
	for i, v := range values {
		reset, over := f.look(start.Add(time.Duration(i)*time.Second), v*mib, howLong)
		if reset {
			resets = append(resets, i)
		}
		if over != (i == len(values)-1) {
			t.Fatalf("over at %d s: %t", i, over)
		}
	}
	return f, resets
}

func TestAFightIsCountedFromTheFirstLoanOn(t *testing.T) {
	f, resets := seen(t, 5*time.Second, 24, 24, 60, 24, 60, 70, 24, 24)
	if d := cmp.Diff([]int{2, 3, 4, 5, 6, 7}, resets); d != "" {
		t.Error(d)
	}
	// After each reset a value above is a new assert, whatever it is.
	if f.asserts != 2 {
		t.Errorf("%d asserts, want 2", f.asserts)
	}
	want := map[string]float64{"asserts": 2, "resets": 6, "quiet_seconds": 3}
	if d := cmp.Diff(want, f.facts()); d != "" {
		t.Error(d)
	}
}

func TestWithoutALoanThereIsNoFight(t *testing.T) {
	values := make([]uint64, int(fightLoan.Seconds())+1)
	for i := range values {
		values[i] = 24
	}
	f, resets := seen(t, time.Second, values...)
	if len(resets) != 0 || f.facts() != nil {
		t.Errorf("resets at %v, facts %v", resets, f.facts())
	}
}

func TestCheckReloadFight(t *testing.T) {
	run := func(resets, asserts, quiet, lines float64) result.Run {
		return result.Run{Agent: "on", Facts: map[string]float64{"resets": resets, "asserts": asserts, "quiet_seconds": quiet, "log_lines": lines}}
	}
	for _, tc := range []struct {
		name string
		run  result.Run
		want []string
	}{
		{"asserted three times, then yielded and said so", run(100, 3, 30, 1), []string{"ok", "ok", "ok", "ok", "ok"}},
		{"fought to the end, in silence", run(100, 99, 1, 0), []string{"ok", "FAIL", "FAIL", "FAIL", "ok"}},
		{"yielded with a flood of words", run(100, 0, 100, 50), []string{"ok", "ok", "ok", "ok", "FAIL"}},
		{"never lent", result.Run{Agent: "on"}, []string{"FAIL", "FAIL", "FAIL", "FAIL", "FAIL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"lent before the fight", "asserts", "peace", "said", "said no more than once"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkReloadFight([]result.Run{tc.run}))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOnlyLinesThatMentionAWordAreAboutIt(t *testing.T) {
	if d := cmp.Diff([]string{"b memory.high"}, about([]string{"a", "b memory.high"}, "memory.high")); d != "" {
		t.Error(d)
	}
}
