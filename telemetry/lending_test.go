package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/memcg"
)

const mib = 1 << 20

func TestALoanIsTold(t *testing.T) {
	for _, tt := range []struct {
		name string
		l    Lending
		want string
	}{
		{"nothing lent and nothing to say", Lending{On: true, Base: 40 * mib}, ""},
		{"a policy that does not lend", Lending{Lent: 1}, ""},
		{"lending", Lending{On: true, Base: 40 * mib, Rule: "lend", High: 160 * mib}, "; nothing lent, lend: memory.high to 160 MiB"},
		{"lent", Lending{On: true, Base: 40 * mib, Lent: 120 * mib, Used: 100 * mib, Before: 900},
			"; 120 MiB lent above 40 MiB, 100 MiB of it used, refaults/s 900 before and 0 now"},
		{"refused", Lending{On: true, Base: 40 * mib, Held: "the ceiling is reached"}, "; nothing lent (the ceiling is reached)"},
		{"put back", Lending{On: true, Base: 40 * mib, Lent: mib, Rule: "recall-short", Recalled: 119 * mib, RecallTook: 1500 * time.Millisecond},
			"; 1 MiB lent above 40 MiB, 0 B of it used, recall-short, 119 MiB taken back in 1.5s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			tt.l.describe(&b)
			if b.String() != tt.want {
				t.Errorf("%q, want %q", b.String(), tt.want)
			}
		})
	}
}

func TestASettingIsTold(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    Setting
		want string
	}{
		{"written", Setting{Knob: memcg.KnobHigh, Value: "41943040", Why: "lend", Outcome: "written"}, "; memory.high to 40 MiB for lend: written"},
		{"without a limit", Setting{Knob: memcg.KnobSwapMax, Value: "max", Why: "x", Outcome: "restored"}, "; memory.swap.max to max for x: restored"},
		{"of nodes", Setting{Knob: memcg.KnobMems, Value: "0-1", Why: "x", Outcome: "written"}, "; cpuset.mems to 0-1 for x: written"},
		{"waiting", Setting{Knob: memcg.KnobHigh, Value: "0", Why: "lend", Outcome: "waiting", Found: "max"},
			`; memory.high to 0 B for lend: waiting, somebody else wrote "max"`},
		{"failed", Setting{Knob: memcg.KnobHigh, Value: "0", Why: "lend", Err: errors.New("no")}, "; memory.high to 0 B for lend: no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			tt.s.describe(&b)
			if b.String() != tt.want {
				t.Errorf("%q, want %q", b.String(), tt.want)
			}
			var line bytes.Buffer
			DecisionLog{Logger: zerolog.New(&line)}.Record(&Record{Settings: []Setting{tt.s}})
			if want := fmt.Sprintf(`"settings":[{"knob":%q,"value":%q`, tt.s.Knob, tt.s.Value); !strings.Contains(line.String(), want) {
				t.Errorf("no %s in %s", want, line.String())
			}
		})
	}
}

func TestTheSummarySaysHowMuchWasLentAndWhatTakingItBackCost(t *testing.T) {
	var s Summary
	a, b := memcg.ID{Path: "/a", Inode: 1}, memcg.ID{Path: "/b", Inode: 2}
	for _, r := range []Record{
		{Cgroup: a, Lending: Lending{On: true, Lent: 100 * mib}},
		{Cgroup: b, Lending: Lending{On: true, Lent: 50 * mib}},
		{Cgroup: a, Glance: true},
		{Cgroup: a, Lending: Lending{On: true, Lent: 20 * mib, Recalled: 80 * mib, RecallTook: time.Second}},
		{Cgroup: a, Lending: Lending{On: true, Recalled: 100 * mib, RecallTook: 2 * time.Second}},
		{Cgroup: b, Err: fmt.Errorf("%w", memcg.ErrGone)},
		{Cgroup: a, Lending: Lending{On: true, Lent: 60 * mib, Recalled: 10 * mib, RecallTook: time.Millisecond}},
	} {
		s.Record(&r)
	}
	if s.LentMost != 150*mib || s.Recalled != 110*mib || s.RecallTook != 2001*time.Millisecond || s.lent != 60*mib {
		t.Errorf("%d MiB at most, %d MiB taken back in %v, %d MiB left", s.LentMost/mib, s.Recalled/mib, s.RecallTook, s.lent/mib)
	}
	var table bytes.Buffer
	if err := s.WriteTable(&table, 0, time.Minute); err != nil {
		t.Fatal(err)
	}
	if want := "up to 150 MiB lent above memory.high at a time; 110 MiB taken back by reclaim, in 2.001s"; !strings.Contains(table.String(), want) {
		t.Errorf("no %q in\n%s", want, table.String())
	}
}
