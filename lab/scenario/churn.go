package scenario

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The churn scenario, after cases of containers that vanish while an agent reads or writes their
// files: cgroups come and go many times within each tick. Names are used again at once, each time with
// other limits; those that go leave memory behind that stays charged to them. Some hold a little memory
// and no process, some reach their memory.max and are kept below it, and some are lent to.
const (
	churnIdle   = 100 // cgroups of a kind at a time
	churnTight  = 6
	churnLent   = 6
	churnEvery  = 100 * time.Millisecond // between two rounds
	churnWorker = 5                      // every so many rounds one with a process goes, in the others
	churnRound  = 4                      // so many of those without
	churnHolds  = 4                      // one in so many of which has memory: to charge it takes a guest a tenth of a second and more
	churnShort  = 75 * time.Second
	churnLong   = 10 * time.Minute
	churnTick   = time.Second      // the agent's interval
	churnWait   = 30 * time.Second // for the agent to end

	churnFile = 16 * mib  // read by those with a process, each its own
	churnHigh = 12 * mib  // and some pages, the memory.high of those that are lent to
	churnMax  = 16 * mib  // and some pages, the memory.max of those that are kept below it
	churnHeld = 256 << 10 // by those without a process
	churnRoom = "/churn"

	// What is held. A tick late by twice the interval is a late one on any machine; emulated on a busy
	// one, a tick takes what it takes.
	churnLeast = 200 // cgroups that came and went
	churnDying = 10  // of them that were gone with memory charged to them, at the same time
	churnGap   = 5   // s between two ticks
	churnEnd   = 10  // s from SIGTERM to the agent's end, with what it lent put back
	// MiB of the agent's own that the second half may add to the first. In the short form some two hundred
	// go between the two medians, so that 6 KiB left of each is less than a heap's settling, and only
	// the long form tells.
	churnMemory = 3
	// Its open files likewise, of a thousand: less than one left of each that went.
	churnOpen = 150
)

var churn = Scenario{
	Name:     "churn",
	About:    "hundreds of cgroups come and go within ticks, some while they are lent to or reclaimed from: nothing is left, nothing mixed up",
	Law:      "memagent",
	Topology: oneNode,
	Suite:    true,
	Alone:    true,
	Files:    churnFiles(),
	Within:   func(short bool) time.Duration { return churnTime(short) + 3*setUpWithin },
	Run:      runChurn,
	Checks:   checkChurn,
}

func churnTime(short bool) time.Duration { return form(short, churnShort, churnLong) }

func churnFiles() (out []disk.File) {
	for _, kind := range []struct {
		kind string
		n    int
	}{{"tight", churnTight}, {"lent", churnLent}} {
		for i := range kind.n {
			out = append(out, disk.File{Name: slotName(kind.kind, i), Size: churnFile})
		}
	}
	return out
}

func slotName(kind string, i int) string { return fmt.Sprintf("%s-%d", kind, i) }

// churnConfig is the agent's configuration. Cgroups without a process have a policy too: it would
// squeeze them.
func churnConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: %s
state_dir: %s
host:
  reserve: 128MiB
policies:
  - name: lent
    match:
      - path: %[3]s/lent-*
    law: %[4]s
    swappiness: 0
    squeeze: off
    high:
      lend: true
      ceiling: 256MiB
  - name: tight
    match:
      - path: %[3]s/tight-*
    law: %[4]s
    swappiness: 60
    headroom: 10%%
  - name: idle
    match:
      - path: %[3]s/**
    law: %[4]s
    squeeze:
      max_step: 5%%
      idle_age: 1s
`, churnTick, guest.StateDir, churnRoom, law)
}

func runChurn(ctx context.Context, g *guest.Guest) (result.Run, error) {
	run := result.Run{}
	room, err := newCrowd(g)
	if err != nil {
		return run, err
	}
	defer room.end()
	agent, err := accompany(ctx, g, churnConfig(law(g, "memagent")), room.first())
	if err != nil {
		return run, err
	}
	defer agent.end()
	w, err := followChurn(ctx, g, room, agent)
	if err != nil {
		return run, err
	}
	w.fill(&run)
	maps.Copy(run.Facts, room.facts())
	if agent.agent == nil {
		return run, nil
	}
	list := agent.agent.All()
	agent.agent.Within = churnWait
	g.Logf("%v", room.facts())
	if err := agent.finish(&run, w.start, room.first()); err != nil {
		return run, err
	}
	wrong := room.wrong()
	run.Differences = append(room.strange, wrong...)
	run.Facts["strange_values"], run.Facts["wrong_knobs"] = float64(len(room.strange)), float64(len(wrong))
	complaints := complaintsOf(agent.agent.Notices())
	run.Facts["complaints"] = float64(len(complaints))
	run.Facts["tick_gap_seconds"] = longestGap(list, w.start).Seconds()
	if st := run.AgentStats; st.Decisions > 0 {
		run.Facts["cpu_us_per_decision"] = 1000 * float64(st.MeasuredCPUMS) / float64(st.Decisions)
	}
	for _, line := range firstLines(complaints) {
		g.Logf("the agent complained: %s", line)
	}
	for _, line := range firstLines(run.Differences) {
		g.Logf("%s", line)
	}
	g.Logf("%.0f came and went, %.0f were lent to, %d requests; %.0f us of CPU a cgroup and tick; the longest time without a tick %.1f s",
		run.Facts["replaced"], run.Facts["lent_to"], run.AgentStats.Actions, run.Facts["cpu_us_per_decision"], run.Facts["tick_gap_seconds"])
	return run, nil
}

// firstLines are as many lines as a log takes.
func firstLines(lines []string) []string { return lines[:min(len(lines), 10)] }

// followChurn replaces cgroups for as long as the scenario takes, and looks at the agent's memory and
// open files every second.
func followChurn(ctx context.Context, g *guest.Guest, room *crowd, agent companion) (watched, error) {
	var own ownCost
	long := churnTime(g.Spec.Short)
	start, next, looked := time.Now(), 0, time.Time{}
	w, err := follow(ctx, guest.Cgroup{Path: churnRoom}, churnEvery, func(counters.Snapshot) (bool, error) {
		next++
		if err := room.round(next%churnWorker == 0); err != nil {
			return false, err
		}
		if agent.agent != nil && time.Since(looked) >= time.Second {
			looked = time.Now()
			if err := own.look(agent.agent.PID()); err != nil {
				return false, err
			}
		}
		return time.Since(start) >= long, agent.alive()
	})
	room.own = own
	return w, err
}
