package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

func TestDecisionLogLine(t *testing.T) {
	var out bytes.Buffer
	r := Record{
		Time: time.Unix(1000, 0).UTC(), Tick: 7, Cgroup: memcg.ID{Path: "/a", Inode: 12}, Policy: "batch", Mode: Enforce,
		Law: "tmo", Verdict: "idle", Rule: "squeeze-tmo", Current: memcg.Value(4096), Anon: memcg.Value(0),
		File: memcg.Absent(memcg.Unsupported), Swap: memcg.Value(1), RefaultAnon: memcg.Value(2), RefaultFile: memcg.Field{},
		Stall: memcg.Value(3), Elapsed: time.Second, Want: 8192, Swappiness: memcg.SwappinessOf(0), Floor: 1024, Acted: true,
		Because: []memcg.Term{{Name: "pressure", Value: 0.5, Unit: "%", Known: true}, {Name: "cost", Unit: "us/s"}},
		Done:    &memcg.Outcome{Request: memcg.Reclaim{Bytes: 8192}, Asked: 4096, Writes: 1, Via: memcg.ViaReclaim, Reclaimed: memcg.Value(4096), Took: time.Millisecond},
	}
	DecisionLog{zerolog.New(&out)}.Record(&r)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	want := map[string]any{
		"level": "info", "message": "decision", "time": "1970-01-01T00:16:40Z", "tick": 7.0, "cgroup": "/a", "inode": 12.0,
		"policy": "batch", "mode": "enforce", "text": r.Describe(), "law": "tmo", "verdict": "idle", "rule": "squeeze-tmo",
		"current": 4096.0, "anon": 0.0, "file": nil, "swap": 1.0, "refault_anon": 2.0, "refault_file": nil, "stall_us": 3.0,
		"elapsed_us": 1e6, "want": 8192.0, "swappiness": "0", "floor": 1024.0, "acted": true,
		"because": []any{
			map[string]any{"name": "pressure", "value": 0.5, "unit": "%"},
			map[string]any{"name": "cost", "value": nil, "unit": "us/s"},
		},
		"outcome": map[string]any{
			"requested": 8192.0, "via": "memory.reclaim", "asked": 4096.0, "writes": 1.0, "took_us": 1000.0,
			"reclaimed": 4096.0, "shrunk": nil, "swapout": nil, "demoted": nil,
		},
		"absent": map[string]any{"file": "unsupported", "refault_file": "missing"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestDecisionLogOfACgroupThatCannotBeReadHasTheErrorAndNoFigures(t *testing.T) {
	var out bytes.Buffer
	DecisionLog{zerolog.New(&out)}.Record(&Record{Cgroup: memcg.ID{Path: "/a"}, Err: errors.New("open /a/memory.stat: denied")})
	line := out.String()
	if !strings.Contains(line, `"error":"open /a/memory.stat: denied"`) || strings.Contains(line, `"current"`) {
		t.Errorf("got %s", line)
	}
}

func TestANoticeIsSaidOnceUntilItClears(t *testing.T) {
	var out bytes.Buffer
	n := Notices{Logger: zerolog.New(&out)}
	n.Warn("scan", errors.New("denied"), "part of the tree could not be listed")
	n.Warn("scan", errors.New("denied"), "part of the tree could not be listed")
	n.Warn("host", nil, "no swap")
	n.Clear("scan", "the tree can be listed again")
	n.Clear("scan", "the tree can be listed again")
	n.Clear("never said", "nothing to say")
	n.Warn("scan", nil, "again")
	n.Forget("host")
	want := []string{
		`{"level":"warn","notice":"scan","error":"denied","message":"part of the tree could not be listed"}`,
		`{"level":"warn","notice":"host","message":"no swap"}`,
		`{"level":"info","notice":"scan","repeats":1,"message":"the tree can be listed again"}`,
		`{"level":"warn","notice":"scan","message":"again"}`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestNoticesAreBounded(t *testing.T) {
	var out bytes.Buffer
	n := Notices{Logger: zerolog.New(&out)}
	for i := range maxNotices + 100 {
		n.Warn(fmt.Sprint("cgroup ", i), nil, "trouble")
	}
	if lines := strings.Count(out.String(), "\n"); lines != maxNotices+1 {
		t.Errorf("%d lines, want %d and one that says there are more", lines, maxNotices)
	}
	if len(n.said) != maxNotices {
		t.Errorf("remembers %d", len(n.said))
	}
}
