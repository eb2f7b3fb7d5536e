package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

func testBoard() *Board {
	return NewBoard("1.2.3", start, func() telemetry.ConfigState {
		return telemetry.ConfigState{Name: "/etc/memagent/memagent.yaml", Policies: 2, Since: start}
	}, nil)
}

// quietly is a record in which nothing was wanted, of second s of the run.
func quietly(path string, inode uint64, s int) *telemetry.Record {
	return &telemetry.Record{
		Time: start.Add(time.Duration(s) * time.Second), Tick: uint64(s), Cgroup: memcg.ID{Path: path, Inode: inode}, Policy: "batch", Mode: telemetry.Enforce,
		Law: "memagent", Verdict: "idle", Meaning: "The memory is hardly touched; what is not needed can go.", Rule: "squeeze-waits",
		Current: memcg.Value(512 << 20), Anon: memcg.Value(300 << 20), File: memcg.Value(212 << 20), Swap: memcg.Absent(memcg.Unsupported),
		RefaultAnon: memcg.Value(0), RefaultFile: memcg.Value(10), Stall: memcg.Value(5000), Elapsed: 5 * time.Second,
		Cost:    memcg.Term{Name: "refault cost", Value: 0.02, Unit: "%", Known: true},
		Because: []memcg.Term{{Name: "pressure", Value: 0.1, Unit: "%", Known: true}, {Name: "limit", Unit: "bytes"}},
		Nodes:   []telemetry.NodeUse{{Node: 0, Anon: memcg.Value(300 << 20), File: memcg.Value(200 << 20)}, {Node: 2, Anon: memcg.Value(0), File: memcg.Value(12 << 20)}},
	}
}

func wishing(path string, inode uint64, s int) *telemetry.Record {
	r := quietly(path, inode, s)
	r.Rule, r.Want, r.Acted, r.Floor, r.Swappiness = "squeeze", 2<<20, true, 64<<20, memcg.SwappinessOf(60)
	return r
}

func finished(path string, inode uint64, s int) *telemetry.Record {
	r := quietly(path, inode, s)
	r.Done = &memcg.Outcome{Request: memcg.Reclaim{Bytes: 2 << 20}, Via: memcg.ViaReclaim, Reclaimed: memcg.Value(1 << 20), SwapOut: memcg.Value(64 << 10), Took: 21 * time.Millisecond}
	return r
}

func gone(path string, inode uint64, s int) *telemetry.Record {
	return &telemetry.Record{Time: start.Add(time.Duration(s) * time.Second), Cgroup: memcg.ID{Path: path, Inode: inode}, Err: fmt.Errorf("cgroup %s: %w", path, memcg.ErrGone)}
}

func detail(t *testing.T, b *Board, name string) Detail {
	t.Helper()
	d, near, ok := b.Detail(name, start.Add(time.Minute))
	if !ok {
		t.Fatalf("%s is not found, near %q", name, near)
	}
	return d
}

func TestARowIsTheLastLookAndTheLastAction(t *testing.T) {
	b := testBoard()
	b.Record(wishing("/batch/job", 1, 5))
	row := b.Status(start).Cgroups[0]
	if row.Last == nil || row.Last.Text != "taking 2 MiB" {
		t.Errorf("in flight: %+v", row.Last)
	}
	b.Record(finished("/batch/job", 1, 10))
	b.Record(quietly("/batch/job", 1, 15))
	row = b.Status(start).Cgroups[0]
	if row.Last == nil || row.Last.Text != "took 1 MiB of 2 MiB, 64 KiB to swap" || !row.Last.Time.Equal(start.Add(5*time.Second)) {
		t.Errorf("came back: %+v", row.Last)
	}
	if !row.Seen.Equal(start.Add(15*time.Second)) || *row.Current != 512<<20 || *row.Refaults != 2 || *row.Pressure != 0.001 || *row.Cost != 0.0002 || len(row.Nodes) != 2 {
		t.Errorf("%+v", row)
	}
	if row.Swap != nil || row.Absent["swap"] != "unsupported" || row.Lent != nil || row.Absent["lent"] != "missing" {
		t.Errorf("absent: %+v, %v", row, row.Absent)
	}
}

