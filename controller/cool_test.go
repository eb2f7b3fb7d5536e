package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// rememberer is a Keeper of cool-downs alone.
type rememberer struct {
	Keeper
	lists [][]journal.Cooldown
}

func (r *rememberer) Remember(list []journal.Cooldown) error {
	r.lists = append(r.lists, list)
	return nil
}

func TestCooldownsAreWrittenWhenTheyChangeAndNotTooOften(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	b.track(id("/a"), id("/bb"))
	keeper := &rememberer{}
	l := &Loop{Core: b.core, Keeper: keeper, Notify: b.core.notify}
	at := func(seconds int, want int) {
		t.Helper()
		l.remember(b.now.Add(time.Duration(seconds) * time.Second))
		l.settles.Wait()
		if got := len(keeper.lists); got != want {
			t.Errorf("after %d s: written %d times, want %d", seconds, got, want)
		}
	}
	at(0, 0)
	b.core.cgroups[id("/bb")].loan.until, b.core.cgroups[id("/bb")].loan.cool = b.now.Add(time.Minute), time.Minute
	b.core.cgroups[id("/a")].state.Cool(workingset.KindMoveAnon, 2*time.Minute, 4*time.Minute)
	at(1, 1)
	if d := keeper.lists[0]; len(d) != 2 || d[0].Cgroup != id("/a") || d[0].Why != "move-anon" || d[0].Length != 4*time.Minute || d[1].Why != "lend" {
		t.Errorf("wrote %+v", d)
	}
	at(20, 1) // nothing new
	b.core.cgroups[id("/bb")].loan.until, b.core.cgroups[id("/bb")].loan.cool = b.now.Add(3*time.Minute), 2*time.Minute
	at(22, 2)
	b.core.cgroups[id("/bb")].loan.until = b.now.Add(10 * time.Minute)
	at(25, 2) // too soon
	at(32, 3)
}

func TestWhatACgroupOfAnEarlierRunIsLeftAloneForIsKeptUntilItIsFound(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	rests := []journal.Cooldown{
		{Cgroup: id("/a"), Until: b.now.Add(time.Minute), Length: 2 * time.Minute, Why: "lend"},
		{Cgroup: id("/a"), Until: b.now.Add(time.Minute), Length: time.Minute, Why: "move-file"},
		{Cgroup: id("/bb"), Until: b.now.Add(-time.Minute), Length: time.Minute, Why: "lend"},
	}
	for _, d := range rests {
		b.core.Rest(d, b.now)
	}
	if got := b.core.Resting(b.now); !slices.Equal(got, rests[:2]) {
		t.Errorf("before any is found: %+v", got)
	}
	b.track(id("/a"), id("/bb"))
	if got := b.core.Resting(b.now); !slices.Equal(got, rests[:2]) {
		t.Errorf("when they are found: %+v", got)
	}
	if !b.core.cgroups[id("/bb")].loan.until.IsZero() {
		t.Error("one that is over holds")
	}
}
