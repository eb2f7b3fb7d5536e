package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/memcg"
)

func mustParse(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryKeyIsRead(t *testing.T) {
	got := mustParse(t, `
mode: enforce
interval: 10s
state_dir: '/srv/memagent state'
telemetry: {metrics: '0.0.0.0:9750', status: /run/memagent/status.sock, remote: true}
host:
  reserve: 2GiB
  swap: {write_budget: 8MiB/s, keep_free: 25%}
  nodes: {low: 2%, high: 3%}
  damon: allow
  units: property
policies:
  - name: databases
    match: [{path: /system.slice/postgresql*.service}, {path: '/db.slice/**'}]
    swappiness: 0
    headroom: 2%
    observe: true
  - name: batch
    match: [{path: '/kubepods.slice/**/*besteffort*'}]
    swappiness: {auto: {base: 100, min: 60}}
    law: senpai
    squeeze: {max_step: 1%, pressure_target: 0.2%, cost_target: 0.3%, floor: 64MiB, idle_age: 2m}
    swap: {write_budget: 1MiB/s}
    high: {lend: true, ceiling: 40GiB}
    numa: {reclaim: lottery, mems: avoid-short, nodes: [8, 2], swap_when_short: true, demote: true}
  - name: rest
    match:
      - path: '/**'
    swappiness: max
    squeeze: off
    high: {lend: true}
    swap_guard: true
`)
	budget := Rate(1 << 20)
	want := &Config{
		Mode:      Enforce,
		Interval:  10 * time.Second,
		StateDir:  "/srv/memagent state",
		Telemetry: Telemetry{Metrics: Address{"tcp", "0.0.0.0:9750"}, Status: "/run/memagent/status.sock", Remote: true},
		Host:      Host{Reserve: BytesOf(2 << 30), Swap: HostSwap{WriteBudget: 8 << 20, KeepFree: 0.25}, Nodes: HostNodes{Low: 0.02, High: 0.03}, DAMON: DAMONAllow, Units: UnitsByProperty},
		Policies: []Policy{
			{
				Name:       "databases",
				Match:      []Selector{{Path: mustGlob(t, "/system.slice/postgresql*.service")}, {Path: mustGlob(t, "/db.slice/**")}},
				Swappiness: FixedSwappiness(0), Headroom: ShareOf(0.02), Observe: true, Squeeze: defaultSqueeze(),
			},
			{
				Name:       "batch",
				Match:      []Selector{{Path: mustGlob(t, "/kubepods.slice/**/*besteffort*")}},
				Swappiness: AutoSwappiness(100, 60, 200), Law: LawSenpai,
				Squeeze: Squeeze{MaxStep: 0.01, PressureTarget: 0.002, CostTarget: 0.003, Floor: 64 << 20, IdleAge: 2 * time.Minute},
				High:    High{Lend: true, Ceiling: BytesOf(40 << 30)},
				Swap:    PolicySwap{WriteBudget: &budget},
				Numa: Numa{Reclaim: NumaReclaimLottery, Mems: NumaMemsAvoidShort, Nodes: []memcg.NodeID{2, 8},
					SwapWhenShort: true, Demote: true},
			},
			{
				Name:       "rest",
				Match:      []Selector{{Path: mustGlob(t, "/**")}},
				Swappiness: FixedSwappiness(memcg.SwappinessMax),
				Squeeze:    Squeeze{Off: true, MaxStep: 0.005, PressureTarget: 0.001, CostTarget: 0.001, IdleAge: time.Minute},
				High:       High{Lend: true}, SwapGuard: true,
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	lines := []string{
		"databases: /system.slice/postgresql*.service or /db.slice/**; observe only; swappiness 0; law memagent; " +
			"squeeze up to 0.5% a tick, until pressure 0.1% or cost 0.1%, floor 0, idle 1m; headroom 2%",
		"batch: /kubepods.slice/**/*besteffort*; swappiness auto (100, 60..200); law senpai; " +
			"squeeze up to 1% a tick, until pressure 0.2% or cost 0.3%, floor 64MiB, idle 2m; lends above memory.high up to 40GiB; swap-out up to 1MiB/s; nodes by lottery, cpuset.mems avoid-short, slow nodes 2, 8 too",
		"rest: /**; swappiness max; law memagent; no squeeze; lends above memory.high; swap guard",
	}
	for i := range lines {
		if diff := cmp.Diff(lines[i], got.Policies[i].String()); diff != "" {
			t.Errorf("policy %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestTheDefaultObservesEverythingAndWritesNothing(t *testing.T) {
	c := Default()
	p := c.Match("/system.slice/db.service")
	if p == nil || p.Name != "everything" {
		t.Fatalf("got policy %v", p)
	}
	if c.Mode != Observe || c.Mode.String() != "observe" || c.Enforces(p) {
		t.Error("the default enforces")
	}
	want := Host{Reserve: ShareOf(0.1), Swap: HostSwap{WriteBudget: 4 << 20, KeepFree: 0.2}, Nodes: HostNodes{Low: 0.005, High: 0.01}}
	if diff := cmp.Diff(want, c.Host); diff != "" || c.Interval != 5*time.Second {
		t.Errorf("interval %v, host (-want +got):\n%s", c.Interval, diff)
	}
	if p.Swappiness != (Swappiness{}) || p.Headroom.Kind != AmountUnset || p.Swap.WriteBudget != nil {
		t.Errorf("something is set: %v", p)
	}
}

func TestTheFirstPolicyThatMatchesWins(t *testing.T) {
	c := mustParse(t, `
mode: enforce
policies:
  - {name: one, match: [{path: /a/b}, {path: /x}], observe: true}
  - {name: two, match: [{path: '/a/**'}]}
`)
	for p, want := range map[string]string{"/a/b": "one", "/x": "one", "/a/c": "two", "/a/b/c": "two", "/a": "", "/": "", "": ""} {
		got := c.Match(p)
		if name := ""; got != nil {
			name = got.Name
			if name != want {
				t.Errorf("%s: got %s, want %s", p, name, want)
			}
		} else if want != "" {
			t.Errorf("%s: got none, want %s", p, want)
		}
	}
	if c.Enforces(c.Match("/a/b")) || !c.Enforces(c.Match("/a/c")) || c.Enforces(nil) {
		t.Error("observe of a policy, or the lack of one, does not count")
	}
}

// c36: v2 has no swappiness file; 0..200 and max are taken, -1 and 201 are
// refused when the file is read, and 0 is not the same as nothing.
func TestC36SwappinessIsCheckedWhenTheFileIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/c36/memagent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var wishes struct {
		Cgroups []struct{ Match, Swappiness string }
	}
	if err := yaml.Unmarshal(data, &wishes); err != nil {
		t.Fatal(err)
	}
	want := map[string]Swappiness{"101": FixedSwappiness(101), "0": FixedSwappiness(0), "max": FixedSwappiness(memcg.SwappinessMax)}
	for _, w := range wishes.Cgroups {
		c, err := Parse("c36", fmt.Appendf(nil, "policies: [{name: a, match: [{path: %s}], swappiness: %s}]", w.Match, w.Swappiness))
		s, good := want[w.Swappiness]
		if good && (err != nil || c.Policies[0].Swappiness != s) {
			t.Errorf("%s: got %v, %v", w.Swappiness, c, err)
		}
		if !good && !errors.Is(err, ErrValue) {
			t.Errorf("%s: got %v, %v, want ErrValue", w.Swappiness, c, err)
		}
	}
	if len(wishes.Cgroups) != 5 {
		t.Errorf("the fixture has %d cgroups", len(wishes.Cgroups))
	}
	unset := mustParse(t, "policies: [{name: a, match: [{path: /a}]}]").Policies[0].Swappiness
	zero := mustParse(t, "policies: [{name: a, match: [{path: /a}], swappiness: 0}]").Policies[0].Swappiness
	if unset == zero || unset.NeverSwaps() || !zero.NeverSwaps() {
		t.Errorf("unset is %v, 0 is %v", unset, zero)
	}
}

func TestSwappinessTurnsIntoWhatIsPassed(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "200": "200", "max": "max", "kernel": "kernel"} {
		p := mustParse(t, "policies: [{name: a, match: [{path: /a}], swappiness: "+text+"}]").Policies[0]
		if r, ok := p.Swappiness.Request(); !ok || r.String() != want {
			t.Errorf("%s: got %v, %v", text, r, ok)
		}
	}
	p := mustParse(t, "policies: [{name: a, match: [{path: /a}], swappiness: auto}]").Policies[0]
	if _, ok := p.Swappiness.Request(); ok || p.Swappiness != AutoSwappiness(60, 0, 200) {
		t.Errorf("auto is %v", p.Swappiness)
	}
	if !AutoSwappiness(0, 0, 0).NeverSwaps() || AutoSwappiness(0, 0, 1).NeverSwaps() {
		t.Error("an auto that can only be 0 never swaps, and no other")
	}
}

func manyPolicies(t testing.TB) *Config {
	var b strings.Builder
	b.WriteString("policies:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "  - {name: p%d, match: [{path: '/kubepods.slice/**/*-pod%d[0-9]*.slice/**'}]}\n", i, i)
	}
	return mustParse(t, b.String())
}

const deepPath = `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaaaa_bbbb.slice/cri-containerd-0123abcd.scope`

func TestMatchingAllocatesNothing(t *testing.T) {
	c := manyPolicies(t)
	if n := testing.AllocsPerRun(100, func() { c.Match(deepPath) }); n != 0 {
		t.Errorf("%v allocations for a match", n)
	}
}

// A rescan of 10,000 cgroups makes that many calls.
func BenchmarkMatchFiftyPoliciesInVain(b *testing.B) {
	c := manyPolicies(b)
	b.ReportAllocs()
	for b.Loop() {
		c.Match(deepPath)
	}
}