func TestAGlanceMovesTheSizeAndKeepsTheRest(t *testing.T) {
	b := testBoard()
	b.Record(quietly("/a", 1, 5))
	b.Record(&telemetry.Record{Time: start.Add(7 * time.Second), Cgroup: memcg.ID{Path: "/a", Inode: 1}, Policy: "batch", Glance: true,
		Verdict: "idle", Rule: "headroom", Current: memcg.Value(600 << 20), Want: 1 << 20, Held: "observe mode"})
	row := b.Status(start).Cgroups[0]
	if *row.Current != 600<<20 || *row.Anon != 300<<20 || row.Rule != "squeeze-waits" || row.Last.Text != "would take 1 MiB: observe mode" {
		t.Errorf("%+v, %+v", row, row.Last)
	}
}

func TestTroubleWithACgroupShowsAndKeepsWhatWasSeen(t *testing.T) {
	b := testBoard()
	b.Record(quietly("/a", 1, 5))
	b.Record(&telemetry.Record{Time: start, Cgroup: memcg.ID{Path: "/a", Inode: 1}, Policy: "batch", Err: errors.New("reading memory.stat: denied")})
	if row := b.Status(start).Cgroups[0]; row.Error != "reading memory.stat: denied" || row.Verdict != "idle" {
		t.Errorf("%+v", row)
	}
	if d := detail(t, b, "/a"); !strings.Contains(d.Explained[0], "could not be read") || len(d.Past) != 2 {
		t.Errorf("%+v", d)
	}
}

func TestQuietDecisionsAreOneEntrySoThatActionsStayInSight(t *testing.T) {
	b := testBoard()
	b.Record(wishing("/a", 1, 5))
	b.Record(finished("/a", 1, 10))
	for s := range 1000 {
		b.Record(quietly("/a", 1, 15+5*s))
	}
	past := detail(t, b, "/a").Past
	if len(past) != 3 || past[2].Times != 1000 || !past[2].Since.Equal(start.Add(15*time.Second)) || !past[2].Until.Equal(start.Add(5010*time.Second)) {
		t.Errorf("%+v", past)
	}
	var record struct {
		Cgroup, Verdict string
		Outcome         struct{ Reclaimed uint64 }
	}
	if err := json.Unmarshal(past[1].Record, &record); err != nil || record.Cgroup != "/a" || record.Outcome.Reclaimed != 1<<20 {
		t.Errorf("%v, %s", err, past[1].Record)
	}
}

func TestACgroupThatIsGoneCanBeAskedAboutForAWhile(t *testing.T) {
	b := testBoard()
	b.Record(quietly("/a", 1, 5))
	b.Record(gone("/a", 1, 10))
	if n := len(b.Status(start).Cgroups); n != 0 {
		t.Errorf("%d rows", n)
	}
	if d := detail(t, b, "/a"); d.Gone == nil || !d.Gone.Equal(start.Add(10*time.Second)) || d.Cgroup.Inode != 1 {
		t.Errorf("%+v", d)
	}
	b.Record(quietly("/a", 2, 15)) // another one
	if d := detail(t, b, "/a"); d.Gone != nil || d.Cgroup.Inode != 2 || len(d.Past) != 1 {
		t.Errorf("the successor: %+v", d)
	}
	for i := range 2 * MaxGone {
		path := fmt.Sprint("/job-", i)
		b.Record(quietly(path, 1, 20))
		b.Record(gone(path, 1, 25))
	}
	if len(b.gone) != MaxGone {
		t.Errorf("%d are remembered", len(b.gone))
	}
}

