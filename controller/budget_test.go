package controller

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestIdleForADayBuysNoStorm(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBudget(1000, now)
	if left, limited := b.left(now.Add(24 * time.Hour)); !limited || left != 10_000 {
		t.Errorf("%d bytes after a day, want ten seconds' worth", left)
	}
}

func TestABudgetOfZeroAllowsNothingAndNoBudgetAllowsAll(t *testing.T) {
	now := time.Unix(0, 0)
	zero := newBudget(0, now)
	if left, limited := zero.left(now.Add(time.Hour)); !limited || left != 0 {
		t.Errorf("a budget of 0 has %d bytes, limited %v", left, limited)
	}
	var none budget
	if _, limited := none.left(now); limited {
		t.Error("no budget limits")
	}
}

func TestOverAnyTimeABudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate = 1000
		now := time.Unix(0, 0)
		b := newBudget(rate, now)
		start, spent := now, uint64(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			left, _ := b.left(now)
			ask := min(left, uint64(rapid.IntRange(0, 20000).Draw(t, "bytes")))
			b.reserve(ask)
			b.settle(now, ask, ask)
			spent += ask
			most := rate*now.Sub(start).Seconds() + rate*budgetWindow.Seconds()
			if float64(spent) > most+1 {
				t.Fatalf("spent %d, allowed %v", spent, most)
			}
			if b.credit > b.full() || b.reserved != 0 {
				t.Fatalf("credit %v of %v, reserved %v", b.credit, b.full(), b.reserved)
			}
		}
	})
}

func TestRestartsBuyNothing(t *testing.T) {
	now := time.Unix(0, 0)
	var got uint64
	for range 100 {
		b := newBudget(1000, now)
		now = now.Add(100 * time.Millisecond)
		left, _ := b.left(now)
		got += left
	}
	if got > 10_000 {
		t.Errorf("%d bytes in 10 s of restarts, the rate allows 10000", got)
	}
}
