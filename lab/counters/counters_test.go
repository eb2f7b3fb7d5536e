package counters

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

func TestParseFlat(t *testing.T) {
	got := ParseFlat("anon 4096\nworkingset_refault_anon 7\nodd line here\nnegative -1\n\nempty \nlast 1")
	if d := cmp.Diff(Flat{"anon": 4096, "workingset_refault_anon": 7, "last": 1}, got); d != "" {
		t.Error(d)
	}
}

func TestParseNuma(t *testing.T) {
	got := ParseNuma("anon N0=4096 N2=8192\nfile N0=0 N2=1\nbroken\nodd N0=x Q1=2\n")
	want := Numa{"anon": {"0": 4096, "2": 8192}, "file": {"0": 0, "2": 1}, "odd": {}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParsePSI(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		some, full uint64
		bad        bool
	}{
		{"both lines", "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=45\n", 123, 45, false},
		{"full may be absent", "some avg10=0.00 total=123\n", 123, 0, false},
		{"nothing is not zero", "", 0, 0, true},
		{"a broken number is an error", "some total=x\n", 0, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			some, full, err := ParsePSI(tc.text)
			if some != tc.some || full != tc.full || (err != nil) != tc.bad {
				t.Errorf("got %d, %d, %v", some, full, err)
			}
		})
	}
}

func TestSince(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after Snapshot
		want          result.Counters
	}{
		{"swap counts are the cgroup's where it has them",
			Snapshot{Stat: Flat{"pswpin": 1, "pswpout": 2, "pgsteal": 10}, Host: Flat{"pswpin": 100}, PSISome: 5},
			Snapshot{Stat: Flat{"pswpin": 3, "pswpout": 7, "pgsteal": 30}, Host: Flat{"pswpin": 900}, PSISome: 9},
			result.Counters{SwapIn: 2, SwapOut: 5, PgSteal: 20, PSISomeUS: 4}},
		{"and the host's where it has not",
			Snapshot{Stat: Flat{}, Host: Flat{"pswpin": 100, "pswpout": 50}},
			Snapshot{Stat: Flat{"workingset_refault_file": 4}, Host: Flat{"pswpin": 900, "pswpout": 60}, hostSwapCounts: true},
			result.Counters{RefaultFile: 4, SwapIn: 800, SwapOut: 10}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, tc.after.Since(tc.before)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNodesKeepsEveryNodeOfTheEnd(t *testing.T) {
	before := Snapshot{Numa: Numa{"anon": {"0": 10}, "file": {"0": 20}}}
	after := Snapshot{Numa: Numa{"anon": {"0": 11, "5": 1}, "file": {"0": 19, "5": 0}}}
	want := map[string]result.Node{"0": {AnonBefore: 10, AnonAfter: 11, FileBefore: 20, FileAfter: 19}, "5": {AnonAfter: 1}}
	if d := cmp.Diff(want, Nodes(before, after)); d != "" {
		t.Error(d)
	}
}
