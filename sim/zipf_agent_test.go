package sim_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/telemetry"
)

// zipfLeast is the part of its throughput that a workload must keep beside an
// agent, in every cell.
const zipfLeast = 0.98

// zipfPolicy is that of the lab's scenario of the same name: as little headroom
// as an operator would give, and swap that may be written at any rate.
const zipfPolicy = `
interval: 1s
host:
  swap: {write_budget: 1GiB/s}
policies:
  - name: zipf
    match: [{path: /app}]
    swappiness: {auto: {base: 60, min: 0, max: 200}}
    headroom: 2%
`

// takesTime is a simulated host whose requests last as long as they say.
type takesTime struct{ *sim.Host }

func (h takesTime) Reclaim(ctx context.Context, r memcg.Reclaim) memcg.Outcome {
	o := h.Host.Reclaim(ctx, r)
	time.Sleep(o.Took)
	return o
}

// heard counts what an agent decides and does.
type heard struct {
	rules map[string]int
	taken uint64 // bytes
	last  string // decision that acted
}

func (a *heard) Record(r *telemetry.Record) {
	if r.Acted {
		a.rules[r.Verdict+"/"+r.Rule]++
		a.last = r.Describe()
	}
	if r.Done != nil {
		n, _ := r.Done.Reclaimed.Get()
		a.taken += n
	}
}

// Warn, Clear and Forget: nobody listens.
func (*heard) Warn(string, error, string) {}
func (*heard) Clear(string, string)       {}
func (*heard) Forget(string)              {}

// beside returns accesses a second of a workload, alone or beside an agent,
// over some seconds after as many to get under way.
func (c *zipfCase) beside(t *testing.T, agent bool, seconds int) (rate float64, a *heard) {
	const grain = 2 * time.Millisecond
	a = &heard{rules: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		h, _, j := c.start(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		if !agent {
			ended <- nil
		} else {
			cfg, err := config.Parse("zipf.yaml", []byte(zipfPolicy))
			if err != nil {
				t.Fatal(err)
			}
			loop := controller.Loop{
				Core: controller.NewCore(cfg, telemetry.Enforce, "", a, time.Now()),
				Host: takesTime{h}, Interval: cfg.Interval, Sink: a, Notify: a,
			}
			go func() { ended <- loop.Run(ctx) }()
		}
		pass := func() {
			for range time.Duration(seconds) * time.Second / grain {
				time.Sleep(grain)
				h.Run(grain)
			}
		}
		pass()
		first := j.Stats().Touches
		pass()
		rate = float64(j.Stats().Touches-first) / float64(seconds)
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
	return rate, a
}

// lrus are the two LRUs of the simulated host on a kernel that reclaims on
// request: as it is, and with new anon on the active list and no refault
// distance for it, as before 5.9.
func lrus() []sim.Kernel {
	old := sim.Kernel612
	old.Name, old.NewAnonActive, old.DetectAnon = "6.12, anon as before 5.9", true, false
	return []sim.Kernel{sim.Kernel612, old}
}

// zipfBeside is a row of the table: memory of a size, in limits.
type zipfBeside struct {
	threads int
	size    float64
	params  []float64
}

// someBeside are the rows that can fail: where nothing is reclaimed, nothing can.
var someBeside = []zipfBeside{
	{1, 1, []float64{0.1}},
	{1, 1.25, []float64{0.7}},
	{1, 2, []float64{0.1, 1.3}},
	{8, 2, []float64{0.7}},
}

func allBeside() (rows []zipfBeside) {
	for _, threads := range []int{1, 8} {
		for _, size := range []float64{0.5, 0.75, 1, 1.25, 1.5, 2} {
			rows = append(rows, zipfBeside{threads, size, zipfParams})
		}
	}
	return rows
}

func TestAZipfIsNoSlowerBesideTheAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("goes over a hundred million accesses; run without -short")
	}
	const limit, seconds = 32, 3
	rows := someBeside
	switch {
	case *whole:
		rows = allBeside()
	case raceDetector:
		rows = rows[1:] // where all fits there are the most accesses
	}
	for _, kernel := range lrus() {
		t.Run(kernel.Name, func(t *testing.T) {
			t.Parallel()
			table := "rate beside the agent, in rates alone"
			for _, row := range rows {
				table += fmt.Sprintf("\n%d threads, %.2f of memory:", row.threads, row.size)
				for _, s := range row.params {
					c := zipfCase{kernel: kernel, limit: limit, size: row.size * limit, s: s, threads: row.threads, cpus: 1}
					alone, _ := c.beside(t, false, seconds)
					rate, a := c.beside(t, true, seconds)
					table += fmt.Sprintf("  %.1f: %.3f", s, rate/alone)
					if rate < zipfLeast*alone {
						t.Errorf("%d threads, %.2f of memory, parameter %.1f: %.3f of the kernel alone, want %.2f; acted %v, %d MiB taken, last: %s",
							row.threads, row.size, s, rate/alone, zipfLeast, a.rules, a.taken/mib, a.last)
					}
				}
			}
			t.Log(table)
		})
	}
}
