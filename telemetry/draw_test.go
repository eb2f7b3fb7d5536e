package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

func TestWhereMemoryIsToComeFromIsSaidInWords(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"a node was drawn": {
			func(r *Record) { r.Draw = &Draw{Node: 8, Weight: 300, Total: 400, Entries: 2} },
			"idle at 512 MiB: reclaim 5 MiB from node 8 alone (weight 300 of 400 among 2 nodes) (headroom)",
		},
		"a cgroup was drawn to give on a short node": {
			func(r *Record) { r.Rule, r.Draw = "node-short", &Draw{Short: true, Weight: 3, Total: 3, Entries: 1} },
			"idle at 512 MiB: reclaim 5 MiB from node 0 alone (weight 3 of 3 among 1 cgroups) (node-short)",
		},
		"its nodes change": {
			func(r *Record) { r.Want, r.Mems = 0, Mems{Rule: "avoid-short", Want: "1,3", Moves: 1 << 30} },
			"idle at 512 MiB: leave it alone (headroom); use nodes 1,3 from now on (avoid-short), which moves up to 1 GiB",
		},
		"its nodes would change": {
			func(r *Record) {
				r.Want, r.Mems = 0, Mems{Rule: "avoid-short", Want: "1", Moves: 1 << 30, Held: "observe mode"}
			},
			"idle at 512 MiB: leave it alone (headroom); would use nodes 1 (avoid-short); held back: observe mode",
		},
		"only its operator can help": {
			func(r *Record) { r.Want, r.Mems = 0, Mems{Rule: "every-node-short", Widen: "2"} },
			"idle at 512 MiB: leave it alone (headroom); its nodes are short, and cpuset.mems keeps it from nodes 2, which have room",
		},
	} {
		r := Record{Verdict: "idle", Rule: "headroom", Current: memcg.Value(512 << 20), Want: 5 << 20, Acted: true}
		c.change(&r)
		if diff := cmp.Diff(c.want, r.Describe()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestADrawIsLoggedSoThatItCanBeChecked(t *testing.T) {
	var out bytes.Buffer
	DecisionLog{Logger: zerolog.New(&out)}.Record(&Record{
		NodeRule: "drawn", Mems: Mems{Rule: "equal-set"},
		Draw: &Draw{Node: 8, Weight: 300, Total: 400, Ticket: 12000, Tickets: 65372, Entries: 2, Weights: []NodeWeight{{0, 100}, {8, 300}}},
	})
	for _, want := range []string{
		`"node_rule":"drawn"`, `"mems":{"rule":"equal-set"}`,
		`"draw":{"node":8,"short":false,"weight":300,"total":400,"ticket":12000,"tickets":65372,"entries":2,"weights":[{"node":0,"weight":100},{"node":8,"weight":300}]}`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	if !json.Valid(out.Bytes()) {
		t.Errorf("not JSON: %s", out.String())
	}
}
