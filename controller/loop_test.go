package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ controller.Host = (*sim.Host)(nil)
)

const mib = 1 << 20

// trace keeps the records of a run.
type trace struct{ records []telemetry.Record }

func (tr *trace) Record(r *telemetry.Record) { tr.records = append(tr.records, *r) }

func (tr *trace) of(path string) (list []telemetry.Record) {
	for _, r := range tr.records {
		if r.Cgroup.Path == path {
			list = append(list, r)
		}
	}
	return list
}

type silence struct{ said []string }

func (s *silence) Warn(key string, err error, text string) { s.said = append(s.said, key) }
func (s *silence) Clear(string, string)                    {}
func (s *silence) Forget(string)                           {}

// run has a loop at a simulated host for a while, whose workloads run on the
// same time, and returns the records and what was said.
func run(t *testing.T, h *sim.Host, mode telemetry.Mode, policies string, during func(stop context.CancelFunc)) (*trace, *silence) {
	t.Helper()
	if !strings.Contains(policies, "interval:") {
		policies = "interval: 1s\n" + policies
	}
	cfg, err := config.Parse("test.yaml", []byte(policies))
	if err != nil {
		t.Fatal(err)
	}
	tr, said := &trace{}, &silence{}
	ctx, stop := context.WithCancel(context.Background())
	self, _ := h.Self()
	loop := controller.Loop{
		Core:     controller.NewCore(cfg, mode, self, said, time.Now()),
		Host:     h,
		Interval: cfg.Interval,
		Sink:     tr,
		Notify:   said,
	}
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	during(stop)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return tr, said
}

// pass lets time pass for the loop and for the workloads.
func pass(h *sim.Host, d time.Duration) {
	const grain = 100 * time.Millisecond
	for ; d > 0; d -= grain {
		time.Sleep(grain)
		h.Run(grain)
	}
}

func newSim(cfg sim.Config) *sim.Host {
	cfg.Nodes = []sim.NodeConfig{{ID: 0, Bytes: 256 * mib}}
	cfg.Swap = sim.SwapConfig{Bytes: 256 * mib, Class: memcg.SwapZram}
	cfg.Kernel = sim.Kernel612
	return sim.New(cfg)
}

const squeezeAll = `
policies:
  - name: all
    match: [{path: /**}]
    law: tmo
    squeeze: {max_step: 1%}
`

func TestAnIdleCgroupIsSqueezedAndABusyOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		idle, busy := h.Cgroup("/idle", sim.Limits{}), h.Cgroup("/busy", sim.Limits{})
		h.Start("/idle", sim.Idle{Anon: 32 * mib, File: 32 * mib, Rate: 256 * mib})
		h.Start("/busy", sim.Touch{Bytes: 32 * mib, Rate: 512 * mib})
		h.Run(2 * time.Second)
		tr, said := run(t, h, telemetry.Enforce, squeezeAll, func(context.CancelFunc) { pass(h, 100*time.Second) })
		if len(said.said) != 0 {
			t.Errorf("warned: %v", said.said)
		}
		for path, c := range map[string]struct{ least, most uint64 }{"/idle": {0, 40 * mib}, "/busy": {30 * mib, 34 * mib}} {
			var s memcg.Sample
			if err := h.Sample(map[string]memcg.ID{"/idle": idle, "/busy": busy}[path], &s); err != nil {
				t.Fatal(err)
			}
			if got, _ := s.Current.Get(); got < c.least || got > c.most {
				t.Errorf("%s holds %d MiB, want %d to %d; last: %s", path, got/mib, c.least/mib, c.most/mib, last(tr.of(path)).Describe())
			}
		}
	})
}

func last(records []telemetry.Record) *telemetry.Record { return &records[len(records)-1] }

func TestObservingWritesNothingAndDecidesAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{ReadOnly: true})
		h.Cgroup("/idle", sim.Limits{})
		h.Start("/idle", sim.Idle{Anon: 32 * mib, File: 32 * mib, Rate: 256 * mib})
		h.Run(2 * time.Second)
		tr, _ := run(t, h, telemetry.Observe, squeezeAll, func(context.CancelFunc) { pass(h, 30*time.Second) })
		if n := h.Writes(); n != 0 {
			t.Errorf("%d writes", n)
		}
		if !slices.ContainsFunc(tr.of("/idle"), func(r telemetry.Record) bool { return r.Want > 0 && r.Held == "observe mode" }) {
			t.Error("nothing would have been done")
		}
	})
}

