package controller_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/recording"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

// file is a recording in memory.
type file struct{ bytes.Buffer }

func (f *file) Close() error { return nil }

// recorded runs a loop at a host, with a journal, and returns its recording and
// the lines that it logged. configs takes other configs.
func recorded(t *testing.T, h *sim.Host, policies string, during func(configs chan<- controller.Config), prepare ...func(*controller.Core)) (tape []byte, log string) {
	t.Helper()
	cfg := mustParse(t, policies)
	store, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	keeper, err := journal.NewKeeper(store, h, journal.Options{Boot: "boot", PageSize: sim.PageSize})
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	var out file
	w := recording.NewWriter(&out, recording.NewHeader("memagent test", "sim", started), 0)
	var lines bytes.Buffer
	configs := make(chan controller.Config)
	loop := controller.Loop{
		Core: controller.NewCore(cfg, telemetry.Enforce, "", &silence{}, started),
		Host: h, Interval: cfg.Interval, Sink: telemetry.DecisionLog{Logger: zerolog.New(&lines)}, Notify: &silence{}, Keeper: keeper, Configs: configs,
	}
	loop.Core.DrawFrom(&ticketed{})
	for _, p := range prepare {
		p(loop.Core)
	}
	loop.Core.RecordTo(w, started)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- loop.Run(ctx) }()
	during(configs)
	stop()
	if err := errors.Join(<-ended, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), lines.String()
}

func mustParse(t *testing.T, policies string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte("interval: 1s\n"+policies))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// replay returns what is logged when a recording is played.
func replay(t *testing.T, tape []byte, p controller.Player) (string, error) {
	t.Helper()
	r, err := recording.NewReader(bytes.NewReader(tape))
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	p.Sink, p.Notify = telemetry.DecisionLog{Logger: zerolog.New(&lines)}, &silence{}
	err = p.Play(r)
	return lines.String(), err
}

func sameLines(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("line %d of %d and %d (-run +replay):\n%s", i+1, len(a), len(b), cmp.Diff(a[i], b[i]))
		}
	}
	t.Fatalf("%d lines in the run, %d in the replay", len(a), len(b))
}

func shortOfMuch() *sim.Host {
	return sim.New(sim.Config{
		Nodes:  []sim.NodeConfig{{ID: 0, Bytes: 128 * mib}, {ID: 1, Bytes: 128 * mib}},
		Swap:   sim.SwapConfig{Bytes: 256 * mib, Class: memcg.SwapZram},
		Kernel: sim.Kernel612,
	})
}

const manyWays = `
policies:
  - {name: tight, match: [{path: /tight*}], swappiness: {auto: {base: 100, min: 0, max: 200}}, headroom: 5%, numa: {reclaim: lottery}}
  - {name: lend, match: [{path: /lend}], swappiness: 0, squeeze: off, high: {lend: true}}
  - {name: rest, match: [{path: /**}], squeeze: {max_step: 1%, idle_age: 10s}}
`

// manyThings happen: limits are met, memory is lent, cgroups come and go, and
// the config changes.
func manyThings(t *testing.T, h *sim.Host) func(chan<- controller.Config) {
	h.Cgroup("/tight", sim.Limits{Max: memcg.LimitOf(48 * mib)})
	h.Start("/tight", sim.Idle{Anon: 24 * mib, Rate: 64 * mib})
	h.Start("/tight", sim.FileLoop{Bytes: 40 * mib, Rate: 32 * mib})
	h.Cgroup("/lend", sim.Limits{High: memcg.LimitOf(16 * mib)})
	h.Start("/lend", sim.FileLoop{Bytes: 32 * mib, Rate: 32 * mib})
	h.Cgroup("/idle", sim.Limits{})
	h.Start("/idle", sim.Idle{Anon: 32 * mib, File: 16 * mib, Rate: 256 * mib})
	return func(configs chan<- controller.Config) {
		pass(h, 30*time.Second)
		h.Cgroup("/late", sim.Limits{})
		h.Start("/late", sim.Touch{Bytes: 8 * mib, Rate: 32 * mib})
		pass(h, 20*time.Second)
		configs <- controller.Config{Config: mustParse(t, strings.Replace(manyWays, "squeeze: off, high: {lend: true}", "law: tmo", 1)), Mode: telemetry.Enforce}
		pass(h, 10*time.Second)
		h.Remove("/late")
		pass(h, 10*time.Second)
	}
}

