package controller

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

// Notifier takes what is worth saying once to the operator, by key.
// telemetry.Notices is one.
type Notifier interface {
	Warn(key string, err error, text string)
	Clear(key, text string)
	Forget(key string)
}

// Observation is what reading one cgroup in this tick gave: a sample or an
// error. Between two samples it may be a glance, which has neither but Current.
type Observation struct {
	ID     memcg.ID
	Sample *memcg.Sample
	Err    error
	// Current is memory.current in bytes, of a glance.
	Current memcg.Field
	// Ages is what the multi-gen LRU tells of the cgroup, where WantsAges
	// asked for it; nil where it tells nothing, with AgesErr for the reason.
	Ages    []memcg.Generation
	AgesErr error
	// ParentMems are the nodes that the parent of the cgroup may use, where
	// WantsParent asked for them; ParentErr is why they are not known.
	ParentMems memcg.NodeMask
	ParentErr  error
}

// Request is one thing for a worker to do: carry Reclaim out, with Age have the
// kernel start a new generation on every list of Reclaim.Cgroup, or, where
// Setting names a knob, see to that, after as much of Reclaim as can be had in a
// bounded time.
type Request struct {
	Reclaim memcg.Reclaim
	Age     bool
	Setting Setting
}

// Result is what came of a Request: an Outcome, or for Age and for a Setting how
// long it took (for Age: of CPU time) and the error.
type Result struct {
	Request
	Outcome memcg.Outcome
	Took    time.Duration
	Err     error
	Set     journal.Result // of a Setting with a value
	Undone  journal.Undone // of a Setting without
}

// Core decides. It has no goroutines, files or clock; the caller hands in the
// time, the readings and the outcomes, and carries the requests out. Not safe
// for concurrent use.
type Core struct {
	cfg    *config.Config
	mode   telemetry.Mode
	self   string // cgroup of the agent, "" when unknown
	notify Notifier

	tick    uint64
	cgroups map[memcg.ID]*cgroup
	watched []memcg.ID // sorted by path
	turn    int        // who is first to be given a free worker
	// inFlight has an entry from BEFORE a request is handed out until its
	// outcome came back: the bytes of swap writes reserved for it. There is
	// one request for each cgroup at a time, also when the cgroup is gone.
	inFlight map[memcg.ID]uint64
	swap     budget // swap writes of the whole host

	// setting has the cgroups with a knob's write in flight, of which each has
	// one at a time, and settings those that this step hands out.
	setting  map[memcg.ID]bool
	settings []Request
	noKnobs  string // why no knob is written at all, "" if they are
	// rests are cool-downs of an earlier run, until their cgroups are found.
	rests map[memcg.ID][]journal.Cooldown
	// leaving are cgroups whose policy went and whose knobs are put back.
	leaving []leaving

	borrowers []*cgroup // those with a loan
	till      till
	lottery   numapolicy.Lottery[*cgroup]

	// swappiness tells whether this kernel's memory.reclaim takes one; only a
	// request can find out (case c30).
	swappiness support
	disobeyed  int  // requests with swappiness 0 in a row that swapped
	noMax      bool // nothing here takes anon alone
	swapless   bool // the host has no swap, at the last step
	// noAges is set when requests by age turned out not to work here.
	noAges bool
	ager   ager
	gens   workingset.Generations // reused
	nodes  nodes

	describer Describer
	payloads  Payloads
	unwatched []memcg.ID

	requests []Request
	records  []telemetry.Record
	tape     *tape
}

type support uint8

const (
	unknown support = iota
	supported
	unsupported
)

// NewCore returns a core that has seen nothing yet. self is the path of the
// agent's own cgroup, "" if it is outside the tree that the host shows. mode
// overrides the configured mode.
func NewCore(cfg *config.Config, mode telemetry.Mode, self string, notify Notifier, now time.Time) *Core {
	return &Core{
		cfg:      cfg,
		mode:     mode,
		self:     self,
		notify:   notify,
		cgroups:  make(map[memcg.ID]*cgroup),
		inFlight: make(map[memcg.ID]uint64),
		setting:  make(map[memcg.ID]bool),
		noKnobs:  noJournal,
		swap:     newBudget(uint64(cfg.Host.Swap.WriteBudget), now),
	}
}

