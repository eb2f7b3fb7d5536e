package scenario

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The reload-fight scenario: once the agent has lent, somebody else writes the operator's memory.high
// again every second, as a service manager does whenever it is reloaded. The agent may assert its
// value a few times; then the other one has won, which is said once.
const (
	fightEvery = time.Second
	fightLoan  = 30 * time.Second       // for the agent to lend
	fightReads = 100 * time.Millisecond // between two looks at memory.high
	fightShort = 100 * time.Second      // three asserts take 10, 20 and 40 s of pauses
	fightLong  = 180 * time.Second

	fightAsserts = 3  // the agent's default
	fightQuiet   = 15 // seconds of peace at the end
)

var reloadFight = Scenario{
	Name:     "reload-fight",
	About:    "another writer resets memory.high every second: the agent yields, and says so once",
	Law:      "memagent",
	Topology: oneNode,
	Suite:    true,
	Alone:    true,
	Files:    files(loanFile),
	Within:   func(short bool) time.Duration { return fightLoan + fightTime(short) + 2*setUpWithin },
	Run:      runReloadFight,
	Checks:   checkReloadFight,
}

func fightTime(short bool) time.Duration { return form(short, fightShort, fightLong) }

func runReloadFight(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	app, err := borrower(loanCgroup)
	if err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, lendConfig(law(g, "memagent"), loanCgroup), app)
	if err != nil {
		return run, err
	}
	defer agent.end()
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	reader, err := borrow(app, "file")
	if err != nil {
		return run, err
	}
	var f fight
	w, err := follow(ctx, app, fightReads, func(counters.Snapshot) (bool, error) {
		high, err := limit(app, "memory.high")
		if err != nil {
			return false, err
		}
		reset, over := f.look(time.Now(), high, fightTime(g.Spec.Short))
		if reset {
			if f.resets == 1 && agent.agent != nil {
				f.said = len(agent.agent.Notices())
			}
			if err := app.Set("memory.high", fmt.Sprint(loanHigh)); err != nil {
				return false, err
			}
		}
		return over, agent.alive(reader)
	})
	if err != nil {
		return run, err
	}
	w.fill(&run)
	maps.Copy(run.Facts, f.facts())
	if agent.agent != nil {
		lines := about(agent.agent.Notices()[f.said:], "memory.high")
		run.Facts["log_lines"] = float64(len(lines))
		g.Logf("the agent said of memory.high: %s", strings.Join(lines, "\n"))
	}
	g.Logf("lent: %t; %d resets, %d asserts, peace since %.0f s", !f.lent.IsZero(), f.resets, f.asserts, run.Facts["quiet_seconds"])
	return run, agent.finish(&run, w.start, app)
}

// fight is what is seen of memory.high while two write it. Nobody resets a value that was never
// changed: the fight begins with the first loan, or when none came.
type fight struct {
	begun, lent time.Time // lent is zero until the agent has lent
	next, last  time.Time // the next reset, and the last assert
	above       bool      // at the last look memory.high was not the operator's
	resets      int
	asserts     int
	said        int // notices of the agent before the fight
}

// look takes one look. It returns whether the operator's value is to be written now, and whether the
// fight is over after it has gone on for howLong.
func (f *fight) look(now time.Time, high uint64, howLong time.Duration) (reset, over bool) {
	if f.begun.IsZero() {
		f.begun, f.last = now, now
	}
	above := high != loanHigh
	switch {
	case above && f.lent.IsZero():
		f.lent, f.last, f.next = now, now, now
	case above && !f.above:
		f.asserts++
		f.last = now
	}
	f.above = above
	if f.lent.IsZero() {
		return false, now.Sub(f.begun) >= fightLoan
	}
	if !now.Before(f.next) {
		f.next, f.above = now.Add(fightEvery), false
		f.resets++
		reset = true
	}
	return reset, now.Sub(f.lent) >= howLong
}

// facts leaves out what nobody fought about.
func (f *fight) facts() map[string]float64 {
	if f.lent.IsZero() {
		return nil
	}
	return map[string]float64{
		"asserts": float64(f.asserts), "resets": float64(f.resets),
		"quiet_seconds": f.next.Sub(f.last).Seconds(),
	}
}

// about are the lines that mention a word.
func about(lines []string, word string) []string {
	var out []string
	for _, l := range lines {
		if strings.Contains(l, word) {
			out = append(out, l)
		}
	}
	return out
}

func checkReloadFight(runs []result.Run) []result.Check {
	return []result.Check{
		least("lent before the fight", runs, fact("resets"), 1, "resets, or there was nothing to fight about"),
		most("asserts", runs, fact("asserts"), fightAsserts, "times"),
		least("peace", runs, fact("quiet_seconds"), fightQuiet, "s before the end"),
		least("said", runs, fact("log_lines"), 1, "lines about memory.high"),
		most("said no more than once", runs, fact("log_lines"), 1, "lines about memory.high"),
	}
}
