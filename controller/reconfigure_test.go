package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

func (b *bench) reconfigure(mode telemetry.Mode, policies string) Reconfigured {
	b.t.Helper()
	cfg, err := config.Parse("next.yaml", []byte("interval: 1s\n"+policies))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.core.Reconfigure(cfg, mode, b.now)
}

func paths(ids []memcg.ID) string {
	var list []string
	for _, id := range ids {
		list = append(list, id.Path)
	}
	return strings.Join(list, " ")
}

func TestWhatHasTheSamePolicyGoesOnAndWhatHasNotStartsAnew(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", `
policies:
  - {name: a, match: [{path: /a*}], headroom: 2%}
  - {name: b, match: [{path: /b*}], law: tmo}
  - {name: c, match: [{path: /c*}], observe: true}
`)
	b.core.noKnobs = ""
	b.track(id("/a"), id("/bb"), id("/ccc"), id("/cgone"))
	kept, changed := b.core.cgroups[id("/a")], b.core.cgroups[id("/bb")]
	got := b.reconfigure(telemetry.Enforce, `
policies:
  - {name: other-name, match: [{path: /a}], headroom: 2%}
  - {name: b, match: [{path: /b*}], law: senpai}
  - {name: c, match: [{path: /ccc}], observe: true}
`)
	if s := fmt.Sprint(paths(got.Kept), "; ", paths(got.Changed), "; ", paths(got.Released)); s != "/a /ccc; /bb; /cgone" {
		t.Errorf("kept; changed; released: %s", s)
	}
	if b.core.cgroups[id("/a")] != kept || kept.policy.Name != "other-name" {
		t.Error("/a did not go on")
	}
	if now := b.core.cgroups[id("/bb")]; now == changed || now.law.Law.String() != "senpai" {
		t.Error("/bb did not start anew")
	}
	if b.core.WantsAges(id("/cgone")) || b.core.Due(id("/cgone"), b.now) {
		t.Error("/cgone is still looked at")
	}
}

func TestObservingFromNowOnPutsBackWhatWasSet(t *testing.T) {
	b := setBench(t)
	if got := b.reconfigure(telemetry.Observe, watchAll); paths(got.Changed) != "/a /bb" || len(got.Kept) > 0 {
		t.Errorf("changed %v, kept %v", got.Changed, got.Kept)
	}
	var put []string
	var pending []Request
	for range len(leavable) + 1 {
		pending = b.handed(putBack(t, pending, &put)...)
	}
	want := []string{"/a memory.high", "/bb memory.high", "/a memory.swap.max", "/bb memory.swap.max", "/a cpuset.mems", "/bb cpuset.mems"}
	if !slices.Equal(put, want) {
		t.Errorf("put back %v, want %v", put, want)
	}
	if b.core.leaves(id("/a")) || len(b.core.setting) > 0 {
		t.Error("it does not end")
	}
}

// putBack answers requests to put knobs back and notes them.
func putBack(t *testing.T, requests []Request, put *[]string) (results []Result) {
	for _, r := range requests {
		if r.Setting.Value != "" {
			t.Errorf("sets %v", r.Setting)
		}
		*put = append(*put, r.Setting.Cgroup.Path+" "+string(r.Setting.Knob))
		results = append(results, Result{Request: r, Undone: journal.Undone{How: journal.Nothing}})
	}
	return results
}

func TestWhatWasSetIsNotSetAgainWhileItIsPutBack(t *testing.T) {
	b := setBench(t)
	if held := b.setHigh("/a", "4096"); held != "" {
		t.Fatal(held)
	}
	first := b.handed()
	b.reconfigure(telemetry.Enforce, "policies:\n  - {name: all, match: [{path: /**}], squeeze: off, headroom: 1%}\n")
	if again := b.handed(); slices.ContainsFunc(again, func(r Request) bool { return r.Setting.Cgroup == id("/a") }) {
		t.Errorf("handed out while a write was in flight: %v", again)
	}
	if held := b.setHigh("/a", "8192"); held != "what its policy before has set is being put back" {
		t.Errorf("held %q", held)
	}
	back := b.handed(Result{Request: first[0], Set: journal.Result{Outcome: journal.Written}})
	if !slices.ContainsFunc(back, func(r Request) bool {
		return r.Setting == Setting{Cgroup: id("/a"), Knob: memcg.KnobHigh, Why: "its policy went"}
	}) {
		t.Errorf("what was written last is not put back: %v", back)
	}
}

func TestReadingAConfigAgainBuysNoSwapWrites(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	b.track(id("/a"))
	b.now = b.now.Add(time.Hour)
	before, _ := b.core.swap.left(b.now)
	b.core.swap.settle(b.now, 0, before)
	for range 10 {
		b.reconfigure(telemetry.Enforce, watchAll)
	}
	if left, limited := b.core.swap.left(b.now); left != 0 || !limited {
		t.Errorf("%d bytes may be written", left)
	}
	b.reconfigure(telemetry.Enforce, "host: {swap: {write_budget: 0}}\n"+watchAll)
	if left, limited := b.core.swap.left(b.now.Add(time.Hour)); left != 0 || !limited {
		t.Errorf("with a budget of 0, %d bytes may be written", left)
	}
}