// Track takes the list of all cgroups that exist and starts to watch those
// that a policy matches. When the list is complete, those that are not in it
// are forgotten. It returns the watched ones, sorted by path, and those that
// are no longer watched. Both slices are the caller's to read until the next
// call.
func (c *Core) Track(all []memcg.ID, complete bool, now time.Time) (watched, gone []memcg.ID) {
	c.tape.tracking(c, all)
	c.unwatched = c.unwatched[:0]
	if c.describer != nil {
		c.describer.Round(all, complete)
		c.payloads = FindPayloads(all)
	}
	here := make(map[memcg.ID]bool, len(all))
	for _, id := range all {
		if id.Path == "/" {
			continue
		}
		if cg, known := c.cgroups[id]; known {
			here[id] = true
			c.askAgain(cg, now)
			continue
		}
		who := c.ask(id)
		policy := c.policyFor(id, &who)
		if policy == nil {
			continue
		}
		here[id] = true
		c.watch(id, policy, who, now)
	}
	for id := range c.cgroups {
		if complete && !here[id] {
			gone = append(gone, id)
			c.forget(id)
		}
	}
	slices.SortFunc(gone, byPath)
	c.sortWatched()
	c.tape.tracked(c, all, complete, now)
	return c.watched, gone
}

// placeInTree finds the cgroups that may not be acted on because of where they
// are: the agent's own and its ancestors, and those with a watched descendant
// that may be acted on, or might if the agent enforced. Reclaim works on the whole
// subtree, so acting on both would ask the same pages twice under two policies; the
// innermost policy wins.
func (c *Core) placeInTree() {
	covered := make(map[string]bool)
	for _, id := range c.watched {
		if c.cgroups[id].policy.Observe {
			continue
		}
		for dir := path.Dir(id.Path); dir != "/" && dir != "." && !covered[dir]; dir = path.Dir(dir) {
			covered[dir] = true
		}
	}
	for _, id := range c.watched {
		cg := c.cgroups[id]
		switch {
		case within(c.self, id.Path):
			cg.held = heldSelf
		case covered[id.Path]:
			cg.held = heldInner
		case cg.held == heldInner:
			cg.held = ""
		}
	}
}

const (
	heldSelf  = "memagent itself runs in it"
	heldInner = "policies of cgroups inside it act there"
)

// within reports whether p is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir) && len(p) > len(dir) && p[len(dir)] == '/'
}

func (c *Core) modeOf(cg *cgroup) telemetry.Mode {
	if cg.policy.Observe {
		return telemetry.Observe
	}
	return c.mode
}

func (c *Core) forget(id memcg.ID) {
	if cg := c.cgroups[id]; cg != nil && cg.loan.lent() > 0 {
		cg.loan.end()
		c.countBorrower(cg)
	}
	delete(c.cgroups, id)
	for _, kind := range noticeKinds {
		c.notify.Forget(kind + " " + id.Path)
	}
}

// noticeKinds are the kinds of notice about one cgroup; the key is the kind
// and the path.
var noticeKinds = []string{"container", "sample", "reclaim", "swappiness", "owner", string(memcg.KnobHigh), string(memcg.KnobSwapMax), string(memcg.KnobMems), "lend", "throttled"}

// Due reports whether a watched cgroup should be sampled in a tick at now: not
// when its last samples failed and it is left alone for a while. Ticks come a
// little early or late; half an interval decides.
func (c *Core) Due(id memcg.ID, now time.Time) bool {
	cg, ok := c.cgroups[id]
	return ok && !cg.retryAt.After(now.Add(c.cfg.Interval/2))
}

// Step is one tick: outcomes that came back since the last one, then a
// decision for each observation, one after the other, so that a caller can
// reuse one Sample for all. slots is how many requests can be carried out at
// once from now on. The returned slices are valid until the next call.
func (c *Core) Step(now time.Time, host *memcg.HostSample, obs iter.Seq[Observation], done []Result, slots int) ([]Request, []telemetry.Record) {
	c.tick++
	c.requests, c.records = c.requests[:0], c.records[:0]
	if n := len(c.watched); cap(c.records) < n {
		// One for each, and some for glances: growing by appending takes up to a quarter more.
		c.records = make([]telemetry.Record, 0, n+n/32)
	}
	c.swapless = !swapWritable(host)
	c.ager.wants, c.nodes.offers = c.ager.wants[:0], c.nodes.offers[:0]
	for _, d := range done {
		switch {
		case d.Setting.Knob != "":
			c.wasSet(now, d)
		case d.Age:
			c.aged(now, d)
		default:
			c.settle(now, host, d.Outcome)
		}
	}
	c.recallShort(host)
	for ob := range c.tape.looking(obs, now) {
		if ob.Current.Known() {
			if r, ok := c.glance(now, host, ob); ok {
				c.records = append(c.records, r)
			}
			continue
		}
		c.records = append(c.records, c.decide(now, host, ob))
	}
	c.relieve(host)
	c.handOut(now, host, slots)
	c.dropHeld(now)
	c.putBackLeaving()
	c.release()
	c.tape.stepped(c.noKnobs, done, slots, now)
	return c.requests, c.records
}

