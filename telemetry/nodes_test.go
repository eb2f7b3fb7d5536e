package telemetry

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

func TestAnOutcomeTellsNodesAndWhyABetterWayWasNotTaken(t *testing.T) {
	o := memcg.Outcome{
		Request: memcg.Reclaim{Bytes: 8 << 20, Nodes: memcg.NodesOf(0, 8)}, Via: memcg.ViaDAMON, Refused: errors.New("lockdown is integrity"),
		Reclaimed: memcg.Value(0), Shrunk: memcg.Value(4 << 20), Took: time.Second,
		Nodes: []memcg.NodeOutcome{{Node: 8, Anon: memcg.Value(0), File: memcg.Value(4 << 20), Reclaimed: memcg.Absent(memcg.Unsupported)}},
	}
	if got, want := DescribeOutcome(&o), "took 4 MiB of 8 MiB on nodes 0,8 in 1s, through damon since lockdown is integrity"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var out bytes.Buffer
	DecisionLog{zerolog.New(&out)}.Record(&Record{Done: &o})
	for _, want := range []string{`"nodes":"0,8"`, `"by_node":[{"node":8,"anon":0,"file":4194304,"reclaimed":null}]`, `"refused":"lockdown is integrity"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}
