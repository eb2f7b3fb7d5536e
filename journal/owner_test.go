package journal

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

var pg = memcg.ID{Path: "/pg", Inode: 1234}

func TestValuesMeanTheSameAfterRounding(t *testing.T) {
	for _, tt := range []struct {
		name string
		knob memcg.Knob
		a, b string
		same bool
	}{
		{"equal bytes", memcg.KnobHigh, "8192", "8192", true},
		{"what the kernel rounds down to pages", memcg.KnobHigh, "8193", "8192", true},
		{"two pages", memcg.KnobHigh, "8191", "8192", false},
		{"max and 2^63-1", memcg.KnobHigh, "max", "9223372036854775807", true},
		{"max and the largest whole page", memcg.KnobSwapMax, "9223372036854771712", "max", true},
		{"max and a page less", memcg.KnobHigh, "max", "9223372036854767616", false},
		{"max and 2^64-1", memcg.KnobHigh, "18446744073709551615", "max", true},
		{"zero and less than a page", memcg.KnobSwapMax, "0", "4095", true},
		{"zero and max", memcg.KnobSwapMax, "0", "max", false},
		{"a word is no value", memcg.KnobHigh, "none", "none", false},
		{"nothing is no limit", memcg.KnobHigh, "", "", false},
		{"a sign is no value", memcg.KnobHigh, "+1", "+1", false},
		{"a list and its short form", memcg.KnobMems, "0,1,2", "0-2", true},
		{"two lists", memcg.KnobMems, "0", "0-1", false},
		{"an empty list is one", memcg.KnobMems, "", "", true},
		{"an empty list and a node", memcg.KnobMems, "", "0", false},
		{"what is no list", memcg.KnobMems, "x", "x", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if Same(tt.knob, tt.a, tt.b, page) != tt.same || Same(tt.knob, tt.b, tt.a, page) != tt.same {
				t.Errorf("%s: %q and %q: want same %v", tt.knob, tt.a, tt.b, tt.same)
			}
		})
	}
}

func TestJudgeSaysWhoseAValueIs(t *testing.T) {
	entry := Entry{Key: Key{pg, memcg.KnobHigh}, Boot: "boot-1", Before: "max", Wrote: "1610612736", Earlier: "1073741824"}
	here := func(value string) Sight { return Sight{ID: pg, Boot: "boot-1", Value: value} }
	for _, tt := range []struct {
		name string
		now  Sight
		want Owner
	}{
		{"c40: a limit left from the run before is ours", here("1610612736"), Ours},
		{"ours as the kernel rounds it", here("1610612737"), Ours},
		{"the one before it, when the last write never came", here("1073741824"), Ours},
		{"the operator's", here("max"), Original},
		{"the operator's, printed as a number", here("9223372036854771712"), Original},
		{"c42: systemd wrote it since", here("536870912"), Foreign},
		{"a page off is not ours", here("1610608640"), Foreign},
		{"another cgroup at its path", Sight{memcg.ID{Path: "/pg", Inode: 1235}, "boot-1", "1610612736"}, Gone},
		{"no cgroup at its path", Sight{Boot: "boot-1"}, Gone},
		{"another boot", Sight{pg, "boot-2", "1610612736"}, Gone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Judge(entry, tt.now, page); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	same := Entry{Key: Key{pg, memcg.KnobHigh}, Boot: "boot-1", Before: "8192", Wrote: "8193"}
	if got := Judge(same, here("8192"), page); got != Original {
		t.Errorf("a value that is both is %v, want original: nothing to undo", got)
	}
}

func TestC42AssertsAreBoundedAndPausesGrow(t *testing.T) {
	rules := Rules{Asserts: 3, Pause: 10 * time.Second, Forgive: time.Hour}
	now := time.Unix(1_700_000_000, 0)
	e := Entry{Before: "max", Wrote: "4096"}
	var moves []Move
	var at []int
	for s := range 100 {
		next, move, until := rules.Meet(e, "8192", now.Add(time.Duration(s)*time.Second))
		if move == Wait {
			if next != e || !until.After(now.Add(time.Duration(s)*time.Second)) {
				t.Fatalf("waiting until %v changed %+v to %+v", until, e, next)
			}
			continue
		}
		e = next
		moves, at = append(moves, move), append(at, s)
		if move == Yield {
			break
		}
	}
	if len(moves) != 4 || moves[3] != Yield || at[0] != 0 || at[1] != 10 || at[2] != 30 || at[3] != 70 {
		t.Errorf("moves %v at seconds %v, want three asserts at 0, 10, 30 and to yield at 70", moves, at)
	}
	if !e.Yielded || e.Before != "8192" {
		t.Errorf("entry %+v: want it yielded, with their value to go back to", e)
	}
}

func TestAChallengeLongAgoIsForgiven(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	e := Entry{Challenges: 3, Challenged: now.Add(-time.Hour)}
	if next, move, _ := DefaultRules.Meet(e, "8192", now); move != Assert || next.Challenges != 1 {
		t.Errorf("move %v, %d challenges; want a first one", move, next.Challenges)
	}
}

func TestAClockSetBackDoesNotStretchAPause(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	e := Entry{Challenges: 1, Challenged: now.Add(24 * time.Hour)}
	if _, move, _ := DefaultRules.Meet(e, "8192", now); move == Wait {
		t.Error("waits for a time a day ahead")
	}
}

func TestNoAssertsMeansToYieldAtOnce(t *testing.T) {
	r := Rules{Pause: time.Second, Forgive: time.Hour}
	if next, move, _ := r.Meet(Entry{}, "8192", time.Unix(0, 0)); move != Yield || !next.Yielded {
		t.Errorf("move %v, entry %+v", move, next)
	}
}
