// Package topology holds the NUMA machines the lab can boot, as data.
//
// A topology says which nodes exist, how much memory and which CPUs each has and,
// where it matters, how far they are from each other. It knows nothing of QEMU.
package topology

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/docker/go-units"
)

// Default names the topology used when none is asked for.
const Default = "quad"

// maxNodes is the number of NUMA nodes QEMU can describe (its MAX_NODES).
const maxNodes = 128

// localDistance is the SLIT distance of a node to itself, fixed by ACPI.
const localDistance = 10

// Node is one NUMA node of a guest.
type Node struct {
	// ID is the node's number as the guest sees it.
	ID int `json:"id"`
	// Memory is a size such as "512MiB"; empty for a node without memory.
	Memory string `json:"memory,omitempty"`
	// CPUs are the numbers of the CPUs on the node; empty for a node without one.
	CPUs []int `json:"cpus,omitempty"`
	// LatencyNS, in nanoseconds, and Bandwidth, a size that passes in a second, are what the
	// firmware says of access to the node's memory from any CPU. Kernels make tiers of them. Either
	// all nodes with memory have both, or none has any and the firmware says nothing.
	LatencyNS int    `json:"latency_ns,omitempty"`
	Bandwidth string `json:"bandwidth,omitempty"`

	bytes, perSecond int64
}

// Bytes is the node's memory in bytes, 0 for a node without memory.
func (n Node) Bytes() int64 { return n.bytes }

// BytesPerSecond is the node's bandwidth, 0 where the firmware says nothing.
func (n Node) BytesPerSecond() int64 { return n.perSecond }

// Topology is one machine.
type Topology struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Nodes []Node `json:"nodes"`
	// Distances is the SLIT, row by row in the order of Nodes; empty leaves it to QEMU.
	Distances [][]int `json:"distances,omitempty"`
}

// Tiered says whether the firmware tells how fast each node's memory is.
func (t Topology) Tiered() bool {
	for _, n := range t.Nodes {
		if n.LatencyNS > 0 {
			return true
		}
	}
	return false
}

// Memory is the memory of all nodes in bytes.
func (t Topology) Memory() int64 {
	var sum int64
	for _, n := range t.Nodes {
		sum += n.bytes
	}
	return sum
}

// CPUs is the number of CPUs on all nodes.
func (t Topology) CPUs() int {
	sum := 0
	for _, n := range t.Nodes {
		sum += len(n.CPUs)
	}
	return sum
}

//go:embed data/*.json
var data embed.FS

// Names lists the topologies that ship with the lab, sorted.
func Names() []string {
	files, err := fs.Glob(data, "data/*.json")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".json"))
	}
	sort.Strings(names)
	return names
}

// Load returns the topology of that name.
func Load(name string) (Topology, error) {
	file := "data/" + name + ".json"
	raw, err := data.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Topology{}, fmt.Errorf("no topology %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return Topology{}, fmt.Errorf("reading topology %q: %w", name, err)
	}
	t, err := Parse(raw)
	if err != nil {
		return Topology{}, fmt.Errorf("topology %q: %w", name, err)
	}
	return t, nil
}

// Parse reads one topology and checks it. Unknown keys are errors.
func Parse(raw []byte) (Topology, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var t Topology
	if err := dec.Decode(&t); err != nil {
		return Topology{}, fmt.Errorf("parsing: %w", err)
	}
	if err := t.validate(); err != nil {
		return Topology{}, err
	}
	return t, nil
}

// validate fills in the sizes and refuses a machine QEMU or a kernel could not be.
func (t *Topology) validate() error {
	if t.Name == "" {
		return errors.New("no name")
	}
	if len(t.Nodes) == 0 {
		return errors.New("no nodes: a machine needs at least one")
	}
	seenNode, seenCPU := map[int]bool{}, map[int]bool{}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.ID < 0 || n.ID >= maxNodes {
			return fmt.Errorf("node %d: the id must be 0..%d", n.ID, maxNodes-1)
		}
		if seenNode[n.ID] {
			return fmt.Errorf("node %d is there twice", n.ID)
		}
		seenNode[n.ID] = true
		if n.Memory == "" && len(n.CPUs) == 0 {
			return fmt.Errorf("node %d has neither memory nor a CPU", n.ID)
		}
		if n.Memory != "" {
			b, err := units.RAMInBytes(n.Memory)
			if err != nil {
				return fmt.Errorf("node %d: memory %q: %w", n.ID, n.Memory, err)
			}
			if b <= 0 || b%(1<<20) != 0 {
				return fmt.Errorf("node %d: memory %q must be a positive number of whole MiB", n.ID, n.Memory)
			}
			n.bytes = b
		}
		for _, c := range n.CPUs {
			if seenCPU[c] {
				return fmt.Errorf("node %d: CPU %d is on another node too", n.ID, c)
			}
			seenCPU[c] = true
		}
	}
	if t.Memory() == 0 {
		return errors.New("no node has memory")
	}
	for c := range t.CPUs() {
		if !seenCPU[c] {
			return fmt.Errorf("CPUs must be numbered 0..%d without a gap, and %d is missing", t.CPUs()-1, c)
		}
	}
	if t.CPUs() == 0 {
		return errors.New("no node has a CPU")
	}
	if err := t.validateSpeeds(); err != nil {
		return err
	}
	return t.validateDistances()
}

// validateSpeeds fills in the bandwidths and refuses tables that tell only a part.
func (t *Topology) validateSpeeds() error {
	tiered := t.Tiered()
	for i := range t.Nodes {
		n := &t.Nodes[i]
		told := n.LatencyNS != 0 || n.Bandwidth != ""
		switch {
		case n.LatencyNS < 0:
			return fmt.Errorf("node %d: a latency of %d ns is negative", n.ID, n.LatencyNS)
		case told && n.bytes == 0:
			return fmt.Errorf("node %d: a node without memory has no latency and no bandwidth", n.ID)
		case n.bytes > 0 && tiered && (n.LatencyNS == 0 || n.Bandwidth == ""),
			told && !tiered:
			return fmt.Errorf("node %d: latency and bandwidth must be given together, for every node with memory or for none", n.ID)
		}
		if n.Bandwidth == "" {
			continue
		}
		b, err := units.RAMInBytes(n.Bandwidth)
		if err != nil {
			return fmt.Errorf("node %d: bandwidth %q: %w", n.ID, n.Bandwidth, err)
		}
		if b <= 0 || b%(1<<20) != 0 {
			return fmt.Errorf("node %d: bandwidth %q must be a positive number of whole MiB a second", n.ID, n.Bandwidth)
		}
		n.perSecond = b
	}
	return nil
}

func (t *Topology) validateDistances() error {
	if len(t.Distances) == 0 {
		return nil
	}
	if len(t.Distances) != len(t.Nodes) {
		return fmt.Errorf("distances has %d rows for %d nodes", len(t.Distances), len(t.Nodes))
	}
	for i, row := range t.Distances {
		if len(row) != len(t.Nodes) {
			return fmt.Errorf("distances row %d has %d columns for %d nodes", i, len(row), len(t.Nodes))
		}
		for j, d := range row {
			if i == j && d != localDistance {
				return fmt.Errorf("distances row %d: a node is %d from itself, not %d", i, localDistance, d)
			}
			if i != j && (d <= localDistance || d > 255) {
				return fmt.Errorf("distances row %d column %d: %d is not within %d..255", i, j, d, localDistance+1)
			}
		}
	}
	return nil
}
