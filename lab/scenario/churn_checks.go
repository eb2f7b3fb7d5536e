package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// ownCost is what a process had of memory and open files, sampled over time.
type ownCost struct {
	memory []float64 // MiB resident of its own making, without its program
	files  []float64
}

// look samples a process.
func (o *ownCost) look(pid int) error {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return fmt.Errorf("looking at the agent's memory: %w", err)
	}
	kib, ok := statusKiB(string(text), "RssAnon")
	if !ok {
		return fmt.Errorf("looking at the agent's memory: no RssAnon in %s/status", proc)
	}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return fmt.Errorf("looking at the agent's open files: %w", err)
	}
	o.memory, o.files = append(o.memory, kib/1024), append(o.files, float64(len(files)))
	return nil
}

// statusKiB reads a line such as "RssAnon:	  5120 kB" of /proc/PID/status.
func statusKiB(text, key string) (float64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return v, err == nil
		}
	}
	return 0, false
}

// growth is what the second half added: the median of the last quarter above that of the second.
func (o ownCost) growth() (memory, files float64) {
	grown := func(v []float64) float64 {
		q := len(v) / 4
		return result.Median(v[len(v)-q:]) - result.Median(v[q:2*q])
	}
	return grown(o.memory), grown(o.files)
}

// last are the medians of the last quarter.
func (o ownCost) last() (memory, files float64) {
	q := len(o.memory) / 4
	return result.Median(o.memory[len(o.memory)-q:]), result.Median(o.files[len(o.files)-q:])
}

// complaintsOf are the lines of a log that are warnings or worse.
func complaintsOf(lines []string) (out []string) {
	for _, l := range lines {
		var said struct {
			Level string `json:"level"`
		}
		if json.Unmarshal([]byte(l), &said) != nil || said.Level != "info" && said.Level != "debug" {
			out = append(out, l)
		}
	}
	return out
}

// longestGap is the longest time from start or one tick to the next, by when its first decision came.
func longestGap(all map[string][]guest.Decision, start time.Time) time.Duration {
	first := map[int64]time.Time{}
	for _, list := range all {
		for _, d := range list {
			if at, ok := first[d.Tick]; !ok || d.Heard.Before(at) {
				first[d.Tick] = d.Heard
			}
		}
	}
	times := make([]time.Time, 0, len(first))
	for _, at := range first {
		times = append(times, at)
	}
	sort.Slice(times, func(i, j int) bool { return times[i].Before(times[j]) })
	var longest time.Duration
	for _, at := range times {
		if at.After(start) {
			longest = max(longest, at.Sub(start))
			start = at
		}
	}
	return longest
}

func checkChurn(runs []result.Run) []result.Check {
	actions := func(r result.Run) float64 {
		if r.AgentStats == nil {
			return 0
		}
		return float64(r.AgentStats.Actions)
	}
	ended := func(r result.Run) float64 {
		if r.AgentStats == nil {
			return math.NaN()
		}
		return float64(r.AgentStats.StopMS) / 1000
	}
	return []result.Check{
		least("came and went", runs, fact("replaced"), churnLeast, "cgroups"),
		least("gone and still charged", runs, fact("dying_most"), churnDying, "cgroups at a time, or none left memory behind"),
		least("lent to", runs, fact("lent_to"), 1, "cgroups, or there was no limit to mix up"),
		least("requests", runs, actions, 1, ", or nothing was reclaimed from those that went"),
		most("settings not as they were", runs, fact("wrong_knobs"), 0, "in cgroups that live at the end"),
		most("somebody else's limit", runs, fact("strange_values"), 0, "looks at a value that nobody may have set there"),
		most("complaints", runs, fact("complaints"), 0, "warnings and errors in the agent's log"),
		most("time without a tick", runs, fact("tick_gap_seconds"), churnGap, "s"),
		most("end", runs, ended, churnEnd, "s after SIGTERM, with all put back"),
		most("memory growth", runs, fact("memory_growth_mib"), churnMemory, "MiB from the second to the last quarter"),
		most("open files growth", runs, fact("open_growth"), churnOpen, "from the second to the last quarter"),
	}
}
