package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The second part of the crash scenario: agents are killed at random moments, one after the other,
// while they lend to two cgroups. A third one is nobody's borrower. All three have limits of their
// own, so that a value that ends up in the wrong cgroup is seen, and one of them is removed and made
// again with another limit now and then while no agent lives.
const (
	randomShort  = 40 * time.Second // of lives, as many as fit
	randomLong   = 20 * time.Minute
	randomKills  = 200 // in the long form, unless the time is over before
	randomLeast  = 100 * time.Millisecond
	randomMost   = 3500 * time.Millisecond // a loan takes two or three intervals of a second
	randomLook   = 20 * time.Millisecond   // between two looks at the three limits
	randomAnew   = 10                      // every so many kills a cgroup is made anew
	randomSecond = "second"                // the second borrower's file
	randomEnd    = 10 * time.Second        // for the last agent to put things right, and to end
)

// plot is one cgroup whose memory.high is watched.
type plot struct {
	guest.Cgroup
	file   string // what is read there; "" for nothing
	own    uint64 // what its operator has set
	reader *guest.Proc
}

// plots are the three cgroups. Their limits are watched by a goroutine of its own.
type plots struct {
	mu      sync.Mutex // held while a limit is changed by its operator
	all     []*plot
	strange []string // what was seen that nobody may have written
	looks   int
}

func newPlots() (*plots, error) {
	p := &plots{all: []*plot{
		{Cgroup: guest.Cgroup{Path: "/lend-a"}, file: "file", own: loanHigh},
		{Cgroup: guest.Cgroup{Path: "/lend-b"}, file: randomSecond, own: loanHigh - 4*mib},
		{Cgroup: guest.Cgroup{Path: "/other"}, own: loanHigh + 8*mib},
	}}
	for _, one := range p.all {
		if err := one.make(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (o *plot) make() (err error) {
	if o.Cgroup, err = guest.NewCgroup(o.Path); err != nil {
		return err
	}
	return o.Set("memory.high", fmt.Sprint(o.own))
}

func (o *plot) read() (err error) {
	if o.file == "" {
		return nil
	}
	o.reader, err = o.Settle(setUpWithin, "file", "--path", guest.DataDir+"/"+o.file, "--loops", "0", "--every", "300ms")
	return err
}

// anew removes a cgroup and makes it again, with another limit.
func (p *plots) anew(o *plot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	o.reader.Stop()
	// Its pages belong to its parent then; who reads them again is charged for them.
	var err error
	for late := time.Now().Add(setUpWithin); time.Now().Before(late); time.Sleep(randomLook) {
		if err = os.Remove(o.Dir()); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("removing a cgroup: %w", err)
	}
	o.own ^= 2 * mib
	if err := o.make(); err != nil {
		return err
	}
	if err := guest.DropCaches(); err != nil {
		return err
	}
	return o.read()
}

// look compares each limit with what it may be: the operator's own value, or more where there is a
// borrower, and never what another cgroup's operator has set.
func (p *plots) look() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	for _, o := range p.all {
		high, err := limit(o.Cgroup, "memory.high")
		if err != nil {
			return err
		}
		if !p.may(o, high) {
			p.strange = append(p.strange, fmt.Sprintf("memory.high of %s was %d, its operator's is %d", o.Path, high, o.own))
		}
	}
	return nil
}

func (p *plots) may(o *plot, high uint64) bool {
	if high == o.own {
		return true
	}
	if o.file == "" || high < o.own {
		return false
	}
	for _, other := range p.all {
		if high == other.own {
			return false
		}
	}
	return true
}

// changed are the limits that are not their operators' now.
func (p *plots) changed() (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.all {
		high, err := limit(o.Cgroup, "memory.high")
		if err != nil {
			return n, err
		}
		if high != o.own {
			n++
		}
	}
	return n, nil
}

// watch looks until it is told to end.
func (p *plots) watch() (end func() error) {
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(randomLook)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				done <- nil
				return
			case <-tick.C:
			}
			if err := p.look(); err != nil {
				done <- err
				return
			}
		}
	}()
	return func() error { close(stop); return <-done }
}

