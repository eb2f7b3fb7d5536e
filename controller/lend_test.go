package controller

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memagent/memagent/workingset"
)

// atItsHigh is a cgroup that thrashes at a memory.high of 40 MiB and misses 100
// MiB, on a host that has plenty.
func atItsHigh() lendSight {
	return lendSight{
		now: time.Unix(1000, 0), seconds: 1, page: page,
		current: 40 * mib, high: 40 * mib, max: unlimited, ceiling: unlimited, pool: 1000 * mib,
		missed: 100 * mib, refaults: 1000, cost: 0.1, comesBack: true,
	}
}

// borrowing is the same one with 100 MiB lent and in use, and nothing missed.
func borrowing() (loan, lendSight) {
	v := atItsHigh()
	v.high, v.current, v.missed, v.refaults, v.cost, v.comesBack = 140*mib, 139*mib, 0, 0, 0, false
	return loan{base: 40 * mib, high: 140 * mib, asked: 140 * mib, before: 1000}, v
}

func TestWhatIsLent(t *testing.T) {
	full := down(40*mib+112*mib+512*1024, page) // what is missed and an eighth
	for _, tt := range []struct {
		name string
		set  func(*lendSight)
		high uint64
		held string
	}{
		{"what is missed, and a little more", func(*lendSight) {}, full, ""},
		{"no higher than the ceiling", func(v *lendSight) { v.ceiling = 60 * mib }, 60 * mib, ""},
		{"no higher than memory.max", func(v *lendSight) { v.max = 70 * mib }, 70 * mib, ""},
		{"no more than the host can spare", func(v *lendSight) { v.pool = 8 * mib }, 48 * mib, ""},
		{"a quarter more where what is out is not known", func(v *lendSight) { v.missed = 0 }, 50 * mib, ""},
		{"nothing where little comes back", func(v *lendSight) { v.missed, v.comesBack = 0, false }, 0, ""},
		{"nothing where it costs next to nothing", func(v *lendSight) { v.cost = lendCost / 2 }, 0, ""},
		{"nothing to one that is not at its high", func(v *lendSight) { v.current = 38 * mib }, 0, ""},
		{"to one whose events rise just below it", func(v *lendSight) { v.current, v.highRises = 38*mib, true }, full, ""},
		{"to one that is kept below it", func(v *lendSight) { v.current, v.keptBelow = 36*mib, 37*mib }, full, ""},
		{"nothing where memory.max binds", func(v *lendSight) { v.max = 40 * mib }, 0, heldByMax},
		{"nothing at the ceiling", func(v *lendSight) { v.ceiling = 40 * mib }, 0, "the ceiling is reached"},
		{"nothing of the reserve", func(v *lendSight) { v.pool = 0 }, 0, "the host has no more than its reserve"},
		{"nothing to a stream that would not fit", func(v *lendSight) { v.verdict, v.pool = workingset.Streaming, 50*mib }, 0,
			"what it reads in turn would not fit: the host has no more than its reserve"},
		{"all of it to a stream that fits", func(v *lendSight) { v.verdict = workingset.Streaming }, full, ""},
		{"nothing above max", func(v *lendSight) { v.high = unlimited }, 0, "memory.high is max: there is no limit to lend above"},
		{"nothing above 0", func(v *lendSight) { v.high = 0 }, 0, "memory.high is 0: its operator wants it emptied"},
		{"nothing while a write is in flight", func(v *lendSight) { v.pending = true }, 0, ""},
		{"nothing to one that is stopped at a limit of somebody else's", func(v *lendSight) { v.verdict = workingset.Throttled }, 0,
			"tasks are stopped at a memory.high that is not ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := atItsHigh()
			tt.set(&v)
			var l loan
			m := l.decide(&v)
			if m.high != tt.high || m.held != tt.held || m.restore || m.reclaim > 0 {
				t.Errorf("%+v, want memory.high %d, held %q", m, tt.high, tt.held)
			}
		})
	}
}

