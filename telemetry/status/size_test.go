package status

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// boardBudget is what a board over ten thousand cgroups on eight nodes may
// take, of 64 MiB for the whole process; 12.8 MiB when this was written. Raise
// it in the change that needs it, with the reason.
const boardBudget = 15 << 20

func TestABoardOverTenThousandCgroupsKeepsWithinItsMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b := testBoard()
	for round := range 3 {
		for i := range 10_000 {
			r := finished(fmt.Sprintf("/kubepods.slice/job-%d.scope", i), uint64(i), round)
			r.Want, r.Acted, r.Nodes = 4096, true, nil
			for n := range 8 {
				r.Nodes = append(r.Nodes, telemetry.NodeUse{Node: memcg.NodeID(n), Anon: memcg.Value(1), File: memcg.Value(1)})
			}
			for len(r.Because) < 10 {
				r.Because = append(r.Because, memcg.Term{Name: "x"})
			}
			b.Record(r)
		}
	}
	used := heap() - before
	t.Logf("%.1f MiB", float64(used)/(1<<20))
	if used > boardBudget {
		t.Errorf("%d bytes, want at most %d", used, boardBudget)
	}
	runtime.KeepAlive(b)
}
