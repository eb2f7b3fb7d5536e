package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

func TestSummaryAddsUp(t *testing.T) {
	var s Summary
	a, b := memcg.ID{Path: "/a", Inode: 1}, memcg.ID{Path: "/b", Inode: 2}
	records := []Record{
		{Cgroup: a, Policy: "p", Verdict: "idle", Current: memcg.Value(100 << 20), Want: 1 << 20, Acted: true},
		{Cgroup: b, Policy: "p", Verdict: "fits", Current: memcg.Value(50 << 20), Want: 1 << 20, Held: "observe mode"},
		{Cgroup: a, Policy: "p", Verdict: "idle", Current: memcg.Value(99 << 20), RefaultFile: memcg.Value(3),
			Done: &memcg.Outcome{Reclaimed: memcg.Value(3 << 20), Demoted: memcg.Value(2 << 20)}},
		{Cgroup: b, Err: fmt.Errorf("%w", memcg.ErrGone)},
	}
	for i := range records {
		s.Record(&records[i])
	}
	if s.Decisions != 3 || s.Actions != 1 || s.Reclaimed != 1<<20 {
		t.Errorf("decisions %d, actions %d, reclaimed %d", s.Decisions, s.Actions, s.Reclaimed)
	}
	var table, line bytes.Buffer
	if err := s.WriteTable(&table, 7, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/a", "100 MiB", "99 MiB", "gone", "3 decisions, 1 requests, 1 MiB reclaimed, 7 writes to the kernel, in 1m0s"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	s.Log(zerolog.New(&line), 7, time.Minute)
	for _, want := range []string{`"message":"summary"`, `"decisions":3`, `"actions":1`, `"reclaimed_bytes":1048576`, `"writes":7`, `"cpu_ms":`, `"rss_kib":`} {
		if !strings.Contains(line.String(), want) {
			t.Errorf("no %s in %s", want, line.String())
		}
	}
}

func TestALongRunWithManyShortCgroupsStaysSmall(t *testing.T) {
	var s Summary
	terminal := Terminal{W: &bytes.Buffer{}}
	for i := range 10 * maxGoneRows {
		id := memcg.ID{Path: fmt.Sprint("/", i), Inode: uint64(i)}
		for _, r := range []Record{{Cgroup: id, Verdict: "idle"}, {Cgroup: id, Err: fmt.Errorf("%w", memcg.ErrGone)}} {
			s.Record(&r)
			terminal.Record(&r)
		}
	}
	if len(s.cgroups) > maxGoneRows+1 || len(terminal.verdicts) != 0 {
		t.Errorf("remembers %d rows and %d verdicts", len(s.cgroups), len(terminal.verdicts))
	}
	if s.Decisions != 10*maxGoneRows {
		t.Errorf("%d decisions", s.Decisions)
	}
}

func TestTheTerminalSaysOnlyWhatIsNew(t *testing.T) {
	var out bytes.Buffer
	terminal := Terminal{W: &out}
	id := memcg.ID{Path: "/a"}
	say := func(r Record) int {
		before := strings.Count(out.String(), "\n")
		r.Cgroup = id
		terminal.Record(&r)
		return strings.Count(out.String(), "\n") - before
	}
	for i, c := range []struct {
		r    Record
		want int
		why  string
	}{
		{Record{Verdict: "idle"}, 1, "a verdict that was not there before"},
		{Record{Verdict: "idle"}, 0, "the same again"},
		{Record{Verdict: "idle", Want: 4096}, 1, "something is wanted"},
		{Record{Verdict: "fits"}, 1, "another verdict"},
		{Record{Verdict: "fits", Done: &memcg.Outcome{}}, 1, "an outcome"},
		{Record{Err: fmt.Errorf("%w", memcg.ErrGone)}, 1, "the end"},
	} {
		if got := say(c.r); got != c.want {
			t.Errorf("step %d, %s: %d lines", i, c.why, got)
		}
	}
}