func TestALoanIsTakenBackInSteps(t *testing.T) {
	l, v := borrowing()
	l.high, v.high = 200*mib, 200*mib
	l.recall(backShort)
	m := l.decide(&v)
	if above := v.current + uint64(lendAbove*float64(v.current)); m.high < above || m.high > above+page || m.reclaim != 0 {
		t.Fatalf("first, memory.high goes to just above what is in use: %+v", m)
	}
	l.wrote(m.high)
	v.high = m.high
	if m = l.decide(&v); m.high != 0 || m.reclaim < 99*mib || m.restore {
		t.Fatalf("then what is above the base is reclaimed: %+v", m)
	}
	v.current = 80 * mib
	if m = l.decide(&v); m.high < v.current || m.high > 82*mib {
		t.Fatalf("then memory.high follows: %+v", m)
	}
	l.wrote(m.high)
	v.high, v.current = m.high, 39*mib
	if m = l.decide(&v); !m.restore {
		t.Fatalf("at last the base is put back: %+v", m)
	}
	l.wrote(0)
	v.high = 40 * mib
	if m = l.decide(&v); m.rule != "" || l.lent() != 0 || l.base != 40*mib {
		t.Errorf("and that is all: %+v, %d lent above %d", m, l.lent(), l.base)
	}
}

func TestALimitOfOursThatStopsTasksIsRaisedBeforeAnythingElse(t *testing.T) {
	l, v := borrowing()
	l.recall(backShort)
	v.verdict, v.current = workingset.Throttled, 140*mib
	m := l.decide(&v)
	if m.rule != "rescue" || m.high <= 140*mib {
		t.Fatalf("%+v", m)
	}
	l.wrote(m.high)
	v.high, v.verdict = m.high, workingset.Fits
	v.now = v.now.Add(time.Second)
	if m = l.decide(&v); m.reclaim > 0 {
		t.Errorf("taken back again at once: %+v", m)
	}
}

func TestALoanThatChangesNothingIsTakenBackAndNotMadeAgainForAWhile(t *testing.T) {
	l, v := borrowing()
	v.current, v.missed, v.refaults, v.cost, v.ceiling = 140*mib, 100*mib, 1000, 0.1, 140*mib
	cool := time.Minute
	for range 3 {
		var m lendMove
		for i := 0; l.back == keeps; i++ {
			if i > 20 {
				t.Fatalf("kept, though as much comes back as before: %+v", m)
			}
			m = l.decide(&v)
			v.now = v.now.Add(time.Second)
		}
		if got := l.until.Sub(v.now.Add(-time.Second)); got != cool {
			t.Errorf("cools down for %v, want %v", got, cool)
		}
		cool *= 2
		l.wrote(0)
		again := v
		again.high, again.current, again.ceiling = 40*mib, 40*mib, unlimited
		if m := l.decide(&again); m.held != "the last loan changed nothing" {
			t.Errorf("%+v", m)
		}
		v.now = l.until
		l.base, l.high, l.before = 40*mib, 140*mib, 1000
	}
}

func TestALoanGrowsBeforeItIsFullWhereItIsLessThanWhatIsMissed(t *testing.T) {
	l, v := borrowing()
	v.current, v.missed, v.cost = 60*mib, 160*mib, 0.1
	if m := l.decide(&v); m.rule != "lend" || m.high != 240*mib { // 60 + 160 + 20
		t.Errorf("%+v", m)
	}
	v.missed = 79 * mib
	if m := l.decide(&v); m.rule != "" {
		t.Errorf("what is missed fits: %+v", m)
	}
}

func TestALoanThatHelpsSomewhatIsKept(t *testing.T) {
	l, v := borrowing()
	v.current, v.missed, v.refaults, v.cost, v.ceiling = 140*mib, 100*mib, 700, 0.1, 140*mib
	for range 60 {
		if m := l.decide(&v); m.rule != "" {
			t.Fatalf("%+v", m)
		}
		v.now = v.now.Add(time.Second)
	}
}

func TestWhatIsLeftUnusedIsTakenBackAfterAWhile(t *testing.T) {
	l, v := borrowing()
	v.current = 100 * mib
	for range int(lendUnused / time.Second) {
		if m := l.decide(&v); m.rule != "" {
			t.Fatalf("%v after it was left: %+v", v.now.Sub(time.Unix(1000, 0)), m)
		}
		v.now = v.now.Add(time.Second)
	}
	if m := l.decide(&v); m.rule != "trim" || m.high < v.current || m.high > 103*mib {
		t.Errorf("%+v", m)
	}
}