func TestABlockedWriteHoldsUpNeitherTheTickNorTheOthersNorTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		for _, p := range []string{"/stuck", "/fine"} {
			h.Cgroup(p, sim.Limits{})
			h.Start(p, sim.Idle{File: 32 * mib, Rate: 256 * mib})
		}
		free := make(chan struct{})
		h.Inject(sim.Fault{Op: sim.OpReclaim, Path: "/stuck", Block: free})
		h.Run(2 * time.Second)
		var stopped, ended time.Time
		tr, said := run(t, h, telemetry.Enforce, squeezeAll, func(stop context.CancelFunc) {
			pass(h, 60*time.Second)
			stopped = time.Now()
			stop()
		})
		ended = time.Now()
		close(free)
		if took := ended.Sub(stopped); took > 5*time.Second {
			t.Errorf("it took %s to end", took)
		}
		if n := len(tr.of("/stuck")); n < 55 {
			t.Errorf("%d records in 60 s: the tick waited", n)
		}
		acted := 0
		for _, r := range tr.of("/fine") {
			if r.Acted {
				acted++
			}
		}
		if acted < 20 {
			t.Errorf("the other cgroup was acted on %d times", acted)
		}
		if !slices.Contains(said.said, "shutdown") {
			t.Errorf("nothing was said of the request left behind: %v", said.said)
		}
	})
}

func TestCgroupsThatComeAndGoAreWatchedAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		h.Cgroup("/old", sim.Limits{})
		tr, _ := run(t, h, telemetry.Enforce, squeezeAll, func(context.CancelFunc) {
			pass(h, 3*time.Second)
			h.Cgroup("/new", sim.Limits{})
			h.Remove("/old")
			pass(h, 3*time.Second)
		})
		if n := len(tr.of("/new")); n < 2 {
			t.Errorf("the new cgroup has %d records", n)
		}
		old := tr.of("/old")
		if got := last(old).Describe(); got != "the cgroup is gone" {
			t.Errorf("the last that was said of the removed one: %s", got)
		}
		if n := len(old); n > 6 {
			t.Errorf("%d records of a cgroup that lived for three ticks", n)
		}
	})
}

func TestOnceDecidesForEachCgroupAndWaitsForWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSim(sim.Config{})
		h.Cgroup("/idle", sim.Limits{})
		h.Start("/idle", sim.Idle{File: 32 * mib, Rate: 256 * mib})
		h.Run(2 * time.Second)
		cfg, err := config.Parse("test.yaml", []byte("interval: 1s\n"+squeezeAll))
		if err != nil {
			t.Fatal(err)
		}
		tr, said := &trace{}, &silence{}
		loop := controller.Loop{Core: controller.NewCore(cfg, telemetry.Enforce, "", said, time.Now()), Host: h, Interval: time.Second, Sink: tr, Notify: said}
		if err := loop.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
		records := tr.of("/idle")
		acted := slices.IndexFunc(records, func(r telemetry.Record) bool { return r.Acted })
		if acted < 0 || last(records).Done == nil {
			t.Errorf("got %s", describeAll(records))
		}
	})
}

func TestTheHostThatCannotBeReadAtTheStartIsAnError(t *testing.T) {
	h := newSim(sim.Config{})
	h.Inject(sim.Fault{Op: sim.OpList, Err: memcg.ErrDenied})
	cfg := config.Default()
	loop := controller.Loop{Core: controller.NewCore(cfg, telemetry.Observe, "", &silence{}, time.Now()), Host: h, Interval: time.Second, Sink: &trace{}, Notify: &silence{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := loop.Run(ctx); err == nil || !strings.Contains(err.Error(), "listing the cgroups") {
		t.Errorf("got %v", err)
	}
}

func describeAll(records []telemetry.Record) string {
	var lines []string
	for _, r := range records {
		lines = append(lines, r.Describe())
	}
	return strings.Join(lines, "\n")
}
