package counters

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// NodeDir is where the kernel keeps what it tells of NUMA nodes.
const NodeDir = "/sys/devices/system/node"

// Node is one moment of a NUMA node, of all that is on it.
type Node struct {
	Total, Free uint64 // bytes
	Stat        Flat   // the node's vmstat, in pages and events
}

// TakeNode reads the counters of the node with that id.
func TakeNode(id int) (Node, error) {
	var n Node
	dir := filepath.Join(NodeDir, "node"+strconv.Itoa(id))
	info, err := os.ReadFile(filepath.Join(dir, "meminfo"))
	if err != nil {
		return n, fmt.Errorf("reading a node's counters: %w", err)
	}
	stat, err := os.ReadFile(filepath.Join(dir, "vmstat"))
	if err != nil {
		return n, fmt.Errorf("reading a node's counters: %w", err)
	}
	if n.Total, n.Free, err = ParseNodeMeminfo(string(info)); err != nil {
		return n, fmt.Errorf("reading %s/meminfo: %w", dir, err)
	}
	n.Stat = ParseFlat(string(stat))
	return n, nil
}

// ParseNodeMeminfo reads the lines "Node 0 MemTotal: 1024 kB" and MemFree of a node's meminfo, in bytes.
func ParseNodeMeminfo(text string) (total, free uint64, err error) {
	values := map[string]uint64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] != "Node" || f[4] != "kB" {
			continue
		}
		if v, err := strconv.ParseUint(f[3], 10, 64); err == nil {
			values[f[2]] = v << 10
		}
	}
	total, hasTotal := values["MemTotal:"]
	free, hasFree := values["MemFree:"]
	if !hasTotal || !hasFree {
		return 0, 0, fmt.Errorf("no MemTotal or no MemFree in %q", text)
	}
	return total, free, nil
}