// randomly kills agents at random moments and has the last one put things right.
func randomly(ctx context.Context, g *guest.Guest, run *result.Run) error {
	p, err := newPlots()
	if err != nil {
		return err
	}
	knobs, err := guest.ReadKnobs()
	if err != nil {
		return err
	}
	if err := guest.DropCaches(); err != nil {
		return err
	}
	for _, o := range p.all {
		if err := o.read(); err != nil {
			return err
		}
		if o.reader != nil {
			defer func() { o.reader.Stop() }()
		}
	}
	end := p.watch()
	config := lendConfig(law(g, "memagent"), "/lend-*")
	seed := uint64(time.Now().UnixNano())
	draw := rand.New(rand.NewPCG(seed, 0))
	kills, changed, wrong := 0, 0, 0
	for began := time.Now(); kills < randomKills && time.Since(began) < form(g.Spec.Short, randomShort, randomLong); {
		if err := ctx.Err(); err != nil {
			return err
		}
		a, err := guest.StartAgent(config, guest.Enforce)
		if err != nil {
			return err
		}
		n, err := p.live(a, randomLeast+time.Duration(draw.Int64N(int64(randomMost-randomLeast))))
		a.Kill()
		if err != nil {
			return fmt.Errorf("kill %d (seed %d): %w", kills, seed, err)
		}
		if wrong += n; n > 0 {
			run.Artifacts[fmt.Sprintf("wrong-after-kill-%d.jsonl", kills)] = a.Transcript()
		}
		kills++
		if n, err = p.changed(); err != nil {
			return err
		}
		changed += min(n, 1)
		if kills%randomAnew == 0 {
			if err := p.anew(p.all[1]); err != nil {
				return err
			}
		}
	}
	if err := p.last(config, knobs, run); err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	run.Differences = append(run.Differences, p.strange...)
	run.Facts["random_kills"], run.Facts["random_changed"] = float64(kills), float64(changed)
	run.Facts["random_wrong"], run.Facts["random_strange"] = run.Facts["random_wrong"]+float64(wrong), float64(len(p.strange))
	g.Logf("%d kills at random moments (seed %d), after %d a limit was not its operator's; %d were not when the next agent had begun; of %d looks %d found a value that nobody may have set",
		kills, seed, changed, wrong, p.looks, len(p.strange))
	return nil
}

// live lets an agent live for some time, and counts the limits that are not their operators' when it
// has begun: what its predecessor had left is undone before its first decision, and its own loans
// come two intervals later.
func (p *plots) live(a *guest.Agent, howLong time.Duration) (wrong int, err error) {
	over := time.After(howLong)
	tick := time.NewTicker(randomLook)
	defer tick.Stop()
	for begun := false; ; {
		select {
		case <-over:
			return wrong, nil
		case <-a.Ended():
			return wrong, a.Alive()
		case <-tick.C:
		}
		if begun {
			continue
		}
		if d, _ := a.Latest(p.all[0].Path); d.Tick > 0 {
			begun = true
			if wrong, err = p.changed(); err != nil {
				return wrong, err
			}
		}
	}
}

// last has one more agent undo what was left, end in order, and compares every knob of the guest.
func (p *plots) last(config string, knobs guest.Knobs, run *result.Run) error {
	for _, o := range p.all {
		if o.reader != nil {
			o.reader.Stop()
		}
	}
	a, err := guest.StartAgent(config, guest.Enforce)
	if err != nil {
		return err
	}
	defer a.Kill()
	for late := time.Now().Add(randomEnd); time.Now().Before(late); time.Sleep(crashPoll) {
		if d, _ := a.Latest(p.all[0].Path); d.Tick > 0 {
			break
		}
	}
	if _, err := a.Stop(); err != nil {
		return err
	}
	// What an operator changed while no agent lived is not a difference.
	for _, o := range p.all {
		knobs[o.Dir()+"/memory.high"] = fmt.Sprintf("%d\n", o.own)
	}
	now, err := guest.ReadKnobs()
	if err != nil {
		return err
	}
	wrong := now.Since(knobs)
	for _, w := range wrong {
		run.Differences = append(run.Differences, "after random kills: "+w)
	}
	if len(wrong) > 0 {
		run.Artifacts["wrong-at-the-end.jsonl"] = a.Transcript()
	}
	run.Facts["random_wrong"] = float64(len(wrong))
	return nil
}
