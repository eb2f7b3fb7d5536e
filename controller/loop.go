package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

const (
	// rescanEvery is how often the tree is walked even when nothing was heard
	// of it: watches can be missing (limits) or lost (queue overflow).
	rescanEvery = 30 * time.Second
	// workers is how many requests run at once. Reclaim is bound by one CPU
	// each and by the swap device; more would only take both from workloads.
	workers = 4
	// shutdownGrace is how long the end of the loop waits for requests in
	// flight, whose chunks take about 50 ms: the service manager must not have
	// to kill.
	shutdownGrace = 2 * time.Second
	// requestDeadline bounds one request; what is left of it is decided anew
	// in the next tick, on fresh figures.
	requestDeadline = 2 * time.Second
)

const scanFailed = "part of the cgroup tree could not be listed"

// Loop runs a Core against a Host: it keeps the time, walks the tree, reads
// the samples and has workers carry requests out. The tick never waits for a
// worker.
type Loop struct {
	Core     *Core
	Host     Host
	Interval time.Duration
	Sink     telemetry.Sink
	Notify   Notifier
	// Ticks, where not nil, is told what each tick was like.
	Ticks telemetry.Ticks
	// Keeper writes knobs and puts them back when the loop ends. nil: no knob is
	// ever written.
	Keeper Keeper
	// Configs brings other configs to decide by, while the loop runs. nil: none
	// come.
	Configs <-chan Config

	ids      []memcg.ID
	watched  []memcg.ID
	one      memcg.Sample // reused for every cgroup
	host     memcg.HostSample
	lastScan time.Time
	gens     []memcg.Generation // reused for every cgroup
	results  chan Result
	running  int // requests whose result has not been received, without settings
	setting  int // settings whose result has not been received
	done     []Result
	settles  sync.WaitGroup // journal writes that nobody waits for but the end

	rests        []journal.Cooldown // as they are in the journal
	rememberedAt time.Time          // when they were written last
	remembering  atomic.Bool
	// keptAt and keptWall are when rests were taken for the journal, by the clock of
	// this process and by that on the wall; zero before the first time.
	keptAt, keptWall time.Time
	wallAhead        time.Duration // of what times of this process say; 0 but in tests
}

// Run ticks until ctx ends, then waits for requests in flight, takes a last
// look and returns nil. It returns an error only if the host could not be
// read at all at the start.
func (l *Loop) Run(ctx context.Context) error {
	workCtx, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	changed, err := l.begin(ctx)
	if err != nil {
		return err
	}
	events := l.listen(ctx)
	ticker := time.NewTicker(l.Interval)
	defer ticker.Stop()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	stale := false
	l.tick(workCtx, time.Now(), false, workers)
	for {
		if at, ok := l.Core.NextWake(); ok {
			wake.Reset(time.Until(at))
		} else {
			wake.Stop()
		}
		select {
		case <-ctx.Done():
			l.end(stopWork)
			return nil
		case r := <-l.results:
			l.received(r)
			l.Core.CameBack(r, time.Now())
		case _, ok := <-changed:
			if !ok {
				changed = nil // rescans go on
			}
			stale = true
		case next := <-l.Configs:
			l.reconfigure(workCtx, next, time.Now())
			ticker.Reset(l.Interval)
		case id, ok := <-events:
			if !ok {
				events = nil // ticks go on
			}
			l.Core.Heard(id, time.Now())
		case <-ticker.C:
			l.tick(workCtx, time.Now(), stale, workers-l.running)
			stale = false
		case <-wake.C:
			now := time.Now()
			l.Host.BeginTick()
			l.step(workCtx, now, l.look(func(id memcg.ID) Look { return l.Core.Woken(id, now) }), workers-l.running)
			l.told(now, true, nil)
		}
	}
}