func TestABorrowerWhoMissesWhatIsTakenIsLeftAloneTwiceAsLong(t *testing.T) {
	l, v := borrowing()
	for _, wait := range []time.Duration{lendIdle, 2 * lendIdle, 4 * lendIdle} {
		v.idleVerdict, v.cost = true, 0
		began := v.now
		for l.decide(&v); l.back == keeps; l.decide(&v) {
			v.now = v.now.Add(time.Second)
		}
		if got := v.now.Sub(began); got != wait {
			t.Errorf("asked after %v, want %v", got, wait)
		}
		v.cost = 2 * lendIdleCost
		if m := l.decide(&v); l.back != keeps || m.reclaim > 0 {
			t.Errorf("goes on taking: %+v", m)
		}
		v.idleVerdict = false
		l.decide(&v)
	}
}

func TestAnotherWritersValueIsTheNewBase(t *testing.T) {
	l, v := borrowing()
	v.high, v.current = 60*mib, 59*mib
	if m := l.decide(&v); m.rule != "" || l.base != 60*mib || l.lent() != 0 {
		t.Errorf("%+v, %d lent above %d", m, l.lent(), l.base)
	}
}

// Whatever is seen: memory.high is never set below the base, below what is in
// use, or above the ceiling and memory.max; nothing is reclaimed below the floor.
func TestNoLoanBreaksItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l loan
		v := lendSight{now: time.Unix(1000, 0), page: page, high: 40 * mib, max: unlimited, ceiling: unlimited}
		size := rapid.Uint64Range(0, 400*mib)
		grows := rapid.Bool().Draw(t, "lends for growth")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			v.seconds = rapid.Float64Range(0.01, 20).Draw(t, "seconds")
			v.now = v.now.Add(time.Duration(v.seconds * float64(time.Second)))
			v.current, v.floor, v.pool = size.Draw(t, "current"), size.Draw(t, "floor"), size.Draw(t, "pool")
			v.missed, v.cost = float64(size.Draw(t, "missed")), rapid.Float64Range(0, 0.2).Draw(t, "cost")
			v.refaults = rapid.Float64Range(0, 5000).Draw(t, "refaults")
			v.comesBack, v.highRises = rapid.Bool().Draw(t, "comes back"), rapid.Bool().Draw(t, "rises")
			v.idleVerdict = rapid.Bool().Draw(t, "idle")
			v.growth, v.interval = 0, time.Second
			if grows {
				v.growth = float64(size.Draw(t, "growth"))
			}
			v.verdict = rapid.SampledFrom([]workingset.Verdict{workingset.Fits, workingset.Streaming, workingset.Throttled}).Draw(t, "verdict")
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				l.recall(backShort)
			case 1:
				v.high = down(size.Draw(t, "foreign"), page)
			case 2:
				v.ceiling = size.Draw(t, "ceiling")
			case 3:
				v.max = size.Draw(t, "max")
			}
			was := v.high
			m := l.decide(&v)
			switch {
			case m.high > 0 && m.high < l.base, m.high > 0 && m.high < was && m.high < v.current:
				t.Fatalf("set to %d, base %d, current %d", m.high, l.base, v.current)
			case m.high > was && (m.high > v.ceiling || m.rule != "rescue" && (m.high > v.max || m.high-was > v.pool)):
				t.Fatalf("raised from %d to %d: ceiling %d, max %d, pool %d", was, m.high, v.ceiling, v.max, v.pool)
			case !grows && m.rule == "lend-growth":
				t.Fatalf("lent for a growth that is not lent for: %+v", m)
			case m.reclaim > v.current-min(v.current, v.floor):
				t.Fatalf("reclaims %d of %d above a floor of %d", m.reclaim, v.current, v.floor)
			case m.restore && v.current > max(l.base, l.peak):
				t.Fatalf("put back at %d, base %d", v.current, l.base)
			}
			if m.high > 0 {
				l.asked = m.high
				l.wrote(m.high)
				v.high = m.high
			} else if m.restore {
				v.high = l.base
				l.wrote(0)
			}
		}
	})
}

func TestWhatDoesNotComeBackIsAskedForMoreSeldom(t *testing.T) {
	l, v := borrowing()
	l.recall(backShort)
	asked := 0
	for range 60 {
		if m := l.decide(&v); m.reclaim > 0 {
			asked++
		}
		v.now = v.now.Add(time.Second)
	}
	if most := lendStuck + 2 + 60/int(lendStuckRest/time.Second); asked > most {
		t.Errorf("asked %d times in a minute, want %d at most", asked, most)
	}
}
