package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// thrashRun is a run of passes every three seconds whose file refaults are given pass by pass.
func thrashRun(agent string, passMS float64, refaults ...uint64) result.Run {
	r := result.Run{Agent: agent, Facts: map[string]float64{}}
	var sum uint64
	r.Series = append(r.Series, result.Point{})
	for n, pages := range refaults {
		at := float64(3000 * n)
		r.PassAtMS, r.PassMS = append(r.PassAtMS, at), append(r.PassMS, passMS)
		for _, ms := range []int64{500, 1000, 2900} {
			r.Series = append(r.Series, result.Point{AtMS: int64(at) + ms, RefaultFile: sum + pages})
		}
		sum += pages
	}
	r.Counters.RefaultFile = sum
	return r
}

// moved is such a run with an agent that saw and acted.
func moved(r result.Run, seenMS, movedMS, share float64) result.Run {
	r.Facts["detected_ms"], r.Facts["moved_ms"] = seenMS, movedMS
	r.Facts["swapped_bytes"], r.Facts["shortfall_bytes"] = share*50*mib, 50*mib
	return r
}

func TestCheckFileThrash(t *testing.T) {
	off := thrashRun("off", 500, 0, 20000, 20000, 20000, 20000, 20000)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"one bad pass, then peace",
			[]result.Run{off, moved(thrashRun("on", 200, 0, 15000, 0, 0, 0, 0), 4500, 4500, 1.2)},
			[]string{"ok", "ok", "ok", "ok", "ok", "ok"}},
		{"seen late, moved too much, and the file thrashes on",
			[]result.Run{off, func() result.Run {
				r := moved(thrashRun("on", 400, 0, 15000, 15000, 15000, 15000, 15000), 6500, 6500, 2)
				r.Counters.RefaultAnon = 51
				return r
			}()},
			[]string{"FAIL", "FAIL", "FAIL", "FAIL", "FAIL", "FAIL"}},
		{"an agent that does nothing proves nothing",
			[]result.Run{off, func() result.Run {
				r := thrashRun("on", 400, 0, 10000, 10000)
				r.Facts["swapped_bytes"], r.Facts["shortfall_bytes"] = 50*mib, 50*mib // by the kernel
				return r
			}()},
			[]string{"ok", "FAIL", "FAIL", "FAIL", "ok", "FAIL"}},
		{"a kernel that has settled by then is nothing to compare with",
			[]result.Run{thrashRun("off", 200, 0, 20000, 0, 0, 0, 0), moved(thrashRun("on", 200, 0, 1000, 0, 0, 0, 0), 4500, 4500, 1)},
			[]string{"ok", "ok", "ok", "ok", "ok", "skip"}},
		{"without the agent there is nothing to check",
			[]result.Run{off},
			[]string{"skip", "skip", "skip", "skip", "skip", "skip"}},
		{"without off there is nothing to compare with",
			[]result.Run{moved(thrashRun("on", 200, 0, 15000, 0, 0), 4500, 4500, 1)},
			[]string{"skip", "ok", "ok", "ok", "ok", "skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			names := []string{"file refaults", "file refaults after the move", "detection", "anon moved", "anon refaults", "pass time"}
			var want []string
			for i, v := range tc.want {
				want = append(want, names[i]+" "+v)
			}
			if d := cmp.Diff(want, verdicts(checkFileThrash(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestJudgedFindsTheFirstVerdictAndTheFirstMove(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int, verdict, rule string, acted bool) guest.Decision {
		return guest.Decision{Heard: start.Add(time.Duration(ms) * time.Millisecond), Verdict: verdict, Rule: rule, Acted: acted}
	}
	for _, tc := range []struct {
		name string
		list []guest.Decision
		want map[string]float64
	}{
		{"nothing was ever seen", []guest.Decision{at(1000, "fits", "squeeze", false)}, map[string]float64{}},
		{"seen, held back, then done", []guest.Decision{
			at(1000, "fits", "off", false), at(2000, "file-thrash", "move-anon", false),
			at(3000, "file-thrash", "move-anon", true), at(4000, "file-thrash", "move-anon", true),
		}, map[string]float64{"detected_ms": 2000, "moved_ms": 3000}},
		{"an experiment is a move too", []guest.Decision{at(2000, "file-thrash", "move-anon-trial", true)},
			map[string]float64{"detected_ms": 2000, "moved_ms": 2000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run := result.Run{Facts: map[string]float64{}}
			judged(&run, tc.list, start)
			if d := cmp.Diff(tc.want, run.Facts); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestShortfallCountsWhatTheFileLacks(t *testing.T) {
	// 100 MiB of 150 in memory, 10 of which were out before, 60 of the file's 80, 5 of the kernel's.
	series := []result.Point{{}, {Current: 165 * mib, Anon: 100 * mib, File: 60 * mib, Swap: 50 * mib}}
	series = append(series, series[1], series[1])
	if got := shortfall(series, 10*mib, 80*mib); got != (100+40+80+5-180)*mib {
		t.Errorf("got %g MiB", got/mib)
	}
}

func TestTheTextOfACheckSaysWhatWasCompared(t *testing.T) {
	c := share("file refaults", []result.Run{thrashRun("off", 1, 400), thrashRun("on", 1, 10), thrashRun("on", 1, 30)},
		func(r result.Run) float64 { return float64(r.Counters.RefaultFile) }, 0.25, "pages")
	if c.Got != 0.05 || !strings.Contains(c.Want, "20 (10..30) against 400 pages") {
		t.Errorf("got %+v", c)
	}
}

func TestCheckStream(t *testing.T) {
	run := func(agent string, swapped, pass float64) result.Run {
		r := result.Run{Agent: agent, PassMS: []float64{9999, pass, pass, pass}}
		r.Counters.SwapOut = uint64(swapped * idleSize / page)
		return r
	}
	for _, tc := range []struct {
		name string
		on   result.Run
		want []string
	}{
		{"the anon stays and nothing is slower", run("on", 0.03, 1040), []string{"idle anon swapped out ok", "pass time ok"}},
		{"the anon goes and all is slower", run("on", 0.04, 1060), []string{"idle anon swapped out FAIL", "pass time FAIL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkStream([]result.Run{run("off", 0.9, 1000), tc.on}))); d != "" {
				t.Error(d)
			}
		})
	}
}
