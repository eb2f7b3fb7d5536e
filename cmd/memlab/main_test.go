package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/memagent/memagent/lab/result"
)

// command runs memlab with an empty cache.
func command(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot(&stdout, &stderr)
	root.SetArgs(append(args, "--cache", t.TempDir()))
	err = root.ExecuteContext(context.Background())
	return stdout.String(), err
}

func TestListNamesWhatThereIs(t *testing.T) {
	out, err := command(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"squeeze", "observe", "quad", "memoryless", "cpuless", "tiered", "node-imbalance", "6.12", "latest", "not fetched yet", "not in the suite"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

func TestWrongUseSaysWhatIsRight(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"a scenario nobody knows", []string{"run", "squash"}, "there are: build, cache-lend, "},
		{"no scenario", []string{"run"}, "accepts 1 arg"},
		{"a state the agent has not", []string{"run", "squeeze", "--agent", "maybe"}, "off, on or both"},
		{"a law nobody knows", []string{"run", "squeeze", "--law", "murphy"}, "memagent, senpai, tmo"},
		{"an LRU nobody knows", []string{"run", "squeeze", "--lru", "arc"}, "classic, mglru or default"},
		{"no runs", []string{"run", "squeeze", "--runs", "0"}, "at least 1"},
		{"a kernel nobody knows", []string{"exec", "--kernel", "5.10", "--", "true"}, "there are: 6.1, 6.12, latest"},
		{"a topology nobody knows", []string{"exec", "--topology", "octo", "--", "true"}, "there are: cpuless"},
		{"a memagent that is not there", []string{"list", "--memagent", "/nowhere/at/all"}, "/nowhere/at/all"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := command(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// flagName finds the names of flags in what a command says of them.
var flagName = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z-]+)`)

func TestEveryFlagIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	root := newRoot(io.Discard, io.Discard)
	for _, c := range append(root.Commands(), root) {
		if c.Hidden {
			continue
		}
		for _, f := range flagName.FindAllStringSubmatch(c.LocalFlags().FlagUsages()+c.PersistentFlags().FlagUsages(), -1) {
			seen++
			if f[1] != "help" && !strings.Contains(string(text), "`--"+f[1]+"`") {
				t.Errorf("docs/lab.md does not name --%s of %s", f[1], c.CommandPath())
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d flags were seen", seen)
	}
}

func TestWrongUseIsExitCode2(t *testing.T) {
	if code := run([]string{"run", "squash"}); code != exitBroken {
		t.Errorf("got %d", code)
	}
}

func TestReport(t *testing.T) {
	res := result.Result{
		Scenario: "squeeze", Kernel: "6.12.1", Topology: "quad", LRU: "mglru", Accel: "tcg",
		Runs: []result.Run{
			{Agent: "off", PassMS: []float64{10}, HostRanMS: 100},
			{Agent: "on", PassMS: []float64{11}, HostRanMS: 50, HostWaitedMS: 50, Differences: []string{"x was 1"},
				Series:     []result.Point{{Anon: 500 << 20}, {Anon: 100 << 20}},
				AgentStats: &result.AgentStats{MeasuredCPUMS: 123, ReclaimedBytes: 400 << 20}},
		},
		Checks: []result.Check{
			result.AtLeast("resident saved", 0.8, 0.6, " of the cold memory"),
			result.AtMost("hot pass time", 1.2, 1.1, " of off"),
			result.Skip("other", "needs more"),
		},
	}
	var b bytes.Buffer
	report(&b, res)
	for _, want := range []string{
		"squeeze on 6.12.1 (quad, mglru LRU, tcg)", "500 MiB -> 100 MiB", "123 ms", "400 MiB",
		"waited for it 50 %", "changed with the agent on: x was 1",
		"ok    resident saved  0.8", "FAIL  hot pass time   1.2", "skip  other",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}

func TestMediansShowTheSpreadWhereRunsDiffer(t *testing.T) {
	run := func(refaults uint64) result.Run {
		return result.Run{Agent: "on", Counters: result.Counters{RefaultAnon: refaults}}
	}
	var b bytes.Buffer
	medians(&b, []result.Result{{Scenario: "squeeze", Kernel: "6.12.1", Runs: []result.Run{run(5), run(1), run(9)}}})
	if !strings.Contains(b.String(), "5 (1..9)") || strings.Contains(b.String(), "off") {
		t.Errorf("got:\n%s", b.String())
	}
}
