package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
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

func (r *rememberer) Cooldowns() []journal.Cooldown { return slices.Clone(r.lists[len(r.lists)-1]) }

func TestAClockThatIsSetNeitherEndsNorStretchesWhatIsRemembered(t *testing.T) {
	const year = 365 * 24 * time.Hour
	const policies = `
host: {swap: {write_budget: 1MiB/s}}
policies: [{name: all, match: [{path: /**}], high: {lend: true}}]
`
	b := newBench(t, telemetry.Enforce, "", policies)
	b.track(id("/a"), id("/bb"))
	start := b.now
	b.core.swap.settle(start, 0, 600*mib)
	b.core.cgroups[id("/bb")].loan.until, b.core.cgroups[id("/bb")].loan.cool = start.Add(10*time.Minute), 10*time.Minute
	keeper := &rememberer{}
	l := &Loop{Core: b.core, Keeper: keeper, Notify: b.core.notify}
	for i, c := range []struct {
		after  time.Duration
		ahead  time.Duration // of the clock on the wall
		writes int
	}{{0, 0, 1}, {20 * time.Second, 0, 1}, {40 * time.Second, -time.Hour, 2}, {time.Minute, -time.Hour, 2}, {80 * time.Second, year, 3}, {100 * time.Second, year + 10*time.Second, 3}} {
		l.wallAhead = c.ahead
		l.remember(start.Add(c.after))
		l.settles.Wait()
		if len(keeper.lists) != c.writes {
			t.Fatalf("step %d: written %d times, want %d", i, len(keeper.lists), c.writes)
		}
	}
	for i, ahead := range []time.Duration{0, -time.Hour, year} {
		for _, d := range keeper.lists[i] {
			if want := start.Add(ahead + 10*time.Minute); d.Until.Sub(want).Abs() > time.Second {
				t.Errorf("written as the clock was %s ahead: %s of %s ends at %s, want %s", ahead, d.Why, d.Cgroup, d.Until, want)
			}
		}
	}

	later := start.Add(2 * time.Minute)
	next := newBench(t, telemetry.Enforce, "", policies)
	next.core = NewCore(next.core.cfg, telemetry.Enforce, "", next.core.notify, later)
	l = &Loop{Core: next.core, Keeper: keeper, Notify: next.core.notify, wallAhead: year}
	l.resume(later)
	next.core.Track([]memcg.ID{id("/a"), id("/bb")}, true, later)
	list := next.core.Resting(later)
	if len(list) != 2 {
		t.Errorf("the next run remembers %+v", list)
	}
	for _, d := range list {
		if want := start.Add(10 * time.Minute); d.Until.Sub(want).Abs() > time.Second {
			t.Errorf("in the next run %s of %s ends at %s, want %s", d.Why, d.Cgroup, d.Until, want)
		}
	}
	l.remember(later)
	l.settles.Wait()
	if len(keeper.lists) != 4 {
		t.Errorf("the next run wrote %d times: what was cut would be cut anew at every start", len(keeper.lists)-3)
	}
}

func TestThatTheJournalCanBeWrittenAgainIsSaid(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	l := &Loop{Core: b.core, Keeper: &rememberer{}, Notify: b.core.notify}
	l.keepRests(nil)
	b.core.notify.Warn("journal", journal.ErrFull, "")
	l.keepRests(nil)
	if want := []string{"journal", "over: journal"}; !slices.Equal(b.notes.said, want) {
		t.Errorf("said %q, want %q", b.notes.said, want)
	}
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

func TestWhatWasSwappedBeyondABudgetIsOwedAfterARestart(t *testing.T) {
	const policies = `
host: {swap: {write_budget: 1MiB/s}}
policies: [{name: all, match: [{path: /**}], swap: {write_budget: 256KiB/s}}]
`
	b := newBench(t, telemetry.Enforce, "", policies)
	b.track(id("/a"), id("/bb"))
	if got := b.core.Resting(b.now); len(got) != 0 {
		t.Fatalf("at first: %+v", got)
	}
	b.core.swap.settle(b.now, 0, 30*mib)
	b.core.cgroups[id("/a")].swap.settle(b.now, 0, 30*mib)
	b.core.cgroups[id("/bb")].swap.settle(b.now, 0, 100<<10) // too little to be remembered
	want := []journal.Cooldown{
		{Cgroup: journal.Host, Until: b.now.Add(30 * time.Second), Length: 30 * time.Second, Why: "swap"},
		{Cgroup: id("/a"), Until: b.now.Add(2 * time.Minute), Length: 2 * time.Minute, Why: "swap"},
	}
	list := b.core.Resting(b.now)
	if !slices.Equal(list, want) {
		t.Fatalf("%+v, want %+v", list, want)
	}

	later := b.now.Add(20 * time.Second)
	next := newBench(t, telemetry.Enforce, "", policies)
	next.core = NewCore(next.core.cfg, telemetry.Enforce, "", next.core.notify, later)
	for _, d := range list {
		next.core.Rest(d, later)
	}
	next.core.Track([]memcg.ID{id("/a"), id("/bb")}, true, later)
	for i, d := range next.core.Resting(later) {
		if d.Cgroup != want[i].Cgroup || !d.Until.Equal(want[i].Until) || d.Length != want[i].Length-20*time.Second {
			t.Errorf("started again it has %+v, want the end of %+v", d, want[i])
		}
	}
	if left, _ := next.core.swap.left(later.Add(9 * time.Second)); left > 0 {
		t.Errorf("the host may write %d bytes 1 s too early", left)
	}
	if left, _ := next.core.cgroups[id("/a")].swap.left(later.Add(99 * time.Second)); left > 0 {
		t.Errorf("the cgroup may write %d bytes 1 s too early", left)
	}
	if left, _ := next.core.cgroups[id("/bb")].swap.left(later.Add(time.Second)); left != 256<<10 {
		t.Errorf("who owes nothing may write %d bytes", left)
	}
}

func TestADebtIsWrittenWhenItGrowsAndNotWhileItIsPaidBack(t *testing.T) {
	b := newBench(t, telemetry.Enforce, "", watchAll)
	keeper := &rememberer{}
	l := &Loop{Core: b.core, Keeper: keeper, Notify: b.core.notify}
	rate := b.core.swap.rate
	for _, step := range []struct {
		seconds int
		spends  float64 // seconds of the rate
		want    int
	}{{0, 0, 0}, {1, 60, 1}, {20, 0, 1}, {21, 30, 2}, {40, 0, 2}, {60, 0, 2}, {100, 0, 3}, {120, 0, 3}} {
		now := b.now.Add(time.Duration(step.seconds) * time.Second)
		if step.spends > 0 {
			b.core.swap.settle(now, 0, uint64(rate*step.spends))
		}
		l.remember(now)
		l.settles.Wait()
		if got := len(keeper.lists); got != step.want {
			t.Errorf("after %d s: written %d times, want %d", step.seconds, got, step.want)
		}
	}
}
