package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
)

// stage is the demonstration as it runs in the guest.
type stage struct {
	g      *guest.Guest
	groups []guest.Cgroup
	last   map[string]counters.Snapshot
	lastAt time.Time
	start  time.Time
	reader *guest.Proc // the busy container's workload
	agent  *guest.Agent
}

// Job runs the demonstration in a guest, sending a Sample every second.
func Job(ctx context.Context, g *guest.Guest) (int, error) {
	s := &stage{g: g, last: map[string]counters.Snapshot{}}
	if err := s.setUp(); err != nil {
		return 0, err
	}
	if err := s.show(ctx, "without the agent", lead); err != nil {
		return 0, err
	}
	end := End{Before: s.resident(), PassBefore: result.Median(s.reader.Passes(0))}

	var err error
	if s.agent, err = guest.StartAgent(config, guest.Enforce); err != nil {
		return 0, err
	}
	defer s.agent.Kill()
	began, first := time.Now(), s.reader.Count()
	if err := s.show(ctx, "agent enforces", work); err != nil {
		return 0, err
	}
	end.After, end.PassAfter = s.resident(), result.Median(s.reader.Passes(first))
	end.AgentMS = time.Since(began).Milliseconds()
	st, err := s.agent.Stop()
	if err != nil {
		return 0, err
	}
	end.AgentCPUMS, end.AgentKernelMS = st.MeasuredCPUMS, st.MeasuredKernelMS
	return 0, s.send(Sample{Phase: "done", ElapsedMS: time.Since(s.start).Milliseconds(), End: &end})
}

func (s *stage) send(sample Sample) error {
	raw, err := json.Marshal(sample)
	if err != nil {
		return fmt.Errorf("encoding a sample: %w", err)
	}
	s.g.Send(protocol.Message{Sample: raw})
	return nil
}

func (s *stage) setUp() error {
	if err := s.send(Sample{Phase: "setting up the containers"}); err != nil {
		return err
	}
	for _, path := range []string{idle, busy} {
		c, err := guest.NewCgroup(path)
		if err != nil {
			return err
		}
		s.groups = append(s.groups, c)
	}
	i, b := s.groups[0], s.groups[1]
	if _, err := i.Settle(setUp, "anon", "--size", fmt.Sprint(idleAnon)); err != nil {
		return err
	}
	if err := guest.DropCaches(); err != nil {
		return err
	}
	if _, err := i.Finish(setUp, "file", "--path", guest.DataDir+"/idle"); err != nil {
		return err
	}
	var err error
	s.reader, err = b.Settle(setUp, "anon", "--size", fmt.Sprint(busyAnon), "--every", busyEvery.String())
	s.start = time.Now()
	return err
}

// show sends a sample every second for a while.
func (s *stage) show(ctx context.Context, phase string, howLong time.Duration) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(howLong); time.Now().Before(end); {
		if err := s.look(phase); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := s.reader.Alive(); err != nil {
			return err
		}
		if s.agent != nil {
			if err := s.agent.Alive(); err != nil {
				return err
			}
		}
	}
	return s.look(phase)
}

// look takes one sample of all containers and sends it.
func (s *stage) look(phase string) error {
	now := time.Now()
	passed := now.Sub(s.lastAt)
	sample := Sample{Phase: phase, ElapsedMS: now.Sub(s.start).Milliseconds()}
	for _, c := range s.groups {
		snap, err := c.Take()
		if err != nil {
			return err
		}
		g := Group{
			Cgroup: c.Path, Resident: snap.Resident(),
			Anon: snap.Stat["anon"], File: snap.Stat["file"], Swap: snap.Swap,
		}
		if before, ok := s.last[c.Path]; ok {
			g.Refaults = float64(snap.Refaults()-before.Refaults()) / passed.Seconds()
			g.Stalled = 100 * float64(snap.PSISome-before.PSISome) / float64(passed.Microseconds())
		}
		if s.agent != nil {
			d, reclaimed := s.agent.Latest(c.Path)
			g.Decision, g.Reclaimed = d.Text, reclaimed
		}
		s.last[c.Path] = snap
		sample.Groups = append(sample.Groups, g)
	}
	s.lastAt = now
	return s.send(sample)
}

// resident is what each container takes, by the last look.
func (s *stage) resident() map[string]uint64 {
	out := map[string]uint64{}
	for path, snap := range s.last {
		out[path] = snap.Resident()
	}
	return out
}
