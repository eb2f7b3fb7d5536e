package controller

import (
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/numapolicy"
	"github.com/memagent/memagent/telemetry"
)

const (
	// byNodeShare is the part of the time that requests by node may take of one
	// cgroup, a tenth. Where what lies on a node is young, its lists must be aged
	// for a request, which walks page tables: a build that allocates and frees all
	// the time cost half a second for 12 MiB, of a whole CPU. Plain reclaim ages
	// nothing. More spends CPU on picking a node that the workload needs itself.
	byNodeShare = 0.1
	// byNodeCredit is how much of it can be saved up: one request that takes a
	// lot at once, after a quiet time.
	byNodeCredit = 2 * time.Second
)

// allowance is the time that requests by node may take, which comes back slowly.
// The zero allowance is full.
type allowance struct {
	spent time.Duration // of byNodeCredit
	at    time.Time
}

// left reports whether another request by node may be made.
func (a *allowance) left(now time.Time) bool {
	if d := now.Sub(a.at); d > 0 {
		a.spent = max(a.spent-time.Duration(byNodeShare*float64(min(d, time.Hour))), 0)
		a.at = now
	}
	return a.spent < byNodeCredit
}

// spend books what a request took.
func (a *allowance) spend(now time.Time, took time.Duration) {
	a.left(now)
	a.spent += took
}

const (
	// dearer is how many times what plain reclaim takes for as much a request by
	// node may take. It looks at one node's lists and spares the others', so it is
	// the cheaper one where they are to be aged anyway; in a build on four nodes it
	// was two to three times as dear. Less gives up the choice of a node for the
	// noise of two figures, more pays for it with the workload's CPU.
	dearer = 2
	// priceLeast is how many bytes must have been taken before a price counts.
	priceLeast = 16 << 20
	// priceFade is for how long it does: what lies in a cgroup changes.
	priceFade = time.Minute
)

// price is what taking memory in one way has cost of late.
type price struct {
	took  time.Duration
	bytes uint64
	since time.Time
}

// book adds what came of a request; a price that is old begins anew.
func (p *price) book(now time.Time, took time.Duration, bytes uint64) {
	if now.Sub(p.since) > priceFade {
		*p = price{since: now}
	}
	p.took, p.bytes = p.took+took, p.bytes+bytes
}

// known returns the price in seconds a byte.
func (p *price) known(now time.Time) (v float64, ok bool) {
	return p.took.Seconds() / float64(max(p.bytes, 1)), p.bytes >= priceLeast && now.Sub(p.since) <= priceFade
}

const (
	// vainShare is the part of what was asked for that a request by node must give. In
	// a build what lay on the drawn node was gone with its process by then, and a
	// request that gave a tenth had aged the node's lists for 0.4 s. More gives up the
	// choice of a node where it works, less pays for what is not there.
	vainShare = 0.25
	// vainRest is for how long requests name no node after one that gave less; it
	// doubles up to vainRestMost with each in a row.
	vainRest     = 10 * time.Second
	vainRestMost = 5 * time.Minute
)

// vain is for how long no node is named, after requests that gave next to nothing.
type vain struct {
	until time.Time
	rest  time.Duration // of the last one
}

// gave takes in what came of a request by node.
func (v *vain) gave(now time.Time, taken, asked uint64) {
	if float64(taken) >= vainShare*float64(asked) {
		*v = vain{}
		return
	}
	v.rest = min(max(2*v.rest, vainRest), vainRestMost)
	v.until = now.Add(v.rest)
}

// paid books what a request has cost; forShort where it was for a short node's sake and
// not for a node that was drawn.
func (p *placing) paid(now time.Time, o *memcg.Outcome, forShort bool) {
	taken, ok := o.Reclaimed.Get()
	switch {
	case !ok || o.Writes == 0:
	case o.Request.Nodes.Empty():
		p.plain.book(now, o.Took, taken)
	default:
		p.byNode.book(now, o.Took, taken)
		if !forShort {
			p.vain.gave(now, taken, o.Request.Bytes)
		}
	}
}

// dear reports whether requests by node give so little, or cost so much more than
// plain ones, that the choice of a node is not worth it.
func (p *placing) dear(now time.Time) bool {
	if now.Before(p.vain.until) {
		return true
	}
	plain, ok1 := p.plain.known(now)
	one, ok2 := p.byNode.known(now)
	return ok1 && ok2 && one > dearer*plain
}

// costly is the rule of a request that would be for one node, had such requests
// not taken too much time of late, or too much for what they take, which may be next
// to nothing.
const costly = "by-node-costly"

// takeFromAll makes a wish one for every node where a node was drawn and may not
// be asked now. A short node that must be spared is spared all the same.
func takeFromAll(r *telemetry.Record, d *numapolicy.Decision) {
	r.NodeRule = costly
	for i := range d.Shares {
		if !d.Shares[i].FileOnly || d.Shares[i].Why == numapolicy.WhyEmpty {
			continue
		}
		if v, ok := r.Swappiness.Get(); ok && v >= mostlyAnon {
			r.Held = whyNowhere["short-gives-no-anon"]
			return
		}
		r.Swappiness = memcg.SwappinessOf(0)
		return
	}
}
