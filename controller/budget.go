package controller

import "time"

// budgetWindow is how much credit a budget can hold: a cgroup that was idle
// for a day must not buy a day's worth of swap writes at once. Ten seconds is
// long enough for one request at the default interval of 5 s and short
// against what wears a device or fills a queue.
const budgetWindow = 10 * time.Second

// debtMost bounds what is remembered of a debt, as the time that pays it back: the
// journal's own bound.
const debtMost = 24 * time.Hour

// budget is a token bucket in bytes. The zero budget has no limit, which is
// not the same as a rate of 0: that allows nothing.
//
// Invariants: credit <= rate * budgetWindow at all times; credit may be
// negative after a request that cost more than was foreseen, and then nothing
// is allowed until time has paid it back. What a request may cost at most is
// reserved while it is in flight; what it did cost is charged after it was
// measured.
type budget struct {
	limited  bool
	rate     float64 // bytes per second
	credit   float64 // bytes
	reserved float64 // bytes, of requests in flight
	at       time.Time
}

// newBudget returns a budget that is empty at first: a restart buys nothing. Credit
// is not remembered, since an agent that is killed again and again would spend the
// same one each time; debt is (owes, owe).
func newBudget(bytesPerSecond uint64, now time.Time) budget {
	return budget{limited: true, rate: float64(bytesPerSecond), at: now}
}

func (b *budget) full() float64 { return b.rate * budgetWindow.Seconds() }

func (b *budget) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.credit = min(b.credit+b.rate*d.Seconds(), b.full())
		b.at = now
	}
}

// left returns how many bytes may be spent at now; limited is false when the
// budget has no limit.
func (b *budget) left(now time.Time) (bytes uint64, limited bool) {
	if !b.limited {
		return 0, false
	}
	b.refill(now)
	return uint64(max(b.credit-b.reserved, 0)), true
}

// reserve sets aside what a request in flight may cost.
func (b *budget) reserve(bytes uint64) { b.reserved += float64(bytes) }

// settle gives a reservation back and charges what was really spent.
func (b *budget) settle(now time.Time, reserved, spent uint64) {
	b.reserved -= float64(reserved)
	if !b.limited {
		return
	}
	b.refill(now)
	b.credit -= float64(spent)
}

// owes returns how long the debt of requests that cost more than was foreseen is
// still being paid back; 0 where there is none.
func (b *budget) owes(now time.Time) time.Duration {
	if !b.limited || b.rate <= 0 {
		return 0
	}
	debt := -b.credit/b.rate - max(now.Sub(b.at), 0).Seconds()
	return time.Duration(min(max(debt, 0), debtMost.Seconds()) * float64(time.Second))
}

// owe has a budget go on with a debt of an earlier run.
func (b *budget) owe(now time.Time, left time.Duration) {
	if !b.limited || left <= 0 {
		return
	}
	b.refill(now)
	b.credit = min(b.credit, 0) - b.rate*left.Seconds()
}

// setRate goes on with another rate. A budget that had no limit starts empty.
func (b *budget) setRate(bytesPerSecond uint64, now time.Time) {
	if !b.limited {
		*b = budget{limited: true, rate: float64(bytesPerSecond), at: now, reserved: b.reserved}
		return
	}
	b.refill(now)
	b.rate = float64(bytesPerSecond)
	b.credit = min(b.credit, b.full())
}
