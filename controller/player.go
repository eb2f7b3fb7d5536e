package controller

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/recording"
	"github.com/memagent/memagent/telemetry"
)

// Player has a Core decide on what a recording holds. By the recorded config it
// decides what the recorded run has decided, record for record.
//
// By another config it tells what that would have asked for, and no more: the
// samples are still those of the recorded run, so nothing that it asks for shows
// in them. Each of its requests counts as come back by its next step, with an
// outcome that is not known, which charges swap budgets in full. No knob is
// written.
type Player struct {
	Sink   telemetry.Sink
	Notify Notifier
	// Config is decided by instead of the recorded ones; nil: by those.
	Config *config.Config
	Mode   telemetry.Mode // with Config

	core    *Core
	started time.Time
	host    memcg.HostSample
	obs     []Observation
	samples []*memcg.Sample // for obs, reused
	draws   drawn
	who     told
	open    []Request // of another config, to be answered
}

// notPlayed is why a replay by another config writes no knob.
const notPlayed = "a replay by another config changes no limit: the samples would not show it"

// Play decides on a whole recording. The error is nil where it ends as it
// should, recording.ErrCut where it was cut short; what came before that was
// played.
func (p *Player) Play(r *recording.Reader) error {
	var e recording.Event
	for {
		err := r.Next(&e)
		if errors.Is(err, io.EOF) && !errors.Is(err, recording.ErrCut) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.Feed(r, &e); err != nil {
			return err
		}
	}
}

// Feed decides on one event, which was read from r, as Play does for all. It
// does not keep it. An error ends the replay.
func (p *Player) Feed(r *recording.Reader, e *recording.Event) error {
	if p.core == nil {
		p.started = r.Header.Time()
	}
	if err := p.event(e); err != nil {
		return fmt.Errorf("event %d of the recording: %w", r.Events(), err)
	}
	return nil
}

func (p *Player) event(e *recording.Event) error {
	now := p.started.Add(e.At)
	if e.Kind == recording.Configured {
		return p.configure(e, now)
	}
	if p.core == nil {
		return errors.New("it does not begin with a config")
	}
	switch e.Kind {
	case recording.Described:
		w := e.Who
		w.Annotations, w.Faults = slices.Clone(w.Annotations), slices.Clone(w.Faults)
		p.who[e.Cgroup] = w
		p.core.DescribeBy(p.who)
	case recording.Tracked:
		p.track(e, now)
	case recording.HostSeen:
		p.host = e.Host
		p.host.Nodes = slices.Clone(e.Host.Nodes)
		p.core.SeeHost(now, &p.host)
	case recording.Looked:
		p.look(e)
	case recording.Stepped:
		p.step(e, now)
	case recording.CameBack:
		for i := range e.Done {
			if p.Config == nil {
				p.core.CameBack(replayed(&e.Done[i], p.started), now)
			}
		}
	case recording.Heard:
		p.core.Heard(e.Cgroup, now)
	case recording.Rested:
		p.core.Rest(journal.Cooldown{Cgroup: e.Cgroup, Until: p.started.Add(e.Rest.Until), Length: e.Rest.Length, Why: e.Rest.Why}, now)
	}
	return nil
}

func (p *Player) configure(e *recording.Event, now time.Time) error {
	cfg, mode := p.Config, p.Mode
	if cfg == nil {
		var err error
		if cfg, err = config.Parse("the recorded config", []byte(e.Config.Text)); err != nil {
			return fmt.Errorf("this version does not take the config that the recording was made with; name one with -c: %w", err)
		}
		mode = telemetry.Mode(e.Config.Mode)
	}
	switch {
	case p.core == nil:
		p.who = told{}
		p.core = NewCore(cfg, mode, e.Config.Self, p.Notify, now)
		if e.Config.Draws {
			p.core.DrawFrom(&p.draws)
		}
	case p.Config == nil:
		for _, id := range p.core.Reconfigure(cfg, mode, now).Released {
			p.Sink.Record(lastRecord(id, e.Time(), telemetry.ErrUnwatched))
		}
	}
	return nil
}

func (p *Player) track(e *recording.Event, now time.Time) {
	_, gone := p.core.Track(e.Cgroups, e.Complete, now)
	p.core.Unheard()
	for _, id := range p.core.Unwatched() {
		p.Sink.Record(lastRecord(id, e.Time(), telemetry.ErrUnwatched))
	}
	for _, id := range gone {
		delete(p.who, id)
		p.Sink.Record(lastRecord(id, e.Time(), memcg.ErrGone))
	}
}

// look keeps an observation for the next step. Another config may not watch the
// cgroup.
func (p *Player) look(e *recording.Event) {
	if _, watched := p.core.cgroups[e.Cgroup]; !watched && p.Config != nil {
		return
	}
	n := len(p.obs)
	if n == len(p.samples) {
		p.samples = append(p.samples, &memcg.Sample{})
	}
	ob := Observation{
		ID: e.Cgroup, Err: e.Err, Current: e.Glance, Ages: slices.Clone(e.Ages), AgesErr: e.AgesErr,
		ParentMems: e.Parent, ParentErr: e.ParErr,
	}
	if e.Err == nil && !e.Glance.Known() {
		p.samples[n].CopyFrom(&e.Sample)
		ob.Sample = p.samples[n]
	}
	p.obs = append(p.obs, ob)
}

func (p *Player) step(e *recording.Event, now time.Time) {
	var done []Result
	if p.Config == nil {
		p.core.noKnobs = e.NoKnobs
		for i := range e.Done {
			done = append(done, replayed(&e.Done[i], p.started))
		}
	} else {
		p.core.noKnobs = notPlayed
		for _, r := range p.open {
			done = append(done, Result{Request: r, Outcome: memcg.Outcome{Request: r.Reclaim}})
		}
	}
	p.draws = drawn{e.Draws, 0}
	requests, records := p.core.Step(now, &p.host, slices.Values(p.obs), done, e.Slots)
	p.open = append(p.open[:0], requests...)
	p.obs = p.obs[:0]
	for i := range records {
		records[i].Time = e.Time()
		p.Sink.Record(&records[i])
	}
}

// drawn gives numbers again that were drawn before. Where another config draws
// more of them, or among others, they come round again.
type drawn struct {
	numbers []uint64
	next    int
}

// Uint64N returns the next number.
func (d *drawn) Uint64N(n uint64) uint64 {
	if len(d.numbers) == 0 {
		return n / 2
	}
	v := d.numbers[d.next%len(d.numbers)]
	d.next++
	return v % n
}
