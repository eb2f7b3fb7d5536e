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

// costly is the rule of a request that would be for one node, had such requests
// not taken too much time of late.
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
