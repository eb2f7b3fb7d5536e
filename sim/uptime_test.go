package sim_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/metrics"
	"github.com/memagent/memagent/telemetry/status"
)

const uptimePolicy = `
interval: 1s
policies:
  - name: all
    match: [{path: /job-*}]
    swappiness: {auto: {base: 60, min: 0, max: 200}}
    headroom: 5%
    squeeze: {floor: 1MiB, idle_age: 30s}
    high: {lend: true}
    numa: {reclaim: lottery}
`

// Growth is taken over uptimeWindows windows of uptimeTicks ticks, and their median counts: a leak grows in
// each, a map that doubles or a buffer that finds its size in one of them.
const (
	uptimeWindows = 5
	uptimeTicks   = 100
	// uptimeMay is by how much the heap may grow in a window, in bytes. The simulation takes some 7 KiB of
	// it, which remembers the cgroups that have gone. A record kept for each tick would be 100 KiB, one for
	// each cgroup that came and went half of that.
	uptimeMay = 25 << 10
)

func TestAnAgentDoesNotGrowWithUptime(t *testing.T) {
	grown, rules := uptimeGrowth(t)
	t.Logf("grown by %d bytes; it acted by %v", grown, rules)
	if len(rules) < 3 {
		t.Errorf("it hardly did anything: %v", rules)
	}
	slices.Sort(grown)
	if grown[uptimeWindows/2] > uptimeMay {
		t.Errorf("it grows: by %d bytes", grown)
	}
}

// uptimeGrowth is by how many bytes the heap in use grows in each of the last windows of some thousand ticks
// in which hundreds of cgroups come and go, and by which rules the agent acted.
func uptimeGrowth(t *testing.T) (grown []int, rules map[string]int) {
	synctest.Test(t, func(t *testing.T) {
		h := sim.New(sim.Config{
			Nodes: []sim.NodeConfig{{ID: 0, Bytes: 32 * mib}, {ID: 1, Bytes: 32 * mib}}, Kernel: sim.Kernel612,
			Swap: sim.SwapConfig{Bytes: 64 * mib}, Seed: 1, Fail: t.Errorf,
		})
		h.Cgroup("/job-stays", sim.Limits{High: memcg.LimitOf(4 * mib)})
		h.Start("/job-stays", sim.Idle{Anon: 3 * mib})
		h.Start("/job-stays", sim.FileLoop{Bytes: 2 * mib, Rate: 2 * mib})
		job := func(n int) string { return fmt.Sprintf("/job-%d", n%5) }
		start := func(n int) {
			h.Cgroup(job(n), sim.Limits{High: memcg.LimitOf(mib)})
			h.Start(job(n), sim.Idle{Anon: mib / 2, File: mib})
		}
		for n := range 4 {
			start(n)
		}
		var ask, end func()
		rules, ask, end = uptimeAgent(t, h)
		ticks := 0
		pass := func(n int) int {
			for range n {
				for range 4 {
					time.Sleep(250 * time.Millisecond)
					h.Run(250 * time.Millisecond)
				}
				if ticks++; ticks%2 == 0 { // one goes, one comes
					h.Remove(job(ticks/2 - 1))
					start(ticks/2 + 3)
				}
				ask()
			}
			runtime.GC()
			runtime.GC() // what pools held
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return int(s.HeapAlloc)
		}
		before := pass(560) // 280 have come and gone, and what is kept of them is full
		for range uptimeWindows {
			after := pass(uptimeTicks)
			grown = append(grown, after-before)
			before = after
		}
		end()
	})
	return grown, rules
}

// uptimeAgent starts an agent with all that it shows. ask has it asked by
// everybody who may.
func uptimeAgent(t *testing.T, h *sim.Host) (rules map[string]int, ask, end func()) {
	cfg, err := config.Parse("uptime.yaml", []byte(uptimePolicy))
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := journal.NewKeeper(store, h, journal.Options{Boot: "boot", PageSize: sim.PageSize})
	if err != nil {
		t.Fatal(err)
	}
	stand := func() telemetry.ConfigState { return telemetry.ConfigState{} }
	predicted := &telemetry.Predictions{}
	board := status.NewBoard("1", time.Now(), stand, predicted)
	m := metrics.New(metrics.Options{Version: "1", Writes: func() uint64 { return 0 }, Config: stand, Predicted: predicted})
	scrape := m.Handler(func(err error) { t.Error(err) })
	a := &heard{rules: map[string]int{}}
	loop := controller.Loop{
		Core: controller.NewCore(cfg, telemetry.Enforce, "", a, time.Now()),
		Host: takesTime{h}, Interval: cfg.Interval, Notify: &telemetry.Notices{Logger: zerolog.Nop()}, Keeper: keeper,
		Sink:  telemetry.Sinks{predicted, board, m, a, &telemetry.Summary{Predicted: predicted}, telemetry.DecisionLog{Logger: zerolog.New(io.Discard)}},
		Ticks: telemetry.TickList{board, m},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	ask = func() {
		scrape.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
		board.Status(time.Now())
	}
	return a.rules, ask, func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		store.Close()
	}
}
