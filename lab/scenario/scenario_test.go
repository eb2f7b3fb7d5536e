package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/topology"
)

func TestEveryScenarioIsWhole(t *testing.T) {
	for _, s := range All() {
		if s.Name == "" || s.About == "" || s.Run == nil || s.Checks == nil {
			t.Errorf("%q lacks something", s.Name)
		}
		if _, err := topology.Load(s.Topology); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if short, long := s.Within(true), s.Within(false); short <= 0 || short > long {
			t.Errorf("%s: short takes %s, long %s", s.Name, short, long)
		}
	}
}

func TestTheSuiteIsPartOfAll(t *testing.T) {
	suite := Suite()
	if len(suite) == 0 {
		t.Error("nothing is to hold")
	}
	for _, s := range suite {
		if found, err := Find(s.Name); err != nil || !found.Suite {
			t.Errorf("%s: found %t, %v", s.Name, found.Suite, err)
		}
	}
}

func TestFindNamesTheScenariosThereAre(t *testing.T) {
	_, err := Find("squash")
	if err == nil || !strings.Contains(err.Error(), "squeeze") {
		t.Errorf("got %v", err)
	}
}

// verdicts are checks as "name ok", "name FAIL" or "name skip".
func verdicts(checks []result.Check) []string {
	var out []string
	for _, c := range checks {
		switch {
		case c.Skipped != "":
			out = append(out, c.Name+" skip")
		case c.OK:
			out = append(out, c.Name+" ok")
		default:
			out = append(out, c.Name+" FAIL")
		}
	}
	return out
}

func TestCheckSqueeze(t *testing.T) {
	const cold = squeezeColdAnon + squeezeColdFile
	run := func(agent string, saved, stalled float64, pass float64) result.Run {
		const before = cold + squeezeHot
		return result.Run{Agent: agent, PassMS: []float64{pass}, Facts: map[string]float64{
			"cold_bytes": cold, "resident_before_bytes": before, "resident_after_bytes": before - saved*cold,
			"late_psi_some_share": stalled,
		}}
	}
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"enough saved, nobody waits, nothing slower",
			[]result.Run{run("off", 0, 0, 10), run("on", 0.8, 0.0005, 10.5)},
			[]string{"resident saved ok", "refault cost ok", "hot pass time ok"}},
		{"all of it wrong",
			[]result.Run{run("off", 0, 0, 10), run("on", 0.5, 0.002, 12)},
			[]string{"resident saved FAIL", "refault cost FAIL", "hot pass time FAIL"}},
		{"the median of three runs counts, not the worst",
			[]result.Run{run("off", 0, 0, 10), run("on", 0.8, 0, 10), run("off", 0, 0, 10), run("on", 0.1, 1, 99), run("off", 0, 0, 10), run("on", 0.7, 0, 10)},
			[]string{"resident saved ok", "refault cost ok", "hot pass time ok"}},
		{"times need something to compare with",
			[]result.Run{run("on", 0.8, 0, 10)},
			[]string{"resident saved ok", "refault cost ok", "hot pass time skip"}},
		{"without the agent there is nothing to check",
			[]result.Run{run("off", 0, 0, 10)},
			[]string{"resident saved skip", "refault cost skip", "hot pass time skip"}},
		{"a run without passes cannot pass",
			[]result.Run{run("off", 0, 0, 0), run("on", 0.8, 0, 0)},
			[]string{"resident saved ok", "refault cost ok", "hot pass time FAIL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkSqueeze(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCheckObserve(t *testing.T) {
	run := func(agent string, change map[string]float64, st result.AgentStats) result.Run {
		r := result.Run{Agent: agent, Facts: map[string]float64{"busy_scanned_pages": 100}}
		for k, v := range change {
			r.Facts[k] = v
		}
		if agent == "on" {
			r.AgentStats = &st
		}
		return r
	}
	good := result.AgentStats{Decisions: 10}
	for _, tc := range []struct {
		name string
		run  result.Run
		fail string
	}{
		{"nothing changed", run("on", nil, good), ""},
		{"a knob changed", run("on", map[string]float64{"knobs_changed": 1}, good), "knobs changed"},
		{"a page was reclaimed at rest", run("on", map[string]float64{"rest_reclaim_pages": 1}, good), "pages reclaimed at rest"},
		{"a page was swapped at rest", run("on", map[string]float64{"rest_swap_pages": 1}, good), "pages swapped at rest"},
		{"there was no pressure to look at", run("on", map[string]float64{"busy_scanned_pages": 0}, good), "pages scanned under pressure"},
		{"the agent owns up to a write", run("on", nil, result.AgentStats{Decisions: 10, Writes: 1}), "writes"},
		{"the agent owns up to reclaim", run("on", nil, result.AgentStats{Decisions: 10, ReclaimedBytes: 1}), "bytes reclaimed"},
		{"the agent looked at nothing", run("on", nil, result.AgentStats{}), "decisions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var failed []string
			for _, c := range checkObserve([]result.Run{run("off", nil, result.AgentStats{}), tc.run}) {
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

func TestFillMeasuresTheEndAndTheLastHalf(t *testing.T) {
	snap := func(anon, refaults, psi uint64) counters.Snapshot {
		return counters.Snapshot{PSISome: psi, Stat: counters.Flat{"anon": anon, "workingset_refault_anon": refaults}}
	}
	w := watched{
		before: snap(1000, 0, 0), half: snap(500, 100, 5000), after: snap(400, 130, 6000),
		elapsed: 20 * time.Second, late: 10 * time.Second,
	}
	for _, anon := range []uint64{1000, 420, 410, 900, 400, 405} {
		w.series = append(w.series, result.Point{Anon: anon})
	}
	var run result.Run
	w.fill(&run)
	want := map[string]float64{
		"resident_before_bytes": 1000, "resident_after_bytes": 410,
		"late_psi_some_share": 1000.0 / 10e6, "late_refaults_per_second": 3,
	}
	if d := cmp.Diff(want, run.Facts); d != "" {
		t.Error(d)
	}
	if run.Counters.RefaultAnon != 130 || run.ElapsedMS != 20000 {
		t.Errorf("got %+v", run.Counters)
	}
}
