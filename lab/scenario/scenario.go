// Package scenario holds the lab's experiments, one file each: what is set up in a guest, what is
// measured there, and which sentences are held against the measurements afterwards.
package scenario

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
)

// Scenario is one experiment.
type Scenario struct {
	Name  string
	About string
	// Law is the law the agent is told to follow unless another is asked for.
	Law string
	// Topology is the machine it is made for.
	Topology string
	// Files are on the guest's data disk. Without any there is no disk.
	Files []disk.File
	// BytesPerSecond and IOPS limit the disk; 0 does not.
	BytesPerSecond, IOPS int64
	// Build names the build of memagent that the scenario needs, by its build tag; empty is the
	// ordinary one.
	Build string
	// Host says that it needs a container host, with memagent's packages: no bare kernel with memagent
	// beside it. There is no data disk then.
	Host bool
	// Suite says that the scenario holds with the agent as it is, and belongs to what must stay
	// so. The others are experiments whose checks do not all hold yet.
	Suite bool
	// Alone says that all checks are about runs with the agent: the suite and the matrix make no
	// others unless they are told to.
	Alone bool
	// Counted says that throughput is what is compared, which only a guest's clock of instructions
	// tells apart from how busy the host is.
	Counted bool
	// Within is how long a guest may take from its hello to the end.
	Within func(short bool) time.Duration
	// Run sets up and measures, in the guest.
	Run func(ctx context.Context, g *guest.Guest) (result.Run, error)
	// Checks judges all runs, on the host. A check that needs runs that are not there is skipped
	// with the reason.
	Checks func(runs []result.Run) []result.Check
	// Table is what is worth a look beside the checks, for people; nil where they say it all.
	Table func(runs []result.Run) string
}

// all are the scenarios there are.
var all = []Scenario{squeeze, observe, fileThrash, stream, memoryQoS, swappiness, hotCold, hotColdLend, zipf, nodeImbalance, build, swapInsanity, tiered, cacheLend, crash, reloadFight, churn, host}

// All returns the scenarios, sorted by name.
func All() []Scenario {
	out := append([]Scenario(nil), all...)
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Suite returns the scenarios whose checks are to hold, sorted by name.
func Suite() []Scenario {
	var out []Scenario
	for _, s := range All() {
		if s.Suite {
			out = append(out, s)
		}
	}
	return out
}

// Comparisons returns the scenarios whose measurements are worth comparing between kernels and runs,
// sorted by name: all but those of a container host, where things hold or do not.
func Comparisons() []Scenario {
	return slices.DeleteFunc(All(), func(s Scenario) bool { return s.Host })
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, error) {
	names := make([]string, 0, len(all))
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("no scenario %q; there are: %s", name, strings.Join(names, ", "))
}

const mib = 1 << 20

// setUpWithin is how long a workload may take to allocate and touch what it needs: seconds on an
// idle machine, more on a busy one without KVM.
const setUpWithin = 2 * time.Minute

// JobName is the guest's job that runs a scenario.
const JobName = "scenario"

// Job runs the scenario the Spec names and sends what it measured.
func Job(ctx context.Context, g *guest.Guest) (int, error) {
	s, err := Find(g.Spec.Scenario)
	if err != nil {
		return 0, err
	}
	run, err := s.Run(ctx, g)
	if err != nil {
		return 0, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	run.Agent = g.Spec.Agent
	g.Send(protocol.Message{Run: &run})
	return 0, nil
}

// form is what a scenario takes in its short form, or in its long one.
func form[T any](short bool, inShort, inLong T) T {
	if short {
		return inShort
	}
	return inLong
}

// law is the law of a run: what was asked for, else the scenario's own.
func law(g *guest.Guest, own string) string {
	if g.Spec.Law != "" {
		return g.Spec.Law
	}
	return own
}
