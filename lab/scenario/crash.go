package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The crash scenario: the agent is killed at each moment that its journal knows, while it has changed
// memory.high or is about to, and started again, and then at random moments (crash_random.go). Then
// every knob must be as its operator set it.
const (
	// crashAt is the variable by which a build for the lab kills itself: a point, or "point:n" for
	// the nth time it is passed.
	crashAt    = "MEMAGENT_CRASH_AT"
	crashBuild = "crashpoints" // its build tag

	// Times that each point is passed before the agent is killed there. To pass it so often, the
	// agent lends to as many cgroups: one loan is one write.
	crashShort = 1
	crashLong  = 3

	crashLoan   = 20 * time.Second // for the agent to lend, or to die
	crashBack   = 10 * time.Second // for a new agent to put things right
	crashPoll   = 100 * time.Millisecond
	crashWithin = 60 * time.Second // for each life and its aftermath
)

// crashPoints are the steps of the agent's journal, in order.
var crashPoints = []string{
	"before-journal", "journal-written", "journal-renamed", "after-journal", "after-write", "after-read-back",
	"before-restore", "after-restore", "before-clear", "after-clear",
}

var crash = Scenario{
	Name:     "crash",
	About:    "the agent is killed at every step of its journal, and at random: no knob stays changed",
	Law:      "memagent",
	Topology: oneNode,
	Suite:    true,
	Alone:    true,
	Files:    crashDisk(),
	Build:    crashBuild,
	Within: func(short bool) time.Duration {
		return time.Duration(len(crashPoints)*crashTimes(short))*crashWithin + form(short, randomShort, randomLong) + 3*setUpWithin
	},
	Run:    runCrash,
	Checks: checkCrash,
}

// crashFiles are what the borrowers read, in order.
var crashFiles = [crashLong]string{"file", randomSecond, "third"}

func crashDisk() (list []disk.File) {
	for _, name := range crashFiles {
		list = append(list, disk.File{Name: name, Size: loanFile})
	}
	return list
}

func crashTimes(short bool) int { return form(short, crashShort, crashLong) }

// lives counts what became of the agents.
type lives struct {
	all, killed int
	changed     int // lives after which a knob was not as the operator set it, before the next agent
	wrong       int // knobs that were not as the operator set them after the next agent
}

func runCrash(ctx context.Context, g *guest.Guest) (result.Run, error) {
	run := result.Run{Facts: map[string]float64{}, Artifacts: map[string]string{}}
	var apps []guest.Cgroup
	for n := range crashTimes(g.Spec.Short) {
		app, err := borrower(fmt.Sprintf("%s-%d", loanCgroup, n+1))
		if err != nil {
			return run, err
		}
		apps = append(apps, app)
	}
	// Made before the first look, so that its coming is not a difference.
	if _, err := guest.NewCgroup(guest.AgentCgroup); err != nil {
		return run, err
	}
	knobs, err := guest.ReadKnobs()
	if err != nil {
		return run, err
	}
	before, err := apps[0].Take()
	if err != nil {
		return run, err
	}
	start := time.Now()
	var l lives
	if g.Spec.Agent == "on" {
		for n := range crashTimes(g.Spec.Short) {
			for _, point := range crashPoints {
				if err := ctx.Err(); err != nil {
					return run, err
				}
				if n > 0 && strings.HasSuffix(point, "-clear") {
					continue // at the end all are taken out of the journal at once
				}
				if err := l.live(g, &run, apps[:n+1], knobs, fmt.Sprintf("%s:%d", point, n+1)); err != nil {
					return run, fmt.Errorf("killed at %s, %d. time: %w", point, n+1, err)
				}
			}
		}
	}
	now, err := guest.ReadKnobs()
	if err != nil {
		return run, err
	}
	run.Differences = append(run.Differences, now.Since(knobs)...)
	after, err := apps[0].Take()
	if err != nil {
		return run, err
	}
	run.Counters, run.ElapsedMS = after.Since(before), time.Since(start).Milliseconds()
	run.Facts["lives"], run.Facts["killed"] = float64(l.all), float64(l.killed)
	run.Facts["changed_lives"], run.Facts["wrong_knobs"] = float64(l.changed), float64(l.wrong+len(now.Since(knobs)))
	if g.Spec.Agent == "on" {
		if err := randomly(ctx, g, &run); err != nil {
			return run, err
		}
	}
	g.Logf("%d lives, %d killed at their point, %d of them left a knob changed; %d knobs were wrong afterwards",
		l.all, l.killed, l.changed, l.wrong)
	return run, nil
}

