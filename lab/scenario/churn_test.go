package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

func TestALimitMayOnlyBeTheOperatorsOrALoanAboveIt(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind string
		high uint64
		want string
	}{
		{"the operator's own", "lent", 12, ""},
		{"a loan", "lent", 20, ""},
		{"less than the operator set", "lent", 11, "below"},
		{"what the cgroup before it had", "lent", 14, "had the name before"},
		{"a value where nothing is lent", "tight", 13, "nobody may change"},
		{"no value where nothing is lent", "idle", 12, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := slot{Cgroup: guest.Cgroup{Path: "/x"}, kind: tc.kind, high: 12 * mib, before: 14 * mib}
			got := s.strange(tc.high * mib)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGrowthIsTheLastQuarterAboveTheSecond(t *testing.T) {
	o := ownCost{
		memory: []float64{90, 80, 20, 21, 40, 50, 25, 26},
		files:  []float64{1, 5, 100, 100, 100, 100, 100, 100},
	}
	if memory, files := o.growth(); memory != 5 || files != 0 {
		t.Errorf("got %v and %v: what the start took is no growth", memory, files)
	}
	if memory, files := (ownCost{}).growth(); memory != 0 || files != 0 {
		t.Errorf("of nothing: %v and %v", memory, files)
	}
}

func TestMemoryIsReadFromStatus(t *testing.T) {
	if v, ok := statusKiB("Name:\tx\nRssAnon:\t    5120 kB\nRssFile:\t 1 kB\n", "RssAnon"); !ok || v != 5120 {
		t.Errorf("got %v, %t", v, ok)
	}
	if _, ok := statusKiB("Name:\tx\n", "RssAnon"); ok {
		t.Error("a line that is not there was read")
	}
}

func TestOnlyWarningsAndWorseAreComplaints(t *testing.T) {
	got := complaintsOf([]string{`{"level":"info","message":"a"}`, `{"level":"warn","message":"b"}`, `{"level":"error"}`, "panic: c"})
	if d := cmp.Diff([]string{`{"level":"warn","message":"b"}`, `{"level":"error"}`, "panic: c"}, got); d != "" {
		t.Error(d)
	}
}

func TestTheLongestGapIsBetweenTheFirstDecisionsOfTwoTicks(t *testing.T) {
	start := time.Unix(100, 0)
	at := func(tick int64, ms int) guest.Decision {
		return guest.Decision{Tick: tick, Heard: start.Add(time.Duration(ms) * time.Millisecond)}
	}
	all := map[string][]guest.Decision{
		"/a": {at(1, -500), at(2, 900), at(3, 2900)},
		"/b": {at(2, 700), at(3, 2000)},
	}
	if got := longestGap(all, start); got != 1300*time.Millisecond {
		t.Errorf("got %s", got)
	}
}

func TestCheckChurn(t *testing.T) {
	good := map[string]float64{
		"replaced": 700, "dying_most": 100, "lent_to": 40, "wrong_knobs": 0, "strange_values": 0, "complaints": 0,
		"tick_gap_seconds": 1.2, "memory_growth_mib": 0.1, "open_growth": 3,
	}
	for name, tc := range map[string]struct {
		fact  string
		value float64
		fail  string
	}{
		"all is well":                    {"replaced", 700, ""},
		"hardly anybody went":            {"replaced", 20, "came and went"},
		"nobody was lent to":             {"lent_to", 0, "lent to"},
		"a limit was left":               {"wrong_knobs", 1, "settings not as they were"},
		"a limit went to another cgroup": {"strange_values", 1, "somebody else's limit"},
		"it complained":                  {"complaints", 1, "complaints"},
		"it stood still":                 {"tick_gap_seconds", 9, "time without a tick"},
		"it grew":                        {"memory_growth_mib", 20, "memory growth"},
		"it left files open":             {"open_growth", 500, "open files growth"},
		"nobody left memory behind":      {"dying_most", 0, "gone and still charged"},
	} {
		t.Run(name, func(t *testing.T) {
			run := result.Run{Agent: "on", Facts: map[string]float64{}, AgentStats: &result.AgentStats{Actions: 5}}
			for k, v := range good {
				run.Facts[k] = v
			}
			run.Facts[tc.fact] = tc.value
			var failed []string
			for _, c := range checkChurn([]result.Run{run}) {
				if !c.OK {
					failed = append(failed, c.Name)
				}
			}
			if got := strings.Join(failed, ", "); got != tc.fail {
				t.Errorf("failed: %q, want %q", got, tc.fail)
			}
		})
	}
}
