package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Kept is a result of one run that is kept for later tables.
type Kept struct {
	// At is when the run ended.
	At time.Time `json:"at"`
	// LRUAsked is "classic", "mglru", or empty where the kernel's own was asked for.
	LRUAsked string `json:"lru_asked"`
	// Build says which memagent ran; empty in a run without.
	Build string `json:"build,omitempty"`
	Result
}

// Cell is what two runs must have in common for their median to mean something. Without the agent
// neither its law nor its build make a difference, and both are empty.
type Cell struct {
	Scenario, Kernel, Topology, LRU, Accel string
	Agent, Law, Build                      string
	Short                                  bool
}

// Cell is the cell a kept run belongs to, by the LRU that the guest had.
func (k Kept) Cell() Cell {
	c := Cell{Scenario: k.Scenario, Kernel: k.Kernel, Topology: k.Topology, LRU: k.LRU, Accel: k.Accel, Agent: k.Runs[0].Agent, Short: k.Short}
	if c.Agent != "off" {
		c.Law, c.Build = k.Law, k.Build
	}
	return c
}

// Store is a folder of kept runs, a file each, so that one which was cut short costs no other.
type Store struct{ Dir string }

// errNotOne is returned for what is not the result of one run.
var errNotOne = errors.New("it is not the result of one run")

// Add keeps a run. The texts of its artifacts are left out.
func (s Store) Add(k Kept) error {
	if len(k.Runs) != 1 {
		return fmt.Errorf("keeping a result of %s: %w", k.Scenario, errNotOne)
	}
	k.Runs = []Run{k.Runs[0]}
	k.Runs[0].Artifacts = nil
	raw, err := json.Marshal(k)
	if err == nil {
		err = os.MkdirAll(s.Dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("keeping a result of %s: %w", k.Scenario, err)
	}
	name := fmt.Sprintf("%s_%s_%s_%s", k.Scenario, k.Kernel, k.Runs[0].Agent, k.At.UTC().Format("20060102T150405.000000000"))
	// The file has its name only once it is whole.
	whole, part := filepath.Join(s.Dir, name+".json"), filepath.Join(s.Dir, name+".part")
	if err := os.WriteFile(part, raw, 0o644); err != nil {
		return fmt.Errorf("keeping a result of %s: %w", k.Scenario, err)
	}
	if err := os.Rename(part, whole); err != nil {
		return fmt.Errorf("keeping a result of %s: %w", k.Scenario, err)
	}
	return nil
}

// Load returns all kept runs, oldest first. The error is for files that could not be read; the runs
// of the others are returned beside it.
func (s Store) Load() ([]Kept, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading kept results: %w", err)
	}
	var out []Kept
	var broken []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		k, err := load(filepath.Join(s.Dir, e.Name()))
		if err != nil {
			broken = append(broken, fmt.Errorf("reading a kept result: %w; remove the file to make that run again", err))
			continue
		}
		out = append(out, k)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out, errors.Join(broken...)
}

func load(path string) (Kept, error) {
	var k Kept
	raw, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(raw, &k); err != nil {
		return k, fmt.Errorf("%s: %w", path, err)
	}
	if len(k.Runs) != 1 {
		return k, fmt.Errorf("%s: %w", path, errNotOne)
	}
	return k, nil
}
