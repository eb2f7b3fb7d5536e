package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/memcg"
)

func explained() *Record {
	return &Record{
		Verdict: "idle", Meaning: "The memory is hardly touched; what is not needed can go.", Rule: "squeeze-cold",
		Current: memcg.Value(512 << 20), Anon: memcg.Value(300 << 20), File: memcg.Value(212 << 20), Swap: memcg.Value(0),
		RefaultAnon: memcg.Value(0), RefaultFile: memcg.Value(12), Stall: memcg.Value(5000), Elapsed: 5 * time.Second,
		Cost: memcg.Term{Value: 0.02, Known: true},
		Because: []memcg.Term{{Name: "pressure", Value: 0.1, Unit: "%", Known: true}, {Name: "hold", Value: 30, Unit: "s", Known: true},
			{Name: "newly charged", Value: 4096, Unit: "bytes/s", Known: true}, {Name: "floor", Value: 64 << 20, Unit: "bytes", Known: true}, {Name: "limit", Unit: "bytes"}},
		Want: 2 << 20, Floor: 64 << 20, Swappiness: memcg.SwappinessOf(60), OlderThan: time.Minute, Clipped: "swap-room",
	}
}

func TestADecisionIsExplainedInSentencesWithNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Record)
		want   []string
	}{
		"a wish that was carried out": {func(r *Record) {
			r.Acted = true
			r.Nodes = []NodeUse{{0, memcg.Value(300 << 20), memcg.Value(200 << 20)}, {2, memcg.Value(0), memcg.Value(12 << 20)}}
			r.Done = &memcg.Outcome{Request: memcg.Reclaim{Bytes: 1 << 20}, Reclaimed: memcg.Value(1 << 20), Took: 20 * time.Millisecond}
			r.Lending = Lending{On: true, Lent: 1 << 20, Base: 2 << 20}
		}, []string{
			"It holds 512 MiB: 300 MiB of anon and 212 MiB of file; in swap it has 0 B.",
			"Of that, 300 MiB of anon and 200 MiB of file on node 0; 0 B of anon and 12 MiB of file on node 2.",
			"In the 5s before, 0 pages of anon and 12 of file came back after they had been evicted.",
			"Its tasks stood still for memory 0.1% of that time, and bringing pages back cost 0.02% of it.",
			"Verdict: idle. The memory is hardly touched; what is not needed can go.",
			"Figures that decided: pressure 0.1%, hold 30 s, newly charged 4 KiB/s, floor 64 MiB, limit unknown.",
			"Rule squeeze-cold: what has not been used for the policy's idle_age is taken, at most ten steps of it at once.",
			"So memagent asked the kernel to take 2 MiB, of memory not used for 1m0s, with swappiness 60, and not to go below 64 MiB.",
			`It wanted more; the bound "swap-room" clipped it: swap has no more room, or none above what is to stay free.`,
			"The request before took 1 MiB of 1 MiB in 20ms.",
			"Also: 1 MiB lent above 2 MiB, 0 B of it used.",
		}},
		"a wish that was held back, without swap or PSI": {func(r *Record) {
			r.Held, r.Clipped, r.OlderThan, r.Floor, r.Because = "observe mode", "", 0, 0, nil
			r.Swappiness, r.Swap, r.Stall, r.Cost = memcg.Swappiness{}, memcg.Absent(memcg.Unsupported), memcg.Absent(memcg.Unsupported), memcg.Term{}
			r.RefaultAnon = memcg.Absent(memcg.Invalid)
		}, []string{
			"It holds 512 MiB: 300 MiB of anon and 212 MiB of file; in swap it has an unknown size (unsupported).",
			"How many evicted pages came back in the 5s before is not known: anon invalid, file 12.",
			"Its stall on memory (PSI some) is not known: unsupported.",
			"Verdict: idle. The memory is hardly touched; what is not needed can go.",
			"Rule squeeze-cold: what has not been used for the policy's idle_age is taken, at most ten steps of it at once.",
			"So memagent would ask the kernel to take 2 MiB, with the swappiness of the host.",
			"It was not done: observe mode.",
		}},
		"nothing wanted at the first look": {func(r *Record) {
			r.Verdict, r.Meaning, r.Rule, r.Want, r.Clipped, r.Elapsed, r.Because = "unknown", "", "first-sample", 0, "", 0, nil
		}, []string{
			"It holds 512 MiB: 300 MiB of anon and 212 MiB of file; in swap it has 0 B.",
			"There is no earlier look to compare with, so no rate is known.",
			"Verdict: unknown.",
			"Rule first-sample: this is the first look, and rates need two of them.",
			"So nothing is asked of it.",
		}},
		"a glance": {func(r *Record) {
			*r = Record{Glance: true, Verdict: "fits", Rule: "headroom", Current: memcg.Value(1 << 20), Want: 4096, Acted: true, Swappiness: memcg.SwappinessOf(memcg.SwappinessMax)}
		}, []string{
			"It holds 1 MiB. This was a glance between two full looks, on the verdict of the look before.",
			"Verdict: fits.",
			"Rule headroom: room is kept below its limit, so that its own tasks do not have to reclaim there.",
			"So memagent asked the kernel to take 4 KiB, of anon only.",
		}},
		"a cgroup that is gone": {func(r *Record) { *r = Record{Err: fmt.Errorf("/a: %w", memcg.ErrGone)} },
			[]string{"The cgroup is gone; what it asked for and what was taken from it is over."}},
		"a cgroup that cannot be read": {func(r *Record) { *r = Record{Err: errors.New("no right")} },
			[]string{"It could not be read, so nothing was decided: no right.", "It is left alone for a growing number of ticks, until it can be read again."}},
	} {
		r := explained()
		c.change(r)
		if diff := cmp.Diff(c.want, r.Explain()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnErrorHasItsKindAsALabel(t *testing.T) {
	for kind, want := range map[error]string{memcg.ErrGone: "gone", memcg.ErrUnsupported: "unsupported", memcg.ErrPartial: "partial",
		memcg.ErrDenied: "denied", memcg.ErrInvalid: "invalid", memcg.ErrReadOnly: "read_only", errors.New("x"): "other"} {
		if got := ErrorKind(fmt.Errorf("reading: %w", kind)); got != want || strings.ContainsAny(got, " -") {
			t.Errorf("%v: %q", kind, got)
		}
	}
}