// Once takes two samples an interval apart, decides, carries out what follows
// and returns when it is done.
func (l *Loop) Once(ctx context.Context) error {
	workCtx, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	if _, err := l.begin(ctx); err != nil {
		return err
	}
	l.Core.noKnobs = "a single round leaves nobody to put it back"
	l.tick(workCtx, time.Now(), false, 0)
	timer := time.NewTimer(l.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	}
	l.tick(workCtx, time.Now(), false, workers)
	if l.running == 0 {
		return nil
	}
	for l.running > 0 {
		select {
		case <-ctx.Done():
			stopWork()
			ctx = context.WithoutCancel(ctx)
		case r := <-l.results:
			l.received(r)
		}
	}
	l.tick(workCtx, time.Now(), false, 0)
	return nil
}

func (l *Loop) begin(ctx context.Context) (changed <-chan struct{}, err error) {
	l.results = make(chan Result, workers+setters)
	if l.Keeper != nil {
		l.Core.noKnobs = ""
		l.resume(time.Now())
	}
	changed, err = l.Host.Watch(ctx)
	if err != nil {
		l.Notify.Warn("watch", err, "new cgroups are found by looking every "+rescanEvery.String()+" only")
	}
	if err := l.rescan(time.Now()); err != nil {
		return nil, fmt.Errorf("listing the cgroups of this host: %w", err)
	}
	return changed, nil
}

// listen opens the stream of cgroups that met a limit; nil where there is none.
func (l *Loop) listen(ctx context.Context) <-chan memcg.ID {
	events, err := l.Host.Events(ctx)
	if err != nil {
		l.Notify.Warn("events", err, "a limit that is met is noticed at the next tick only")
		return nil
	}
	return events
}

// end waits for requests in flight, but not for ever, and takes a last look
// that acts on nothing, so that their outcomes are in the records.
func (l *Loop) end(stopWork context.CancelFunc) {
	until := time.Now().Add(putBackWithin)
	stopWork()
	grace := time.NewTimer(shutdownGrace)
	defer grace.Stop()
	for l.running+l.setting > 0 {
		select {
		case r := <-l.results:
			l.received(r)
		case <-grace.C:
			l.Notify.Warn("shutdown", nil, fmt.Sprintf("%d requests to the kernel have not come back; leaving them behind", l.running+l.setting))
			l.putBack(until)
			return
		}
	}
	l.Core.noKnobs = "memagent is ending"
	l.tick(context.Background(), time.Now(), false, 0)
	l.putBack(until)
}

func (l *Loop) received(r Result) {
	if r.Setting.Knob != "" {
		l.setting--
	} else {
		l.running--
	}
	l.done = append(l.done, r)
}

// tick is one round: discover, sample, decide, hand out, record.
func (l *Loop) tick(workCtx context.Context, now time.Time, stale bool, slots int) {
	l.Host.BeginTick()
	if stale || now.Sub(l.lastScan) >= rescanEvery {
		if err := l.rescan(now); err != nil {
			l.Notify.Warn("scan", err, scanFailed)
		}
	}
	err := l.Host.HostSample(&l.host)
	if err != nil {
		l.Notify.Warn("host", err, "what the host has could not be read in full; without its total memory nothing is decided")
	} else {
		l.Notify.Clear("host", "what the host has can be read again")
	}
	if !l.host.MemTotal.Known() {
		if err == nil {
			err = fmt.Errorf("the host's total memory is %s: %w", l.host.MemTotal, memcg.ErrInvalid)
		}
		l.told(now, false, err)
		return
	}
	l.Core.SeeHost(now, &l.host)
	l.step(workCtx, now, l.look(func(id memcg.ID) Look {
		if l.Core.Due(id, now) {
			return Sample
		}
		return NoLook
	}), slots)
	l.remember(now)
	l.told(now, false, nil)
}

