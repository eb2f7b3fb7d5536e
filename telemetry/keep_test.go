package telemetry

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/memcg"
)

func fullRecord() *Record {
	return &Record{
		Verdict: "idle", Because: []memcg.Term{{Name: "pressure", Known: true}}, Nodes: []NodeUse{{Node: 1, Anon: memcg.Value(1)}},
		Done:     &memcg.Outcome{Asked: 1, Nodes: []memcg.NodeOutcome{{Node: 1}}},
		Draw:     &Draw{Node: 1, Weights: []NodeWeight{{1, 2}}},
		Settings: []Setting{{Knob: memcg.KnobHigh, Value: "1"}},
	}
}

func TestACopyOfARecordSharesNothingWithIt(t *testing.T) {
	original, copied := fullRecord(), &Record{}
	copied.CopyFrom(original)
	same := cmp.AllowUnexported(memcg.Field{}, memcg.Swappiness{}, memcg.NodeMask{})
	if diff := cmp.Diff(original, copied, same); diff != "" {
		t.Fatalf("the copy differs (-original +copy):\n%s", diff)
	}
	original.Because[0].Name, original.Nodes[0].Node, original.Settings[0].Value = "x", 9, "x"
	original.Done.Asked, original.Done.Nodes[0].Node, original.Draw.Node, original.Draw.Weights[0].Weight = 9, 9, 9, 9
	if diff := cmp.Diff(fullRecord(), copied, same); diff != "" {
		t.Errorf("the copy changed with the original (-want +copy):\n%s", diff)
	}
}

func TestAnEmptyRecordLeavesNothingOfTheOneBefore(t *testing.T) {
	kept := &Record{}
	kept.CopyFrom(fullRecord())
	kept.CopyFrom(&Record{})
	if len(kept.Because)+len(kept.Nodes)+len(kept.Settings) != 0 || kept.Done != nil || kept.Draw != nil || kept.Verdict != "" {
		t.Errorf("left: %+v", kept)
	}
}

func TestCopyingARecordAgainAllocatesNothing(t *testing.T) {
	original, kept := fullRecord(), &Record{}
	kept.CopyFrom(original)
	if n := testing.AllocsPerRun(100, func() { kept.CopyFrom(original) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