// decide turns one observation into a record and, in the record, the wish.
func (c *Core) decide(now time.Time, host *memcg.HostSample, ob Observation) telemetry.Record {
	cg, ok := c.cgroups[ob.ID]
	if !ok {
		return telemetry.Record{Time: now, Tick: c.tick, Cgroup: ob.ID, Err: fmt.Errorf("sample of %s: %w", ob.ID.Path, memcg.ErrGone)}
	}
	r := telemetry.Record{Time: now, Tick: c.tick, Cgroup: cg.id, Policy: cg.policy.Name, Mode: c.modeOf(cg), Done: cg.done, Settings: cg.set}
	cg.who.tell(&r)
	cg.done, cg.set = nil, nil
	if ob.Err != nil {
		r.Err = ob.Err
		if errors.Is(ob.Err, memcg.ErrGone) {
			c.forget(ob.ID)
			return r
		}
		cg.failed(now, c.cfg.Interval)
		c.notify.Warn("sample "+cg.id.Path, ob.Err, "this cgroup is left alone until it can be read again")
		return r
	}
	if cg.failures > 0 {
		cg.failures, cg.retryAt = 0, time.Time{}
		c.notify.Clear("sample "+cg.id.Path, "the cgroup can be read again")
	}

	s := ob.Sample
	if !cg.sampledAt.IsZero() {
		r.Elapsed = now.Sub(cg.sampledAt)
	}
	own := cg.own
	_, busy := c.inFlight[cg.id]
	own.Known = own.Known && !busy
	in := workingset.Input{Sample: s, Host: host, Elapsed: r.Elapsed, Own: own, ClassicLRU: host.ClassicLRU()}
	cg.guard.see(s, c.setting[cg.id])
	in.Gens, in.GuardHeld = c.ages(ob), cg.guard.held
	cg.see(ob.Ages)
	d := workingset.Decide(&cg.state, in, cg.law)
	cg.own = workingset.Own{Known: !busy}

	r.Law, r.Verdict, r.Rule = cg.law.Law.String(), d.Verdict.String(), d.Rule
	r.Current, r.Swap = s.Current, s.SwapCurrent
	r.Anon, r.File = s.Stat.Get(memcg.StatAnon), s.Stat.Get(memcg.StatFile)
	r.RefaultAnon = since(s.Stat.Get(memcg.StatRefaultAnon), &cg.refaultA)
	r.RefaultFile = since(s.Stat.Get(memcg.StatRefaultFile), &cg.refaultF)
	r.Stall = since(s.Pressure.Some.Total, &cg.stall)
	cg.show(&r, s, &d)
	cg.sampledAt, cg.closely = now, false
	cg.verdict, cg.hold, cg.moves = d.Verdict, d.Hold, d.Intent.Kind == workingset.KindMoveAnon
	cg.file, _ = r.File.Get()
	if current, ok := s.Current.Get(); ok {
		cg.current = current
		rate, _ := d.Signals.FillRate.Get()
		if r.Elapsed < fillWindow {
			rate = 0 // of a moment: a batch of charges would look like a flood
		}
		cg.fill.see(now, float64(current), rate, busy)
		cg.sawAfter(now, current)
	}
	cg.wakeAt = c.nextLook(now, cg)

	r.Want, r.Swappiness, r.Floor = d.Intent.Bytes, d.Intent.Swappiness, d.Intent.Floor
	r.Because, r.Clipped, r.OlderThan = d.Because, d.Clipped, d.Intent.OlderThan
	if r.Want > 0 && d.Intent.Kind == workingset.KindHeadroom && cg.race().lost(now, &cg.hold) {
		r.Held = "it fills faster than it can be reclaimed: its limit is left to the kernel for now"
	}
	c.steer(now, host, cg, ob, &d, &r)
	c.considerLoan(now, host, cg, s, &d, &r)
	r.GuardHeld = c.considerGuard(now, host, cg, s, &d)
	r.Guarded = cg.guard.held
	c.place(now, host, cg, s, &d, &r)
	c.clamp(host, cg, &r)
	if in.Gens != nil {
		c.considerAging(now, host, cg, &d.Signals, &r)
	}
	return r
}

// since returns the growth of a counter over what *last holds and moves *last
// forward.
func since(f memcg.Field, last *memcg.Field) memcg.Field {
	d, ok := f.Since(*last)
	*last = f
	switch {
	case ok:
		return memcg.Value(d)
	case !f.Known():
		return f
	}
	return memcg.Field{}
}
