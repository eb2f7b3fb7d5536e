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
)

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

// restsToKeep returns the cool-downs, and whether they are not in the journal.
func (l *Loop) restsToKeep(now time.Time) (list []journal.Cooldown, changed bool) {
	list = l.Core.Resting(now)
	if slices.EqualFunc(list, l.rests, sameRest) {
		return nil, false
	}
	l.rests = list
	return list, true
}

func (l *Loop) keepRests(list []journal.Cooldown) {
	if err := l.Keeper.Remember(list); err != nil {
		l.Notify.Warn("journal", err, "what was in vain may be tried again after a restart")
	}
}
