package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

// life is one agent's: it begins with what the one before has left in dir.
func life(t *testing.T, host *sim.Host, dir, policies string, tr *trace, during func()) {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(policies))
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keeper, err := journal.NewKeeper(store, host, journal.Options{Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	keeper.Recover(context.Background())
	loop := controller.Loop{
		Core: controller.NewCore(cfg, telemetry.Enforce, "", &silence{}, time.Now()),
		Host: host, Interval: cfg.Interval, Sink: tr, Notify: &silence{}, Keeper: keeper,
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	during()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// rules are those that were decided by for a cgroup, each with the time of the first.
func (tr *trace) rules(path string) map[string]time.Time {
	first := map[string]time.Time{}
	for _, r := range tr.of(path) {
		for _, rule := range []string{r.Rule, r.Lending.Rule} {
			if first[rule].IsZero() {
				first[rule] = r.Time
			}
		}
	}
	return first
}

func TestAnAgentThatIsStartedAgainDuringACooldownDoesNotTryAgain(t *testing.T) {
	for _, c := range []struct {
		what     string // is not to be tried
		policies string
		limits   sim.Limits
		anon     uint64
		loop     uint64
	}{
		{"lend", lendPolicy, high40, 0, 200 * mib},
		{"move-anon", `
interval: 1s
host: {swap: {write_budget: 1GiB/s}}
policies: [{name: app, match: [{path: /app}], squeeze: off, swappiness: {auto: {min: 0, max: 200}}}]
`, sim.Limits{Max: memcg.LimitOf(180 * mib)}, 150 * mib, 80 * mib},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := func() (*sim.Host, memcg.ID) {
					host := sim.New(sim.Config{
						Nodes: []sim.NodeConfig{{ID: 0, Bytes: 1024 * mib}}, Swap: sim.SwapConfig{Bytes: 256 * mib, Class: memcg.SwapZram}, Kernel: sim.Kernel612,
					})
					id := host.Cgroup("/app", c.limits)
					if c.anon > 0 {
						host.Start("/app", sim.Idle{Anon: c.anon})
						pass(host, 5*time.Second)
					}
					host.Start("/app", sim.FileLoop{Bytes: c.loop})
					return host, id
				}
				tried := func(tr *trace) time.Time { return tr.rules("/app")[c.what] }

				host, _ := start()
				alone := &trace{}
				life(t, host, t.TempDir(), c.policies, alone, func() { pass(host, 30*time.Second) })
				if tried(alone).IsZero() {
					t.Fatalf("it is not tried without a cool-down either: %v", alone.rules("/app"))
				}

				host, id := start()
				dir, began := t.TempDir(), time.Now()
				store, err := journal.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				keeper, err := journal.NewKeeper(store, host, journal.Options{Boot: "boot"})
				if err != nil {
					t.Fatal(err)
				}
				if err := keeper.Remember([]journal.Cooldown{{Cgroup: id, Until: began.Add(2 * time.Minute), Length: 2 * time.Minute, Why: c.what}}); err != nil {
					t.Fatal(err)
				}
				store.Close()
				for n := range 3 {
					tr := &trace{}
					life(t, host, dir, c.policies, tr, func() { pass(host, 30*time.Second) })
					if at := tried(tr); !at.IsZero() {
						t.Fatalf("life %d tried after %v, want two minutes of peace", n+1, at.Sub(began))
					}
				}
				if c.what != "lend" {
					return // the kernel alone has found its way by then
				}
				tr := &trace{}
				life(t, host, dir, c.policies, tr, func() { pass(host, 90*time.Second) })
				if at := tried(tr); at.Sub(began) < 110*time.Second {
					t.Errorf("tried after %v, want two minutes, and then again", at.Sub(began))
				}
			})
		})
	}
}

func TestAnAgentThatIsStartedAgainPaysBackWhatTheOneBeforeSwappedTooMuch(t *testing.T) {
	const policies = `
interval: 1s
host: {swap: {write_budget: 8MiB/s}}
policies: [{name: app, match: [{path: /app}], swappiness: 200, squeeze: {max_step: 5%, idle_age: 1s}}]
`
	for name, owed := range map[string]time.Duration{"without a debt": 0, "with one": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := sim.New(sim.Config{
					Nodes: []sim.NodeConfig{{ID: 0, Bytes: 1024 * mib}}, Swap: sim.SwapConfig{Bytes: 512 * mib, Class: memcg.SwapZram}, Kernel: sim.Kernel612,
				})
				id := host.Cgroup("/app", sim.Limits{})
				host.Start("/app", sim.Idle{Anon: 400 * mib})
				pass(host, 5*time.Second)
				swapped := func() uint64 {
					var s memcg.Sample
					if err := host.Sample(id, &s); err != nil {
						t.Fatal(err)
					}
					n, _ := s.SwapCurrent.Get()
					return n
				}
				dir, began := t.TempDir(), time.Now()
				store, err := journal.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				keeper, err := journal.NewKeeper(store, host, journal.Options{Boot: "boot"})
				if err != nil {
					t.Fatal(err)
				}
				if err := keeper.Remember([]journal.Cooldown{{Cgroup: journal.Host, Until: began.Add(owed), Length: owed, Why: "swap"}}); err != nil {
					t.Fatal(err)
				}
				store.Close()
				for range 3 {
					life(t, host, dir, policies, &trace{}, func() { pass(host, 15*time.Second) })
				}
				if got := swapped(); (got == 0) != (owed > 0) {
					t.Errorf("%d MiB swapped within 45 s, owing the writes of %v", got/mib, owed)
				}
				life(t, host, dir, policies, &trace{}, func() { pass(host, 30*time.Second) })
				if swapped() == 0 {
					t.Error("nothing was swapped when the debt was paid back, either")
				}
			})
		})
	}
}
