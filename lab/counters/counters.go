// Package counters reads the kernel's memory counters in a guest. It is the lab's own reader,
// apart from the agent's, so that the evidence does not come from what is being tested.
package counters

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/memagent/memagent/lab/result"
)

// Flat is a file of "key value" lines, such as memory.stat or /proc/vmstat.
type Flat map[string]uint64

// ParseFlat reads "key value" lines. Lines of another form are left out.
func ParseFlat(text string) Flat {
	f := Flat{}
	for _, line := range strings.Split(text, "\n") {
		k, v, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64); err == nil {
			f[k] = n
		}
	}
	return f
}

// Numa is memory.numa_stat: key, then node id, then value.
type Numa map[string]map[string]uint64

// ParseNuma reads lines such as "anon N0=4096 N1=0".
func ParseNuma(text string) Numa {
	out := Numa{}
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		row := map[string]uint64{}
		for _, kv := range f[1:] {
			node, v, ok := strings.Cut(kv, "=")
			id, isNode := strings.CutPrefix(node, "N")
			n, err := strconv.ParseUint(v, 10, 64)
			if ok && isNode && err == nil {
				row[id] = n
			}
		}
		out[f[0]] = row
	}
	return out
}

// ParsePSI reads a pressure file: the total stall times in microseconds.
func ParsePSI(text string) (some, full uint64, err error) {
	seen := false
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		total, ok := strings.CutPrefix(f[len(f)-1], "total=")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(total, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("pressure line %q: %w", line, err)
		}
		switch f[0] {
		case "some":
			some, seen = n, true
		case "full":
			full = n
		}
	}
	if !seen {
		return 0, 0, fmt.Errorf("no \"some\" line in pressure %q", text)
	}
	return some, full, nil
}

// Snapshot is one moment of a cgroup, and of the host it is on.
type Snapshot struct {
	Current, Swap  uint64 // bytes
	Stat           Flat
	Numa           Numa
	PSISome        uint64 // microseconds
	PSIFull        uint64 // microseconds
	Host           Flat   // /proc/vmstat
	hostSwapCounts bool
}

// Take reads the counters of the cgroup in dir and those of the host in /proc/vmstat.
func Take(dir string) (Snapshot, error) {
	var s Snapshot
	texts := map[string]string{}
	for _, name := range []string{"memory.current", "memory.swap.current", "memory.stat", "memory.numa_stat", "memory.pressure"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return s, fmt.Errorf("reading counters: %w", err)
		}
		texts[name] = string(raw)
	}
	raw, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return s, fmt.Errorf("reading counters: %w", err)
	}
	s.Host = ParseFlat(string(raw))
	s.Stat = ParseFlat(texts["memory.stat"])
	s.Numa = ParseNuma(texts["memory.numa_stat"])
	for name, to := range map[string]*uint64{"memory.current": &s.Current, "memory.swap.current": &s.Swap} {
		if *to, err = strconv.ParseUint(strings.TrimSpace(texts[name]), 10, 64); err != nil {
			return s, fmt.Errorf("reading %s of %s: %w", name, dir, err)
		}
	}
	if s.PSISome, s.PSIFull, err = ParsePSI(texts["memory.pressure"]); err != nil {
		return s, fmt.Errorf("reading memory.pressure of %s: %w", dir, err)
	}
	_, has := s.Stat["pswpin"]
	s.hostSwapCounts = !has
	return s, nil
}

// Resident is the memory of the cgroup's own making, anon and file, in bytes.
func (s Snapshot) Resident() uint64 { return s.Stat["anon"] + s.Stat["file"] }

// Refaults are all refaults so far, in pages.
func (s Snapshot) Refaults() uint64 {
	return s.Stat["workingset_refault_anon"] + s.Stat["workingset_refault_file"]
}

// Since is what happened between two snapshots of one cgroup.
func (s Snapshot) Since(before Snapshot) result.Counters {
	d := func(key string) uint64 { return s.Stat[key] - before.Stat[key] }
	c := result.Counters{
		RefaultFile: d("workingset_refault_file"),
		RefaultAnon: d("workingset_refault_anon"),
		SwapIn:      d("pswpin"),
		SwapOut:     d("pswpout"),
		PgMajFault:  d("pgmajfault"),
		PgScan:      d("pgscan"),
		PgSteal:     d("pgsteal"),
		PSISomeUS:   s.PSISome - before.PSISome,
		PSIFullUS:   s.PSIFull - before.PSIFull,
	}
	if s.hostSwapCounts {
		c.SwapIn = s.Host["pswpin"] - before.Host["pswpin"]
		c.SwapOut = s.Host["pswpout"] - before.Host["pswpout"]
	}
	return c
}

// Nodes is the cgroup's memory on every node, before and after.
func Nodes(before, after Snapshot) map[string]result.Node {
	out := map[string]result.Node{}
	for id := range after.Numa["anon"] {
		out[id] = result.Node{
			AnonBefore: before.Numa["anon"][id], AnonAfter: after.Numa["anon"][id],
			FileBefore: before.Numa["file"][id], FileAfter: after.Numa["file"][id],
		}
	}
	return out
}