func TestAReplayUnderTheSameConfigLogsTheSameLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := shortOfMuch()
		tape, log := recorded(t, h, manyWays, manyThings(t, h))
		got, err := replay(t, tape, controller.Player{})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`"acted":true`, `"outcome":`, `"cgroup":"/late"`, `"error":`, "memory.high", `"rule":"lend"`, `"draw"`, `"law":"tmo"`} {
			if !strings.Contains(log, part) {
				t.Errorf("the run shows nothing of %s", part)
			}
		}
		sameLines(t, log, got)
		t.Logf("%d lines from %d bytes", strings.Count(log, "\n"), len(tape))
	})
}

func TestACgroupThatAReloadReleasesIsToldAsLeftAndSoInTheReplay(t *testing.T) {
	const both, one = "policies:\n  - {name: all, match: [{path: /**}]}\n", "policies:\n  - {name: all, match: [{path: /stays}]}\n"
	synctest.Test(t, func(t *testing.T) {
		h := shortOfMuch()
		for _, path := range []string{"/stays", "/leaves"} {
			h.Cgroup(path, sim.Limits{})
			h.Start(path, sim.Idle{Anon: 8 * mib, Rate: 64 * mib})
		}
		tape, log := recorded(t, h, both, func(configs chan<- controller.Config) {
			pass(h, 5*time.Second)
			configs <- controller.Config{Config: mustParse(t, one), Mode: telemetry.Enforce}
			pass(h, 5*time.Second)
		})
		if n := strings.Count(log, "/leaves: no policy matches it any more"); n != 1 || strings.Contains(log, "/stays: no policy") {
			t.Errorf("told %d times", n)
		}
		got, err := replay(t, tape, controller.Player{})
		if err != nil {
			t.Fatal(err)
		}
		sameLines(t, log, got)
	})
}

// pods answers that /late is a container, which is not settled at first and
// brings an annotation later.
type pods struct{ rounds int }

func (p *pods) Round([]memcg.ID, bool) { p.rounds++ }

func (p *pods) Describe(id memcg.ID) (d container.Description, settled bool) {
	if id.Path != "/late" {
		return d, true
	}
	d = container.Description{ID: "c0ffee", Runtime: "containerd", Name: "app", Pod: container.Pod{UID: "7", Namespace: "shop", Name: "cart"}}
	if settled = p.rounds > 3; settled {
		d.Annotations = map[string]string{"memagent.dev/swappiness": "0"}
	}
	return d, settled
}

func TestAReplayKnowsContainersAsTheRunDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := shortOfMuch()
		tape, log := recorded(t, h, manyWays, manyThings(t, h), func(c *controller.Core) { c.DescribeBy(&pods{}) })
		got, err := replay(t, tape, controller.Player{})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log, "shop") {
			t.Error("the run knows no container")
		}
		sameLines(t, log, got)
	})
}

func TestAReplayOfACutRecordingIsTheBeginningOfTheSameLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := shortOfMuch()
		tape, log := recorded(t, h, manyWays, manyThings(t, h))
		got, err := replay(t, tape[:len(tape)/2], controller.Player{})
		if !errors.Is(err, recording.ErrCut) || errors.Is(err, io.EOF) {
			t.Errorf("ended with %v", err)
		}
		if !strings.HasPrefix(log, got) || len(got) < len(log)/10 {
			t.Errorf("%d bytes of %d are logged, and are no beginning", len(got), len(log))
		}
	})
}

func TestAnotherConfigIsAskedWhatItWouldHaveDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := shortOfMuch()
		tape, log := recorded(t, h, manyWays, manyThings(t, h))
		got, err := replay(t, tape, controller.Player{
			Config: mustParse(t, "policies: [{name: only-tight, match: [{path: /tight}], swappiness: 0, headroom: 10%}]\n"), Mode: telemetry.Enforce,
		})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got, `"cgroup":"/idle"`) || !strings.Contains(got, `"policy":"only-tight"`) || strings.Contains(got, `"knob"`) {
			t.Error("other cgroups, or knobs, are decided on")
		}
		if !strings.Contains(got, `"acted":true`) || !strings.Contains(got, `"swappiness":"0"`) {
			t.Errorf("nothing is asked for, or not by that config: of the run\n%s\nit is\n%s", log, got)
		}
	})
}
