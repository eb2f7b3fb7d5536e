package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
)

// bench is a matrix of squeeze, with the agent off and on, whose runs are made up.
type bench struct {
	m     matrix
	wants []want
	kept  []result.Kept
	made  []string // "scenario agent" of each run, in order
	said  []string
	fail  map[string]error
	stop  func() // called by the run after which the command is interrupted
	after int
}

func newBench(t *testing.T, runs int, build string, lrus ...string) *bench {
	t.Helper()
	b := &bench{m: matrix{trial: trial{runs: runs, short: true}}}
	s, err := scenario.Find("squeeze")
	if err != nil {
		t.Fatal(err)
	}
	for _, lru := range lrus {
		cell := result.Cell{Scenario: "squeeze", Kernel: "6.12.1", Topology: "quad", LRU: lru, Accel: "tcg", Short: true}
		off, on := cell, cell
		off.Agent, on.Agent, on.Law, on.Build = "off", "on", "tmo", build
		b.wants = append(b.wants, want{s, "6.12", off}, want{s, "6.12", on})
	}
	return b
}

func (b *bench) fill(ctx context.Context) (broken []error, err error) {
	b.kept, broken, err = b.m.fill(ctx, b.wants, b.kept, func(f string, a ...any) { b.said = append(b.said, fmt.Sprintf(f, a...)) },
		func(_ context.Context, e lab.Experiment) (result.Result, error) {
			agent := e.Agents[0]
			if err := b.fail[agent]; err != nil {
				return result.Result{}, err
			}
			lru := e.LRU
			if lru == "" {
				lru = "mglru"
			}
			b.made = append(b.made, agent+" "+lru)
			if b.stop != nil && len(b.made) == b.after {
				b.stop()
			}
			return result.Result{Scenario: e.Scenario.Name, Kernel: "6.12.1", KernelAsked: e.Kernel, Topology: e.Topology, LRU: lru, Accel: "tcg", Law: "tmo", Short: e.Short,
				Runs: []result.Run{{Agent: agent, HostMS: 60_000}}}, nil
		}, func(result.Kept) error { return nil })
	return broken, err
}

func TestTheMatrixMakesOnlyWhatIsMissing(t *testing.T) {
	b := newBench(t, 2, "aaa", "mglru")
	if _, err := b.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"off mglru", "on mglru", "off mglru", "on mglru"}, b.made); d != "" {
		t.Errorf("one of each cell comes before the second of any: %s", d)
	}
	b.made, b.said = nil, nil
	if _, err := b.fill(t.Context()); err != nil || b.made != nil {
		t.Errorf("a second call made %v, %v", b.made, err)
	}
	if d := cmp.Diff([]string{"matrix: 4 runs wanted, 4 kept already, 0 missing"}, b.said); d != "" {
		t.Error(d)
	}
	other := newBench(t, 2, "bbb", "mglru")
	other.kept = b.kept
	if _, err := other.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"on mglru", "on mglru"}, other.made); d != "" {
		t.Errorf("another build needs no new runs without it: %s", d)
	}
}

