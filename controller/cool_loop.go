package controller

import (
	"slices"
	"time"

	"github.com/memagent/memagent/journal"
)

const (
	// rememberEvery is the least time between two writes of cool-downs: one that a
	// kill -9 loses costs one more attempt, the journal's file costs the disk a sync
	// each time.
	rememberEvery = 10 * time.Second
	// rememberWithin is how much the end of a cool-down may differ from what is
	// written before it is written again: its time goes by samples.
	rememberWithin = 30 * time.Second

	journalAgain = "the journal can be written again"
)

// The journal has the end of a cool-down as the clock on the wall shows it, since no
// other is read the same way by the next process. That clock may be set at any time;
// the loop goes by the one of its process, which is not.

// resume takes over the cool-downs that an earlier run has left. They are written
// again soon: what is left of one that was cut, since the clock was set back, would
// else be cut anew at every start and never end.
func (l *Loop) resume(now time.Time) {
	l.rests = l.Keeper.Cooldowns()
	moveRests(l.rests, l.onTheWall(now), now)
	for _, d := range l.rests {
		l.Core.Rest(d, now)
	}
}

// moveRests has cool-downs end as long after to as they would after from.
func moveRests(list []journal.Cooldown, from, to time.Time) {
	for i := range list {
		list[i].Until = to.Add(list[i].Until.Sub(from))
	}
}

// onTheWall is a moment as others see it, without the clock of this process in it.
func (l *Loop) onTheWall(now time.Time) time.Time { return now.Round(0).Add(l.wallAhead) }

// wallMoved reports whether the clock on the wall was set since the cool-downs were
// taken for the journal, or they never were.
func (l *Loop) wallMoved(now, wall time.Time) bool {
	if l.keptAt.IsZero() {
		return true
	}
	return (wall.Sub(l.keptWall) - now.Sub(l.keptAt)).Abs() >= rememberWithin
}

// sameRest reports whether a cool-down need not be written again for another one. A
// debt is as long as what is left of it, and need not be written for getting less.
func sameRest(a, b journal.Cooldown) bool {
	if a.Cgroup != b.Cgroup || a.Why != b.Why {
		return false
	}
	later := a.Until.Sub(b.Until)
	if a.Why == coolSwap {
		return later.Abs() < debtLeast
	}
	return a.Length == b.Length && later.Abs() < rememberWithin
}

// remember writes the cool-downs where they are others than those in the journal.
// Nobody waits for the disk but the end.
func (l *Loop) remember(now time.Time) {
	if l.Keeper == nil || now.Sub(l.rememberedAt) < rememberEvery || l.remembering.Load() {
		return
	}
	list, changed := l.restsToKeep(now)
	if !changed {
		return
	}
	l.rememberedAt = now
	l.remembering.Store(true)
	l.settles.Go(func() {
		l.keepRests(list)
		l.remembering.Store(false)
	})
}

// restsToKeep returns the cool-downs as the journal has them, and whether they are
// not in it.
func (l *Loop) restsToKeep(now time.Time) (list []journal.Cooldown, changed bool) {
	list = l.Core.Resting(now)
	wall := l.onTheWall(now)
	if slices.EqualFunc(list, l.rests, sameRest) && (len(list) == 0 || !l.wallMoved(now, wall)) {
		return nil, false
	}
	l.rests, l.keptAt, l.keptWall = list, now, wall
	list = slices.Clone(list)
	moveRests(list, now, wall)
	return list, true
}

func (l *Loop) keepRests(list []journal.Cooldown) {
	if err := l.Keeper.Remember(list); err != nil {
		l.Notify.Warn("journal", err, "what was in vain may be tried again after a restart")
		return
	}
	l.Notify.Clear("journal", journalAgain)
}
