package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

const watchAll = `
policies:
  - name: all
    match: [{path: /**}]
    squeeze: off
`

// setBench is a bench with two cgroups whose knobs may be written.
func setBench(t *testing.T) *bench {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	b.core.noKnobs = ""
	b.track(id("/a"), id("/bb"))
	return b
}

func (b *bench) setHigh(path, value string) string {
	return b.core.set(b.now, b.core.cgroups[id(path)], memcg.KnobHigh, value, "test")
}

// handed returns what a step without observations hands out.
func (b *bench) handed(done ...Result) []Request {
	requests, _ := b.core.Step(b.now, &b.host, slices.Values([]Observation(nil)), done, 4)
	return slices.Clone(requests)
}

func TestACgroupHasOneWriteToItsKnobsAtATime(t *testing.T) {
	b := setBench(t)
	if held := b.setHigh("/a", "4096"); held != "" {
		t.Fatal(held)
	}
	if held := b.core.set(b.now, b.core.cgroups[id("/a")], memcg.KnobSwapMax, "0", "test"); held == "" {
		t.Error("a second write was handed out")
	}
	if held := b.setHigh("/bb", "4096"); held != "" {
		t.Errorf("another cgroup has to wait: %s", held)
	}
	requests := b.handed()
	if len(requests) != 2 || requests[0].Setting != (Setting{Cgroup: id("/a"), Knob: memcg.KnobHigh, Value: "4096", Why: "test"}) {
		t.Fatalf("handed out %v", requests)
	}
	if again := b.handed(); len(again) != 0 {
		t.Errorf("handed out again: %v", again)
	}
	b.handed(Result{Request: requests[0], Set: journal.Result{Outcome: journal.Written}})
	if held := b.setHigh("/a", "8192"); held != "" {
		t.Errorf("the write came back, and the next one is held: %s", held)
	}
}

func TestWhyAKnobIsNotWrittenIsSaid(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setUp func(*bench)
		want  string
	}{
		{"observing", func(b *bench) { b.core.mode = telemetry.Observe }, "observe mode"},
		{"without a journal", func(b *bench) { b.core.noKnobs = noJournal }, noJournal},
		{"where memagent itself runs", func(b *bench) { b.core.cgroups[id("/a")].held = heldSelf }, heldSelf},
		{"with all workers busy", func(b *bench) {
			for i := range setters {
				b.core.setting[id(fmt.Sprint("/other", i))] = true
			}
		}, "all workers that write limits are busy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setBench(t)
			tt.setUp(b)
			if held := b.setHigh("/a", "4096"); held != tt.want {
				t.Errorf("held %q, want %q", held, tt.want)
			}
			if requests := b.handed(); len(requests) != 0 {
				t.Errorf("handed out %v", requests)
			}
		})
	}
}

func TestWhatCameOfASettingBoundsTheNext(t *testing.T) {
	disk := &journal.Error{Op: "write", File: "/state/journal", Err: fmt.Errorf("%w: %w", journal.ErrFull, syscall.ENOSPC)}
	for _, tt := range []struct {
		name  string
		set   journal.Result
		err   error
		after time.Duration // until it may be written again; 0 at once, -1 never
		said  []string
	}{
		{"written", journal.Result{Outcome: journal.Written}, nil, 0, nil},
		{"somebody else wrote it", journal.Result{Outcome: journal.Waiting, Until: time.Unix(1007, 0)}, nil, 7 * time.Second, nil},
		{"somebody else keeps writing it", journal.Result{Outcome: journal.Yielding}, nil, -1, []string{"owner /a"}},
		{"it was left to somebody else", journal.Result{Outcome: journal.Yielded}, nil, -1, nil},
		{"an earlier write blocks", journal.Result{}, memcg.ErrPartial, settingDeadline, nil},
		{"the cgroup has no such file", journal.Result{}, memcg.ErrUnsupported, -1, []string{"memory.high /a"}},
		{"it may not be written", journal.Result{}, memcg.ErrDenied, -1, []string{"memory.high /a"}},
		{"the disk is full", journal.Result{}, disk, settingRest, []string{"journal"}},
		{"the kernel refuses the value", journal.Result{}, memcg.ErrInvalid, settingRest, []string{"memory.high /a"}},
		{"somebody else wrote it at the same time", journal.Result{}, journal.ErrNotGranted, settingRest, nil},
		{"the cgroup is gone", journal.Result{}, memcg.ErrGone, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setBench(t)
			b.setHigh("/a", "4096")
			r := b.handed()[0]
			b.handed(Result{Request: r, Set: tt.set, Err: tt.err})
			if strings.Join(b.notes.said, ",") != strings.Join(tt.said, ",") {
				t.Errorf("said %v, want %v", b.notes.said, tt.said)
			}
			if tt.after != 0 && b.setHigh("/a", "4096") == "" {
				t.Fatal("written again at once")
			}
			b.now = b.now.Add(tt.after)
			if tt.after < 0 {
				b.now = b.now.Add(24 * time.Hour)
			}
			if held := b.setHigh("/a", "4096"); (held == "") != (tt.after >= 0) {
				t.Errorf("afterwards it is held %q", held)
			}
		})
	}
}

func TestASettingThatFailsAgainAndAgainIsTriedMoreAndMoreSeldom(t *testing.T) {
	b := setBench(t)
	for i := range 20 {
		if held := b.setHigh("/a", "4096"); held != "" {
			t.Fatalf("try %d: %s", i, held)
		}
		b.handed(Result{Request: b.handed()[0], Err: errors.New("no")})
		b.now = b.now.Add(settingRest - time.Nanosecond)
		if held := b.setHigh("/a", "4096"); held == "" {
			t.Fatalf("try %d: no rest", i)
		}
		b.now = b.now.Add(settingRestMost)
	}
}
