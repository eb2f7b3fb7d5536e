package controller_test

import (
	"context"
	"fmt"
	"slices"
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

// lender is a host with a cgroup /app under a memory.high of 40 MiB, and a loop
// that may lend to it.
type lender struct {
	t    *testing.T
	host *sim.Host
	app  memcg.ID
	tr   *trace
	said *silence

	store   *journal.Store
	configs chan controller.Config
	// blocked is set while a write to a knob cannot end: then the journal keeps
	// what is to be put back, and the test closes it.
	blocked chan struct{}
}

const lendPolicy = `
interval: 1s
host: {reserve: 20%}
policies:
  - name: app
    match: [{path: /app}]
    swappiness: 0
    squeeze: off
    high: {lend: true}
`

// lending runs during beside a loop that lends.
func lending(t *testing.T, policies string, limits sim.Limits, during func(*lender)) *lender {
	t.Helper()
	return lendingOn(t, sim.Kernel612, policies, limits, during)
}

// lendingOn is lending on one kernel.
func lendingOn(t *testing.T, kernel sim.Kernel, policies string, limits sim.Limits, during func(*lender)) *lender {
	t.Helper()
	l := &lender{t: t, tr: &trace{}, said: &silence{}}
	l.host = sim.New(sim.Config{
		Nodes:  []sim.NodeConfig{{ID: 0, Bytes: 1024 * mib}},
		Swap:   sim.SwapConfig{Bytes: 256 * mib, Class: memcg.SwapZram},
		Kernel: kernel,
	})
	l.app = l.host.Cgroup("/app", limits)
	cfg, err := config.Parse("test.yaml", []byte(policies))
	if err != nil {
		t.Fatal(err)
	}
	if l.store, err = journal.Open(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	keeper, err := journal.NewKeeper(l.store, l.host, journal.Options{Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	l.configs = make(chan controller.Config)
	ctx, stop := context.WithCancel(context.Background())
	loop := controller.Loop{
		Core: controller.NewCore(cfg, telemetry.Enforce, "", l.said, time.Now()),
		Host: l.host, Interval: cfg.Interval, Sink: l.tr, Notify: l.said, Keeper: keeper, Configs: l.configs,
	}
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	defer stop()
	during(l)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if l.blocked != nil {
		return l
	}
	if left := keeper.Entries(); len(left) != 0 {
		t.Errorf("the journal still has %v", left)
	}
	l.store.Close()
	return l
}

var high40 = sim.Limits{High: memcg.LimitOf(40 * mib)}

func (l *lender) high() uint64 {
	l.t.Helper()
	text, err := l.host.ReadKnob(l.app, memcg.KnobHigh)
	if err != nil {
		l.t.Fatal(err)
	}
	var n uint64
	if _, err := fmt.Sscan(text, &n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

func (l *lender) sample() *memcg.Sample {
	l.t.Helper()
	var s memcg.Sample
	if err := l.host.Sample(l.app, &s); err != nil {
		l.t.Fatal(err)
	}
	return &s
}

func (l *lender) current() uint64 { n, _ := l.sample().Current.Get(); return n }

func (l *lender) refaults() uint64 {
	n, _ := l.sample().Stat.Get(memcg.StatRefaultFile).Get()
	return n
}

// saidOnly checks what was said, but for the ages that this kernel does not tell.
func (l *lender) saidOnly(want ...string) {
	l.t.Helper()
	said := slices.DeleteFunc(slices.Clone(l.said.said), func(key string) bool { return key == "ages" })
	if !slices.Equal(said, want) {
		l.t.Errorf("said %v, want %v", said, want)
	}
}

// lent starts a loop over a file and waits until it has what it needs.
func (l *lender) lent() *sim.Job {
	l.t.Helper()
	j := l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
	l.until(60*time.Second, "lent", func() bool { return j.Stats().Passes >= 3 && l.high() > 200*mib })
	return j
}

// until lets time pass until something is so, at most for a while, and returns
// how long it took.
func (l *lender) until(most time.Duration, what string, so func() bool) time.Duration {
	l.t.Helper()
	for d := time.Duration(0); ; d += 100 * time.Millisecond {
		if so() {
			return d
		}
		if d > most {
			for _, r := range l.tr.of("/app")[max(0, len(l.tr.of("/app"))-12):] {
				l.t.Logf("%v %s", r.Time.Format("05.0"), r.Describe())
			}
			l.t.Fatalf("not %s within %v: memory.high %d MiB, current %d MiB", what, most, l.high()/mib, l.current()/mib)
		}
		pass(l.host, 100*time.Millisecond)
	}
}

func TestCacheIsLentWhatItMissesAndGivesItBackWhenTheHostFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lending(t, lendPolicy, high40, func(l *lender) {
			reader := l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			passes := func(n int) func() bool { return func() bool { return reader.Stats().Passes >= n } }
			l.until(20*time.Second, "read once", passes(1))
			if l.high() != 40*mib {
				t.Errorf("lent after one pass, when nothing had come back")
			}
			if took := l.until(10*time.Second, "lent", func() bool { return l.high() > 200*mib }); took > 3*time.Second {
				t.Errorf("lent %v after the second pass began, want 3 ticks", took)
			}
			l.until(20*time.Second, "read three times", passes(3))
			before := l.refaults()
			pass(l.host, 10*time.Second)
			if n := l.refaults() - before; n > 0 {
				t.Errorf("%d refaults once lent", n)
			}
			l.host.Cgroup("/other", sim.Limits{})
			l.host.Start("/other", sim.Grow{Bytes: 860 * mib, Rate: 128 * mib})
			var h memcg.HostSample
			l.until(20*time.Second, "short", func() bool {
				if err := l.host.HostSample(&h); err != nil {
					t.Fatal(err)
				}
				free, _ := h.MemFree.Get()
				return free < 205*mib
			})
			took := l.until(15*time.Second, "back", func() bool { return l.high() == 40*mib && l.current() <= 40*mib })
			t.Logf("back after %v", took)
			if took > 10*time.Second {
				t.Errorf("back after %v, want 10 s at most", took)
			}
			if n, _ := l.sample().SwapCurrent.Get(); n > 0 {
				t.Errorf("%d bytes of it swapped under swappiness 0", n)
			}
		})
		l.saidOnly()
	})
}

func TestABorrowerThatIsDoneGivesBackAndIsNotAskedTooSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lending(t, lendPolicy, high40, func(l *lender) {
			reader := l.lent()
			reader.Stop()
			least := l.until(10*time.Minute, "asked", func() bool { return l.current() < 190*mib })
			if least < time.Minute {
				t.Errorf("asked after %v", least)
			}
			l.until(10*time.Minute, "back", func() bool { return l.high() == 40*mib })
		})
		l.saidOnly()
	})
}

func TestAPacedBorrowerIsMissedAndKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lending(t, lendPolicy, high40, func(l *lender) {
			l.lent().Stop()
			l.host.Start("/app", sim.Script{
				Regions: []sim.Region{{Kind: sim.File, Bytes: 200 * mib}},
				Loop:    []sim.Step{{Region: 0, Every: time.Minute}},
			})
			l.until(5*time.Minute, "lent anew", func() bool { return l.high() > 200*mib })
			before := l.refaults()
			pass(l.host, 30*time.Minute)
			// Asking costs an eighth of what is lent at a time, and less and less often.
			if n := (l.refaults() - before) * sim.PageSize; n > 1200*mib {
				t.Errorf("%d MiB refaulted in half an hour, which read %d MiB", n/mib, 30*200)
			}
		})
	})
}

func TestAnotherWriterIsYieldedToAndToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lending(t, lendPolicy, high40, func(l *lender) {
			l.lent()
			asserts, last := 0, time.Now()
			for range 180 {
				if l.high() > 40*mib {
					asserts, last = asserts+1, time.Now()
				}
				if err := l.host.WriteKnob(context.Background(), l.app, memcg.KnobHigh, fmt.Sprint(40*mib)); err != nil {
					t.Fatal(err)
				}
				pass(l.host, time.Second)
			}
			if asserts > 4 { // the loan itself, and three
				t.Errorf("asserted %d times", asserts)
			}
			if since := time.Since(last); since < 60*time.Second {
				t.Errorf("peace for %v only", since)
			}
			if l.high() != 40*mib {
				t.Error("the other one has not won")
			}
		})
		l.saidOnly("owner /app")
	})
}

func TestAnOperatorsNewLimitIsTheOneThatIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lending(t, lendPolicy, high40, func(l *lender) {
			l.lent()
			if err := l.host.WriteKnob(context.Background(), l.app, memcg.KnobHigh, fmt.Sprint(60*mib)); err != nil {
				t.Fatal(err)
			}
			l.until(60*time.Second, "lent above the new one", func() bool { return l.high() > 200*mib })
		})
		if l.high() != 60*mib {
			t.Errorf("put back to %d MiB", l.high()/mib)
		}
		l.saidOnly()
	})
}

func TestTheEndPutsBackAfterReclaimingWhatWasLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked time.Time
		var reclaims int
		l := lending(t, lendPolicy, high40, func(l *lender) {
			l.lent().Stop()
			reclaims = int(l.host.Writes())
			asked = time.Now()
		})
		if took := time.Since(asked); took > 5*time.Second {
			t.Errorf("it took %v to end", took)
		}
		if l.high() != 40*mib || l.current() > 40*mib {
			t.Errorf("memory.high %d MiB, current %d MiB", l.high()/mib, l.current()/mib)
		}
		if n, _ := l.sample().Events.High.Get(); n > 0 && int(l.host.Writes()) == reclaims {
			t.Error("nothing was reclaimed before")
		}
	})
}

func TestABlockedLimitHoldsUpNeitherTheTickNorTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		var asked time.Time
		l := lending(t, lendPolicy, high40, func(l *lender) {
			l.blocked = free
			l.host.Inject(sim.Fault{Op: sim.OpWriteKnob, Path: "/app", Nth: 1, Block: free})
			l.host.Start("/app", sim.FileLoop{Bytes: 200 * mib})
			pass(l.host, 60*time.Second)
			asked = time.Now()
		})
		if took := time.Since(asked); took > 8*time.Second {
			t.Errorf("it took %v to end", took)
		}
		if n := len(l.tr.of("/app")); n < 55 {
			t.Errorf("%d records in 60 s: the tick waited", n)
		}
		if left := l.store.Entries(); len(left) != 1 || left[0].Before != fmt.Sprint(40*mib) {
			t.Errorf("the journal has %v to be put back by the next start", left)
		}
		close(free)
		synctest.Wait()
		l.store.Close()
	})
}
