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

func TestADebtIsPaidBackWhoeverOwesIt(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBudget(1000, now)
	b.settle(now, 0, 5000)
	if got := b.owes(now.Add(time.Second)); got != 4*time.Second {
		t.Errorf("owes %v after a second, want 4 s", got)
	}
	if got := b.owes(now.Add(time.Minute)); got != 0 {
		t.Errorf("owes %v after a minute", got)
	}
	next := newBudget(1000, now.Add(2*time.Second))
	next.owe(now.Add(2*time.Second), b.owes(now.Add(2*time.Second)))
	if left, _ := next.left(now.Add(5 * time.Second)); left != 0 {
		t.Errorf("%d bytes to spend while it owes", left)
	}
	if left, _ := next.left(now.Add(6 * time.Second)); left != 1000 {
		t.Errorf("%d bytes a second after, want 1000", left)
	}
}

func TestWhoHasNoLimitOrMayWriteNothingOwesNothing(t *testing.T) {
	now := time.Unix(1000, 0)
	none, zero := budget{}, newBudget(0, now)
	none.settle(now, 0, 5000)
	zero.settle(now, 0, 5000)
	none.owe(now, time.Minute)
	if none.owes(now) != 0 || zero.owes(now) != 0 {
		t.Errorf("owe %v and %v", none.owes(now), zero.owes(now))
	}
	if _, limited := none.left(now); limited {
		t.Error("a debt made a limit where there was none")
	}
	much := newBudget(1, now)
	much.settle(now, 0, 1<<60)
	if got := much.owes(now); got != debtMost {
		t.Errorf("owes %v, want %v at most", got, debtMost)
	}
}

// Whenever an agent is ended and started again, and whatever requests cost beyond what
// was foreseen: the rate holds, but for less than debtLeast of it each time.
func TestOverAnyRestartsABudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate = 1000
		now := time.Unix(1000, 0)
		start, b := now, newBudget(rate, now)
		spent, over, restarts := 0.0, 0.0, 0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
				owed := b.owes(now)
				if b = newBudget(rate, now); owed >= debtLeast {
					b.owe(now, owed)
				}
				restarts++
				continue
			}
			left, _ := b.left(now)
			if left == 0 {
				continue
			}
			cost := left + uint64(rapid.IntRange(0, 20000).Draw(t, "more"))
			b.reserve(left)
			b.settle(now, left, cost)
			spent, over = spent+float64(cost), max(over, float64(cost-left))
			most := rate * (now.Sub(start).Seconds() + budgetWindow.Seconds() + float64(restarts)*debtLeast.Seconds())
			if spent > most+over+1 {
				t.Fatalf("spent %v, allowed %v and %v in flight", spent, most, over)
			}
		}
	})
}
