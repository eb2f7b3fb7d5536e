package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestCheckSwapInsanity(t *testing.T) {
	run := func(agent string, s steering) result.Run { return result.Run{Agent: agent, Facts: s.facts()} }
	off := run("off", steering{swapped: 20000, full: 9 * time.Second})
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"steered in time", []result.Run{off, run("on", steering{full: 9 * time.Second, steered: 11 * time.Second})}, []string{"ok", "ok", "ok", "ok"}},
		{"steered before the node was full", []result.Run{off, run("on", steering{steered: 5 * time.Second})}, []string{"ok", "ok", "ok", "ok"}},
		{"steered, and nothing moved", []result.Run{off, run("on", steering{steered: 5 * time.Second, left: 87})}, []string{"ok", "ok", "ok", "FAIL"}},
		{"steered late, after some swap", []result.Run{off, run("on", steering{swapped: 1, full: 9 * time.Second, steered: 12 * time.Second})}, []string{"ok", "FAIL", "FAIL", "ok"}},
		{"never steered", []result.Run{off, run("on", steering{swapped: 20000, full: 9 * time.Second})}, []string{"ok", "FAIL", "FAIL", "ok"}},
		{"a kernel that does not swap proves nothing", []result.Run{run("off", steering{}), run("on", steering{steered: time.Second})}, []string{"FAIL", "ok", "ok", "ok"}},
		{"the kernel alone can be judged alone", []result.Run{off}, []string{"ok", "skip", "skip", "skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"swapped on the full node, by the kernel", "swapped on the full node", "steered away", "left on the full node"}
			for i := range tc.want {
				names[i] += " " + tc.want[i]
			}
			if d := cmp.Diff(names, verdicts(checkSwapInsanity(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}