// live lets one agent lend to cgroups, and die at a point, and a second one put things right.
func (l *lives) live(g *guest.Guest, run *result.Run, apps []guest.Cgroup, knobs guest.Knobs, point string) error {
	config := lendConfig(law(g, "memagent"), loanCgroup+"-*")
	l.all++
	if err := guest.DropCaches(); err != nil {
		return err
	}
	var readers []*guest.Proc
	stop := func() {
		for _, r := range readers {
			r.Stop()
		}
	}
	defer stop()
	for i, app := range apps {
		r, err := borrow(app, crashFiles[i])
		if err != nil {
			return err
		}
		readers = append(readers, r)
	}
	a, err := guest.StartAgent(config, guest.Enforce, crashAt+"="+point)
	if err != nil {
		return err
	}
	if err := l.untilDead(a, apps); err != nil {
		return err
	}
	if !a.Killed() {
		run.Artifacts["survived-"+point+".jsonl"] = a.Transcript()
		g.Logf("the agent was not killed at %s, which it never passed", point)
	} else {
		l.killed++
	}
	stop() // nobody asks for memory any more
	left, err := guest.ReadKnobs()
	if err != nil {
		return err
	}
	if len(left.Since(knobs)) > 0 {
		l.changed++
	}
	second, err := guest.StartAgent(config, guest.Enforce)
	if err != nil {
		return err
	}
	defer second.Kill()
	if err := untilRight(second, knobs); err != nil {
		return err
	}
	if _, err := second.Stop(); err != nil {
		return err
	}
	now, err := guest.ReadKnobs()
	if err != nil {
		return err
	}
	if wrong := now.Since(knobs); len(wrong) > 0 {
		l.wrong += len(wrong)
		run.Artifacts["wrong-after-"+point+".jsonl"] = second.Transcript()
		for _, w := range wrong {
			run.Differences = append(run.Differences, point+": "+w)
		}
		// The next life begins as this one did.
		for _, app := range apps {
			if err := app.Set("memory.high", fmt.Sprint(loanHigh)); err != nil {
				return err
			}
		}
	}
	return nil
}

// untilDead waits for the agent's end. Once it has lent to all it is asked to end, which leads it
// past the points of undoing.
func (l *lives) untilDead(a *guest.Agent, apps []guest.Cgroup) error {
	deadline := time.After(crashLoan)
	tick := time.NewTicker(crashPoll)
	defer tick.Stop()
	for {
		select {
		case <-a.Ended():
			return nil
		case <-deadline:
			if err := a.Terminate(); err != nil {
				return err
			}
			select {
			case <-a.Ended():
				return nil
			case <-time.After(crashBack):
				a.Kill()
				return errors.New("the agent did not end when it was told to")
			}
		case <-tick.C:
			lent := 0
			for _, app := range apps {
				high, err := limit(app, "memory.high")
				if err != nil {
					return err
				}
				if high > loanHigh {
					lent++
				}
			}
			if lent == len(apps) {
				if err := a.Terminate(); err != nil {
					return err
				}
			}
		}
	}
}

// untilRight waits until an agent has put all knobs back, as long as that may take. That it did not
// is for the caller to see.
func untilRight(a *guest.Agent, knobs guest.Knobs) error {
	for deadline := time.Now().Add(crashBack); time.Now().Before(deadline); time.Sleep(crashPoll) {
		if err := a.Alive(); err != nil {
			return err
		}
		d, _ := a.Latest(loanCgroup + "-1")
		now, err := guest.ReadKnobs()
		if err != nil {
			return err
		}
		if d.Tick > 0 && len(now.Since(knobs)) == 0 {
			return nil
		}
	}
	return nil
}

func checkCrash(runs []result.Run) []result.Check {
	killed := func(r result.Run) float64 { return fact("killed")(r) / fact("lives")(r) }
	return []result.Check{
		least("killed", runs, killed, 1, "of all lives, each at its own step"),
		least("changed by the dead", runs, fact("changed_lives"), 1, "lives left a knob changed, or there was nothing to put right"),
		most("knobs not as they were", runs, fact("wrong_knobs"), 0, "after the next agent"),
		least("killed at random", runs, fact("random_changed"), 1, "kills left a limit changed"),
		most("limits not as they were", runs, fact("random_wrong"), 0, "after an agent killed at random and the next, or at the end"),
		most("somebody else's limit", runs, fact("random_strange"), 0, "looks at a value that nobody may have set there"),
	}
}
