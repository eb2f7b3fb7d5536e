package status

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// Board keeps the latest of every watched cgroup and a bounded past. It is fed
// by the loop and may be asked from any goroutine.
type Board struct {
	config    func() telemetry.ConfigState
	predicted *telemetry.Predictions

	mu        sync.Mutex
	packer    packer
	agent     Agent
	host      Host
	cgroups   map[memcg.ID]*history
	gone      []*history // oldest first, at most MaxGone
	requests  uint64
	reclaimed uint64
}

// NewBoard returns an empty board of the agent of a version, which started at
// now. config is asked when the board is, from any goroutine, and so is predicted,
// which somebody else feeds.
func NewBoard(version string, now time.Time, config func() telemetry.ConfigState, predicted *telemetry.Predictions) *Board {
	return &Board{
		agent:  Agent{Version: version, PID: os.Getpid(), Started: now},
		config: config, predicted: predicted, cgroups: make(map[memcg.ID]*history),
	}
}

// Record takes a record.
func (b *Board) Record(r *telemetry.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Acted {
		b.requests++
	}
	if r.Done != nil {
		if v, ok := r.Done.Freed().Get(); ok {
			b.reclaimed += v
		}
	}
	h := b.cgroups[r.Cgroup]
	if telemetry.ErrorKind(r.Err) == "gone" {
		if h != nil {
			b.bury(h, r.Time)
		}
		return
	}
	if h == nil {
		h = &history{id: r.Cgroup}
		b.cgroups[r.Cgroup] = h
	}
	h.latest.see(r)
	h.add(&b.packer, r, b.depth())
}

// depth is how many past records each cgroup may have now.
func (b *Board) depth() int { return max(1, min(MaxDepth, MaxRecords/max(1, len(b.cgroups)))) }

// bury keeps a cgroup that is gone for a while.
func (b *Board) bury(h *history, now time.Time) {
	delete(b.cgroups, h.id)
	h.gone = now
	if len(b.gone) == MaxGone {
		b.gone = slices.Delete(b.gone, 0, 1)
	}
	b.gone = append(b.gone, h)
}

// Ticked takes what a tick was like.
func (b *Board) Ticked(t *telemetry.Tick) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agent.InFlight = t.InFlight
	if t.Early {
		return
	}
	b.agent.Ticks++
	b.agent.Mode, b.agent.IntervalMS = string(t.Mode), t.Interval.Milliseconds()
	began := t.Began
	b.agent.LastTick, b.agent.LastTickUS, b.agent.Trouble = &began, t.Took.Microseconds(), ""
	if t.Err != nil {
		b.agent.Trouble = t.Err.Error()
	}
	b.host = hostOf(t.Host)
}

func hostOf(s *memcg.HostSample) Host {
	h := Host{MemTotal: number(s.MemTotal), MemAvailable: number(s.MemAvailable), SwapTotal: number(s.SwapTotal), SwapFree: number(s.SwapFree)}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.HasMemory {
			h.Nodes = append(h.Nodes, Node{Node: int(n.ID), MemTotal: number(n.MemTotal), MemFree: number(n.MemFree)})
		}
	}
	return h
}

// rowsAtOnce is how many rows are copied under the lock before it is let go
// again: some tens of microseconds, which is what a tick may have to wait.
const rowsAtOnce = 128

// Status returns the whole table as it is now.
func (b *Board) Status(now time.Time) Status {
	b.mu.Lock()
	s := Status{Version: Version, Agent: b.agent, Host: b.host, Now: now}
	s.Agent.Requests, s.Agent.Reclaimed = b.requests, b.reclaimed
	all := make([]*history, 0, len(b.cgroups))
	for _, h := range b.cgroups {
		all = append(all, h)
	}
	b.mu.Unlock()
	s.Predicted = b.predicted.ByPolicy()
	cost := telemetry.OwnCost()
	c := b.config()
	s.Agent.Config = Config{Name: c.Name, Sum: c.Sum, Policies: c.Policies, Since: c.Since}
	if c.Err != nil {
		s.Agent.Config.Refused = c.Err.Error()
	}
	s.Agent.CPUMS, s.Agent.PeakRSS = cost.CPU.Milliseconds(), cost.PeakRSS

	slices.SortFunc(all, func(x, y *history) int { return strings.Compare(x.id.Path, y.id.Path) })
	s.Cgroups = make([]Cgroup, 0, len(all))
	for some := range slices.Chunk(all, rowsAtOnce) {
		b.mu.Lock()
		for _, h := range some {
			s.Cgroups = append(s.Cgroups, h.wire())
		}
		b.mu.Unlock()
	}
	return s
}

// Detail explains one cgroup. Where name is none that the board knows, ok is
// false and others lists what may have been meant.
func (b *Board) Detail(name string, now time.Time) (d Detail, others []string, ok bool) {
	want := full(name)
	b.mu.Lock()
	h := b.find(want)
	if h == nil {
		paths := make([]string, 0, len(b.cgroups))
		for id := range b.cgroups {
			paths = append(paths, id.Path)
		}
		b.mu.Unlock()
		return Detail{}, near(want, paths), false
	}
	d = Detail{Version: Version, Now: now, Cgroup: h.wire()}
	if !h.gone.IsZero() {
		gone := h.gone
		d.Gone = &gone
	}
	past := make([]told, h.count)
	for i := range past {
		e := h.at(i)
		r := e.record(h.id, &b.packer.words)
		past[i].record.CopyFrom(&r)
		past[i].since, past[i].times = e.since, e.times
	}
	b.mu.Unlock()

	for i := range past {
		d.Past = append(d.Past, past[i].wire())
	}
	if n := len(past); n > 0 {
		d.Explained, d.Tick = past[n-1].record.Explain(), past[n-1].record.Tick
	}
	return d, nil, true
}
