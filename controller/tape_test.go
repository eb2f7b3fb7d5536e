package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

func fieldsOf(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		names = append(names, f.Name)
	}
	return names
}

// What is added to an input and not recorded makes replays differ from their
// runs, and only where it matters.
func TestAllThatACoreTakesInIsOnTheTape(t *testing.T) {
	for _, c := range []struct {
		of   reflect.Type
		have []string
	}{
		{reflect.TypeFor[Observation](), []string{"ID", "Sample", "Err", "Current", "Ages", "AgesErr", "ParentMems", "ParentErr"}},
		{reflect.TypeFor[Result](), []string{"Request", "Outcome", "Took", "Err", "Set", "Undone"}},
		{reflect.TypeFor[Request](), []string{"Reclaim", "Age", "Setting"}},
		{reflect.TypeFor[container.Description](), []string{"ID", "Runtime", "Inner", "Pod", "Name", "Annotations", "Swappiness", "Limit", "Reservation", "Mems", "Faults"}},
		{reflect.TypeFor[journal.Result](), []string{"Outcome", "Found", "Owner", "Now", "Until", "InFlight"}},
	} {
		if got := fieldsOf(c.of); !slices.Equal(got, c.have) {
			t.Errorf("%v has the fields %v: those that are not in %v must be recorded (tape.go), played (player.go) and added here", c.of, got, c.have)
		}
	}
	var methods []string
	core := reflect.TypeFor[*Core]()
	for m := range core.Methods() {
		methods = append(methods, m.Name)
	}
	known := []string{
		"CameBack", "DescribeBy", "DrawFrom", "Heard", "Reconfigure", "RecordTo", "Rest", "SeeHost", "Step", "Track", "Unheard", // recorded, or played along
		"Due", "NextWake", "Resting", "Surplus", "Unwatched", "WantsAges", "WantsParent", "Woken", // asked only
	}
	for _, m := range methods {
		if !slices.Contains(known, m) {
			t.Errorf("Core.%s: if decisions depend on it having been called, it must be recorded; then name it here", m)
		}
	}
}

func TestAResultComesBackFromTheTapeAsItWas(t *testing.T) {
	started := time.Unix(1000, 0)
	for _, d := range []Result{
		{Request: Request{Reclaim: memcg.Reclaim{Cgroup: id("/a"), Bytes: 4096}}, Outcome: memcg.Outcome{Reclaimed: memcg.Value(1), Err: fmt.Errorf("x: %w", memcg.ErrPartial)}},
		{Request: Request{Age: true}, Took: time.Second, Err: memcg.ErrDenied},
		{Request: Request{Setting: Setting{Cgroup: id("/a"), Knob: memcg.KnobHigh, Value: "4096", Why: "why"}}, Set: journal.Result{
			Outcome: journal.Waiting, Owner: journal.Foreign, Found: "1", Now: "2", Until: started.Add(7 * time.Second), InFlight: true,
		}},
		{Err: fmt.Errorf("set: %w", journal.ErrNotGranted)},
		{Err: &journal.Error{Op: "write", File: "/x", Err: fmt.Errorf("%w: %w", journal.ErrFull, memcg.ErrDenied)}},
		{Undone: journal.Undone{How: journal.Restored, Now: "max", InFlight: true, Entry: journal.Entry{Before: "max"}}},
	} {
		tape := &tape{started: started}
		kept := tape.result(&d)
		got := replayed(&kept, started)
		sameError := cmp.Comparer(func(a, b error) bool {
			if a == nil || b == nil {
				return a == b
			}
			for _, kind := range []error{memcg.ErrPartial, memcg.ErrDenied, memcg.ErrGone, journal.ErrNotGranted} {
				if errors.Is(a, kind) != errors.Is(b, kind) {
					return false
				}
			}
			return a.Error() == b.Error() && journalTrouble(a) == journalTrouble(b)
		})
		if diff := cmp.Diff(d, got, sameError, cmpopts.EquateComparable(memcg.Field{}, memcg.NodeMask{}, memcg.Swappiness{})); diff != "" {
			t.Errorf("(-was +came back):\n%s", diff)
		}
	}
}