func TestACgroupIsFoundByWhatPeopleType(t *testing.T) {
	b := testBoard()
	for i, path := range []string{"/system.slice/nginx.service", "/system.slice/nginx.service/worker", "/batch/job-1", "/batch/job-2", "/user.slice/job-1", "/system.slice/crun-web.scope/container"} {
		b.Record(quietly(path, uint64(i), 5))
	}
	for name, want := range map[string]string{
		"/system.slice/nginx.service":               "/system.slice/nginx.service",
		"system.slice/nginx.service/":               "/system.slice/nginx.service",
		"/sys/fs/cgroup/system.slice/nginx.service": "/system.slice/nginx.service",
		"nginx.service":                             "/system.slice/nginx.service",
		"/system.slice/crun-web.scope":              "/system.slice/crun-web.scope/container",
		"crun-web.scope":                            "/system.slice/crun-web.scope/container",
		"job-2":                                     "/batch/job-2",
		"batch/job-1":                               "/batch/job-1",
	} {
		if d, near, ok := b.Detail(name, start); !ok || d.Cgroup.Path != want {
			t.Errorf("%s: %s, near %q", name, d.Cgroup.Path, near)
		}
	}
	for name, want := range map[string][]string{
		"job-1":        {"/batch/job-1", "/user.slice/job-1", "/batch/job-2"},
		"ngnix.servce": {"/system.slice/nginx.service"},
		"NGINX":        {"/system.slice/nginx.service", "/system.slice/nginx.service/worker"},
		"postgresql":   nil,
	} {
		d, near, ok := b.Detail(name, start)
		if name == "NGINX" {
			near = near[:min(1, len(near))]
			want = want[:1]
		}
		if ok || !slices.Equal(near, want) {
			t.Errorf("%s: found %v %s, near %q, want %q", name, ok, d.Cgroup.Path, near, want)
		}
	}
}

func TestAContainerIsFoundAndShownByItsName(t *testing.T) {
	b := testBoard()
	r := quietly("/kubepods.slice/cri-containerd-1a2b.scope", 7, 1)
	r.Name = "shop/cart-7d9/app"
	b.Record(r)
	if d := detail(t, b, "shop/cart-7d9/app"); d.Cgroup.Path != r.Cgroup.Path || d.Cgroup.Name != r.Name {
		t.Errorf("got %+v", d.Cgroup)
	}
}

func TestARecordOfAKnownCgroupAllocatesNothingOnceItsPastIsFull(t *testing.T) {
	b := testBoard()
	r := wishing("/a", 1, 5)
	for range 2 * MaxDepth {
		b.Record(r)
	}
	if n := testing.AllocsPerRun(100, func() { b.Record(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := len(detail(t, b, "/a").Past); n != MaxDepth {
		t.Errorf("%d records are kept", n)
	}
}

func TestThePastOfManyCgroupsIsBoundedForAllOfThem(t *testing.T) {
	b := testBoard()
	const many = MaxRecords/4 + 1
	for round := range 10 {
		for i := range many {
			b.Record(wishing(fmt.Sprint("/job-", i), 1, round))
		}
	}
	kept := 0
	for _, h := range b.cgroups {
		kept += len(h.entries)
	}
	if kept > MaxRecords {
		t.Errorf("%d records are kept", kept)
	}
}

func TestThePastIsTheLastOfWhatHappenedWhateverComesAndGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		var p packer
		var want []int
		for s, depth := range rapid.SliceOfN(rapid.IntRange(1, 6), 1, 40).Draw(t, "depths") {
			h.add(&p, wishing("/a", 1, s), depth)
			want = append(want, s)
			want = want[max(0, len(want)-depth):]
			var got []int
			for i := range h.count {
				got = append(got, int(h.at(i).record(h.id, &p.words).Tick))
			}
			// Where the bound grew again, what was dropped does not come back.
			if len(got) > depth || len(got) == 0 || !slices.Equal(got, want[len(want)-len(got):]) || len(got) < min(len(want), depth) && len(got) != len(want) {
				t.Fatalf("step %d, depth %d: kept %v, want %v", s, depth, got, want)
			}
		}
	})
}
