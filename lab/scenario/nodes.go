package scenario

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

const (
	// askChunk is how much one write to memory.reclaim asks for, so that no write blocks for long.
	askChunk = 8 * mib
	// statsSettle is how long the kernel may keep a change out of memory.stat (FLUSH_TIME in its
	// mm/memcontrol.c is 2 s), and a little more.
	statsSettle = 3 * time.Second
)

// ask has the kernel reclaim from a cgroup as it sees fit, and returns how much it would not give,
// in bytes.
func ask(c guest.Cgroup, bytes int64) (refused int64, err error) {
	for left := bytes; left > 0; left -= askChunk {
		n := min(left, askChunk)
		err := c.Reclaim(n)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			refused += n
		case err != nil:
			return refused, err
		}
	}
	return refused, nil
}

// onNode is what a cgroup has on a node, in bytes.
func onNode(s counters.Snapshot, key, node string) float64 { return float64(s.Numa[key][node]) }

// fell is by how much a cgroup's memory on a node became less, in bytes; growth is negative.
func fell(w watched, key, node string) float64 {
	return onNode(w.before, key, node) - onNode(w.after, key, node)
}

// alone checks that the kernel without the agent shows the trouble a scenario is about. Where it does
// not, the other checks prove nothing.
func alone(name string, runs []result.Run, f measure, limit float64, unit string) result.Check {
	off := result.Of(runs, "off")
	if len(off) == 0 {
		return result.Skip(name, needsOff)
	}
	v, words := f.of(off)
	return result.AtLeast(name, v, limit, fmt.Sprintf(" %s, or there is no trouble; got %s", unit, words))
}

// near checks that a figure with the agent differs from what was asked for by a part of at most
// limit. What the kernel gives without the agent is no measure: it stops some percent off.
func near(name string, runs []result.Run, f measure, asked, limit float64, unit string) result.Check {
	on := result.Of(runs, "on")
	if len(on) == 0 {
		return result.Skip(name, needsOn)
	}
	a, own := f.of(on)
	return result.AtMost(name, math.Abs(a/asked-1), limit, fmt.Sprintf(" apart from what was asked for, %.0f; %s %s", asked, own, unit))
}