// step has the core decide on what is read now, starts the workers and hands
// the records on.
func (l *Loop) step(workCtx context.Context, now time.Time, obs iter.Seq[Observation], slots int) {
	requests, records := l.Core.Step(now, &l.host, obs, l.done, slots)
	l.done = l.done[:0]
	for _, r := range requests {
		if r.Setting.Knob != "" {
			l.setting++
		} else {
			r.Reclaim.Deadline = min(requestDeadline, l.Interval)
			l.running++
		}
		go func() { l.results <- l.carryOut(workCtx, r) }()
	}
	for i := range records {
		l.Sink.Record(&records[i])
		if errors.Is(records[i].Err, memcg.ErrGone) {
			l.forget(records[i].Cgroup)
		}
	}
}

// forget lets go of what is kept of a cgroup that is gone.
func (l *Loop) forget(id memcg.ID) {
	l.Host.Forget(id)
	l.forgetKnobs(id)
}

// carryOut runs in a worker and may block.
func (l *Loop) carryOut(ctx context.Context, r Request) Result {
	if r.Setting.Knob != "" {
		return l.setKnob(ctx, r)
	}
	if r.Age {
		took, err := l.Host.Age(ctx, r.Reclaim.Cgroup)
		return Result{Request: r, Took: took, Err: err}
	}
	return Result{Request: r, Outcome: l.Host.Reclaim(ctx, r.Reclaim)}
}

// rescan walks the tree. The error is that nothing of it could be listed; what
// is watched then stays.
func (l *Loop) rescan(now time.Time) error {
	l.lastScan = now
	ids, err := l.Host.Cgroups(l.ids[:0])
	l.ids = ids
	switch {
	case err != nil && len(ids) == 0:
		return err
	case err != nil:
		l.Notify.Warn("scan", err, scanFailed)
	default:
		l.Notify.Clear("scan", "the cgroup tree can be listed again")
	}
	watched, gone := l.Core.Track(ids, err == nil, now)
	l.watched = append(l.watched[:0], watched...)
	for _, id := range l.Core.Unheard() {
		if err := l.Host.Listen(id); err != nil && !errors.Is(err, memcg.ErrGone) && !errors.Is(err, memcg.ErrUnsupported) {
			l.Notify.Warn("listen", err, "that this cgroup meets its limit is noticed at the next tick only")
		}
	}
	for _, id := range l.Core.Unwatched() {
		l.Host.Forget(id)
		l.Sink.Record(lastRecord(id, now, telemetry.ErrUnwatched))
	}
	for _, id := range gone {
		l.forget(id)
		l.Sink.Record(lastRecord(id, now, memcg.ErrGone))
	}
	return nil
}

// lastRecord tells why no more is told of a cgroup: it is gone (memcg.ErrGone), or
// there and no policy matches it any more (telemetry.ErrUnwatched).
func lastRecord(id memcg.ID, now time.Time, why error) *telemetry.Record {
	return &telemetry.Record{Time: now, Cgroup: id, Err: fmt.Errorf("cgroup %s: %w", id.Path, why)}
}

// look reads the watched cgroups that are wanted, parents before children.
func (l *Loop) look(wanted func(memcg.ID) Look) iter.Seq[Observation] {
	return func(yield func(Observation) bool) {
		for _, id := range l.watched {
			ob := Observation{ID: id}
			switch wanted(id) {
			case NoLook:
				continue
			case Glance:
				bytes, err := l.Host.Current(id)
				if ob.Current = memcg.Value(bytes); err != nil {
					ob.Err = err
				}
			case Sample:
				ob.Sample, ob.Err = &l.one, l.Host.Sample(id, &l.one)
				if ob.Err == nil && l.Core.WantsAges(id) {
					l.gens, ob.AgesErr = l.Host.Generations(id, l.gens[:0])
					ob.Ages = l.gens
				}
				if ob.Err == nil && l.Core.WantsParent(id) {
					_, ob.ParentMems, ob.ParentErr = l.Host.EffectiveMems(id)
				}
			}
			if !yield(ob) {
				return
			}
		}
	}
}
