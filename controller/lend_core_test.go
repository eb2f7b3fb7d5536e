package controller

import (
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

const lendAll = `
policies:
  - name: all
    match: [{path: /**}]
    squeeze: off
    high: {lend: true}
`

func lendBench(t *testing.T) *bench {
	b := newBench(t, telemetry.Enforce, "", lendAll)
	b.core.noKnobs = ""
	b.track(id("/a"))
	return b
}

func TestConsideringALoanAllocatesNothing(t *testing.T) {
	b := lendBench(t)
	cg := b.core.cgroups[id("/a")]
	cg.loan = loan{base: 40 * mib, high: 140 * mib, asked: 140 * mib}
	cg.heldOn = make([]shortNode, 0, 2)
	b.core.borrowers = []*cgroup{cg}
	s := &memcg.Sample{Current: memcg.Value(100 * mib), High: memcg.LimitOf(140 * mib), Max: memcg.Unlimited(), NodesState: memcg.Present,
		Nodes: make([]memcg.NodeStats, 2)}
	s.Stat.Set(memcg.StatFile, memcg.Value(90*mib))
	for i := range s.Nodes {
		s.Nodes[i].ID = memcg.NodeID(i)
		s.Nodes[i].Set(memcg.NodeFile, memcg.Value(45*mib))
	}
	d := workingset.Decision{Verdict: workingset.Fits}
	host := twoNodes(500, 300, 300)
	b.core.recallShort(host) // makes room for the nodes
	if n := testing.AllocsPerRun(100, func() {
		r := telemetry.Record{Elapsed: time.Second}
		b.core.recallShort(host)
		b.core.considerLoan(b.now, host, cg, s, &d, &r)
		if r.Lending.Lent != 100*mib || r.Lending.Used != 60*mib {
			t.Fatalf("%+v", r.Lending)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheSwappinessOfTakingBackIsFileFirstAsFarAsThePolicyLets(t *testing.T) {
	auto := workingset.Swappiness{Kind: workingset.Auto, Base: 60, Min: 20, Max: 180}
	for _, tt := range []struct {
		name  string
		s     workingset.Swappiness
		stuck int
		takes support
		want  memcg.Swappiness
	}{
		{"the lowest of auto", auto, 0, supported, memcg.SwappinessOf(20)},
		{"the highest where that frees nothing", auto, lendStuck, supported, memcg.SwappinessOf(180)},
		{"never above what is fixed", workingset.Swappiness{Kind: workingset.Fixed}, lendStuck, supported, memcg.SwappinessOf(0)},
		{"file alone where the policy says nothing", workingset.Swappiness{}, 0, supported, memcg.SwappinessOf(0)},
		{"the kernel's own where that frees nothing", workingset.Swappiness{}, lendStuck, supported, memcg.Swappiness{}},
		{"the kernel's own where none can be passed", workingset.Swappiness{}, 0, unsupported, memcg.Swappiness{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := lendBench(t)
			cg := b.core.cgroups[id("/a")]
			cg.law.Swappiness, cg.loan.stuck, b.core.swappiness = tt.s, tt.stuck, tt.takes
			if got := b.core.recallSwappiness(cg); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestOnlyARaiseIsWrittenWhileARequestIsInFlight(t *testing.T) {
	b := lendBench(t)
	cg := b.core.cgroups[id("/a")]
	cg.loan = loan{base: 40 * mib, high: 140 * mib}
	b.core.inFlight[cg.id] = 0
	for name, m := range map[string]lendMove{"lowered": {rule: "trim", high: 100 * mib}, "put back": {rule: "trim", restore: true}} {
		if held := b.core.setHigh(b.now, cg, &m); held == "" {
			t.Errorf("%s while the kernel reclaims", name)
		}
	}
	if held := b.core.setHigh(b.now, cg, &lendMove{rule: "rescue", high: 150 * mib}); held != "" {
		t.Errorf("a raise has to wait: %s", held)
	}
}

func TestAHighThatCannotBeReadIsSaid(t *testing.T) {
	b := lendBench(t)
	r := telemetry.Record{}
	b.core.considerLoan(b.now, &b.host, b.core.cgroups[id("/a")], &memcg.Sample{Current: memcg.Value(mib)}, &workingset.Decision{}, &r)
	if r.Lending.Held == "" {
		t.Error("nothing was said")
	}
}