func TestAnInterruptedMatrixContinues(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := newBench(t, 2, "aaa", "mglru")
	b.stop, b.after = cancel, 3
	if _, err := b.fill(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if len(b.kept) != 2 {
		t.Fatalf("%d runs are kept, want the two that were whole", len(b.kept))
	}
	b.stop = nil
	if _, err := b.fill(t.Context()); err != nil || len(b.kept) != 4 || len(b.made) != 5 {
		t.Errorf("%d kept of %d made, %v", len(b.kept), len(b.made), err)
	}
}

func TestWhatCannotBeRunEndsNothingElse(t *testing.T) {
	b := newBench(t, 3, "aaa", "mglru")
	b.fail = map[string]error{"off": errors.New("no luck")}
	broken, err := b.fill(t.Context())
	if err != nil || len(broken) != 1 || len(b.made) != 3 {
		t.Errorf("made %v, broken %v, %v; want the other cell whole and one attempt at this", b.made, broken, err)
	}
	b.fail = nil
	if _, err := b.fill(t.Context()); err != nil || len(b.kept) != 6 {
		t.Errorf("%d kept after the next call, %v", len(b.kept), err)
	}
}

func TestTheKernelsOwnLRUIsNotRunTwice(t *testing.T) {
	b := newBench(t, 2, "aaa", "", "mglru", "classic")
	if _, err := b.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, m := range b.made {
		n[m]++
	}
	if d := cmp.Diff(map[string]int{"off mglru": 2, "on mglru": 2, "off classic": 2, "on classic": 2}, n); d != "" {
		t.Error(d)
	}
}

func TestTheTimeLeftIsThatOfEarlierRuns(t *testing.T) {
	b := newBench(t, 2, "aaa", "mglru")
	if n, takes, unknown := sheet(nil).left(b.wants, 2); n != 4 || takes != 0 || unknown != 4 {
		t.Errorf("of nothing: %d, %s, %d", n, takes, unknown)
	}
	if _, err := b.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, takes, unknown := sheet(b.kept).left(b.wants, 5); n != 6 || takes != 6*time.Minute || unknown != 0 {
		t.Errorf("%d, %s, %d", n, takes, unknown)
	}
	for _, tc := range []struct {
		n, unknown int
		want       string
	}{
		{6, 0, "6 runs left, about 6m0s by earlier ones"},
		{6, 2, "6 runs left, about 6m0s and 2 of unknown length"},
		{6, 6, "6 runs left, and nothing to estimate their time by yet"},
	} {
		if got := remaining(tc.n, 6*time.Minute, tc.unknown); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestRunsWithoutTheAgentServeEachBuildAndAreShownOnce(t *testing.T) {
	b := newBench(t, 1, "aaa", "mglru")
	if _, err := b.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := newBench(t, 1, "bbb", "mglru")
	other.kept = b.kept
	if _, err := other.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	groups := sheet(other.kept).groups()
	if len(groups) != 2 || len(groups[0].Runs) != 2 || len(groups[1].Runs) != 2 || len(groups[0].Checks) == 0 {
		t.Fatalf("groups %+v", groups)
	}
	var got []string
	for _, r := range matrixRows(groups) {
		got = append(got, strings.Join(r.names, " "))
	}
	want := []string{"squeeze 6.12.1 mglru short off -", "squeeze 6.12.1 mglru short on, tmo aaa", "squeeze 6.12.1 mglru short on, tmo bbb"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestShowRunsNothing(t *testing.T) {
	cache := t.TempDir()
	show := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRoot(&out, &bytes.Buffer{})
		root.SetArgs(append([]string{"matrix", "--show", "--cache", cache}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := show(); err == nil || !strings.Contains(err.Error(), "nothing is kept") {
		t.Errorf("an empty folder: %v", err)
	}
	b := newBench(t, 1, "aaa", "mglru")
	if _, err := b.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, k := range b.kept {
		k.At = time.Unix(int64(i), 0)
		if err := (result.Store{Dir: filepath.Join(cache, resultsDir)}).Add(k); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "table.md")
	out, err := show("--markdown", file, "--scenario", "squeeze", "--kernel", "6.12")
	if err != nil || !strings.Contains(out, "on, tmo") {
		t.Errorf("%v:\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "| scenario | kernel | LRU | form | agent | build | runs |") || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%v:\n%s", err, text)
	}
	for _, other := range [][]string{{"--scenario", "stream"}, {"--kernel", "6.1"}, {"--lru", "classic"}, {"--short=false"}} {
		if _, err := show(other...); err == nil {
			t.Errorf("%v shows what is not asked for", other)
		}
	}
}

func TestTheMatrixChecksEverythingBeforeItsFirstRun(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"a scenario nobody knows", "there are:", []string{"--scenario", "squeeze,squash"}},
		{"a scenario of a container host", "container host", []string{"--scenario", "host"}},
		{"an LRU nobody knows", "classic, mglru or default", []string{"--lru", "classic,arc", "--scenario", "squeeze"}},
		{"a topology nobody knows", "octo", []string{"--topology", "octo"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := command(t, append([]string{"matrix"}, tc.args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
