package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The swap-insanity scenario, known from databases since 2010: a program whose memory must come from
// one node grows until that node is full, and the kernel swaps there while the other node has room.
// An agent that may steer says where else the memory may come from, before anything is swapped.
const (
	insanityBase   = 32 * mib  // of the program, used all the time
	insanityGrowth = 208 * mib // more, at insanityRate
	insanityRate   = 8 * mib   // a second
	insanityRoom   = 96 * mib  // left free on the full node at first
	insanityOther  = 0.5       // of the other node is taken
	insanityCgroup = "/db"
	insanityTick   = time.Second // the agent's interval

	insanityShort = 35 * time.Second // of which growing takes 26
	insanityLong  = 60 * time.Second

	// insanityFull is the part of a node's memory under which it counts as full here. Kernels with
	// transparent huge pages begin to reclaim there: khugepaged sets their min_free_kbytes to up
	// to a twentieth of a small machine (set_recommended_min_free_kbytes in mm/khugepaged.c).
	insanityFull   = 0.05
	insanityHas    = 0.25 // of a node's memory free is room
	insanityPages  = 1000 // pages that kernels swap, or there is no insanity
	insanityRepair = 2    // intervals
	// insanityLeft is how much of the program may still lie on the full node at the end.
	insanityLeft = 8.0 // MiB
)

var swapInsanity = Scenario{
	Name:     "swap-insanity",
	About:    "one node full, another half free: memory is steered there, and nothing is swapped",
	Law:      "memagent",
	Topology: "lopsided",
	Suite:    true,
	Within:   func(short bool) time.Duration { return insanityTime(short) + 4*setUpWithin },
	Run:      runSwapInsanity,
	Checks:   checkSwapInsanity,
}

func insanityTime(short bool) time.Duration { return form(short, insanityShort, insanityLong) }

func insanityConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: %s
policies:
  - name: insanity
    match:
      - path: %s
    law: %s
    squeeze: off
    numa:
      reclaim: lottery
      mems: avoid-short
`, insanityTick, insanityCgroup, law)
}

func runSwapInsanity(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	db, err := guest.NewCgroup(insanityCgroup)
	if err != nil {
		return run, err
	}
	base, err := db.Settle(setUpWithin, "anon", "--size", fmt.Sprint(insanityBase), "--node", "0", "--every", "500ms")
	if err != nil {
		return run, err
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	if err := occupy(); err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, insanityConfig(law(g, "memagent")), db)
	if err != nil {
		return run, err
	}
	defer agent.end()
	before, err := counters.TakeNode(0)
	if err != nil {
		return run, err
	}
	grows, err := db.Start("anon", "--size", fmt.Sprint(insanityGrowth), "--rate", fmt.Sprint(insanityRate), "--node", "0", "--every", "500ms")
	if err != nil {
		return run, err
	}
	s := steering{before: before}
	begun := time.Now()
	w, err := follow(ctx, db, idleSample, func(counters.Snapshot) (bool, error) {
		if err := s.look(db, time.Since(begun)); err != nil {
			return false, err
		}
		return time.Since(begun) >= insanityTime(g.Spec.Short), agent.alive(base, grows)
	})
	if err != nil {
		return run, err
	}
	w.fill(&run)
	run.PassMS = base.Passes(0)
	s.left = onNode(w.after, "anon", "0") / mib
	maps.Copy(run.Facts, s.facts())
	g.Logf("node 0 was full at %s, was steered away from at %s, and swapped %d pages while node 1 had room; mems are %s, and %.0f MiB of it are on node 0",
		moment(s.full), moment(s.steered), s.swapped, s.mems, s.left)
	return run, agent.finish(&run, w.start, db)
}

// occupy fills node 0 but for a little room, and a part of node 1, with anon that nobody uses.
func occupy() error {
	filler, err := guest.NewCgroup("/filler")
	if err != nil {
		return err
	}
	for id, leave := range []func(counters.Node) int64{
		func(n counters.Node) int64 { return int64(n.Free) - insanityRoom },
		func(n counters.Node) int64 { return int64(n.Free) - int64(float64(n.Total)*(1-insanityOther)) },
	} {
		n, err := counters.TakeNode(id)
		if err != nil {
			return err
		}
		size := leave(n)
		if size < mib {
			return fmt.Errorf("node %d has only %d MiB free, too little to fill: choose a machine with larger nodes", id, n.Free/mib)
		}
		if _, err := filler.Settle(setUpWithin, "anon", "--size", fmt.Sprint(size), "--node", fmt.Sprint(id)); err != nil {
			return err
		}
	}
	return nil
}

// steering is what is seen of a full node and of where else memory may come from.
type steering struct {
	before  counters.Node // node 0
	swapped uint64        // pages written by reclaim on node 0 while node 1 had room
	full    time.Duration // when node 0 was full, 0 for never
	steered time.Duration // when node 0 was no longer allowed, 0 for never
	mems    string        // the nodes allowed at the end
	left    float64       // of the program on node 0 at the end, in MiB
}

// look takes one look, at a time since the beginning.
func (s *steering) look(c guest.Cgroup, at time.Duration) error {
	full, err := counters.TakeNode(0)
	if err != nil {
		return err
	}
	other, err := counters.TakeNode(1)
	if err != nil {
		return err
	}
	if s.mems, err = c.Get("cpuset.mems.effective"); err != nil {
		return err
	}
	const written = "nr_vmscan_write" // of the node: pages that reclaim wrote, here to swap
	if float64(other.Free) >= insanityHas*float64(other.Total) {
		s.swapped = full.Stat[written] - s.before.Stat[written]
	}
	if s.full == 0 && float64(full.Free) < insanityFull*float64(full.Total) {
		s.full = at
	}
	if allowed := strings.FieldsFunc(s.mems, func(r rune) bool { return r == ',' || r == '-' }); s.steered == 0 && !slices.Contains(allowed, "0") {
		s.steered = at
	}
	return nil
}

// moment is a time for people; 0 is never.
func moment(d time.Duration) string {
	if d == 0 {
		return "never"
	}
	return d.Round(time.Second / 10).String()
}

// facts leaves out what did not happen.
func (s *steering) facts() map[string]float64 {
	f := map[string]float64{"insane_pages": float64(s.swapped), "left_mib": s.left}
	if s.full > 0 {
		f["full_ms"] = float64(s.full.Milliseconds())
	}
	if s.steered > 0 {
		f["steered_ms"] = float64(s.steered.Milliseconds())
		// Who steers before the node is full has nothing to repair.
		f["repair_ms"] = 0
		if s.full > 0 {
			f["repair_ms"] = float64(max(s.steered-s.full, 0).Milliseconds())
		}
	}
	return f
}

func checkSwapInsanity(runs []result.Run) []result.Check {
	repair := func(r result.Run) float64 { return fact("repair_ms")(r) / float64(insanityTick.Milliseconds()) }
	return []result.Check{
		alone("swapped on the full node, by the kernel", runs, fact("insane_pages"), insanityPages, "pages, while the other node had room"),
		most("swapped on the full node", runs, fact("insane_pages"), 0, "pages, while the other node had room"),
		most("steered away", runs, repair, insanityRepair, "intervals after the node was full"),
		most("left on the full node", runs, fact("left_mib"), insanityLeft, "MiB of the program"),
	}
}
