package sim_test

import (
	"testing"
	"time"

	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/sim"
	"github.com/memagent/memagent/sim/hosttest"
)

// The simulated host is a host of the controller's, and the suite tests the
// controller's seam, neither more nor less.
var (
	_ controller.Host = (*sim.Host)(nil)
	_ controller.Host = hosttest.Host(nil)
	_ hosttest.Host   = controller.Host(nil)
)

const mib = 1 << 20

// busy is a host on which /app holds cold memory of both kinds.
func busy(t *testing.T, cfg sim.Config) *sim.Host {
	cfg.Nodes = []sim.NodeConfig{{ID: 0, Bytes: 32 * mib}, {ID: 2, Bytes: 32 * mib}}
	cfg.Swap = sim.SwapConfig{Bytes: 64 * mib}
	cfg.Fail = t.Errorf
	h := sim.New(cfg)
	h.Cgroup("/app", sim.Limits{})
	h.Cgroup("/app/worker", sim.Limits{})
	h.Start("/app/worker", sim.Idle{Anon: 8 * mib, File: 8 * mib}, 0, 2)
	h.Run(time.Second)
	return h
}

func TestSimulatedHostConforms(t *testing.T) {
	for _, kernel := range []sim.Kernel{sim.Kernel61, sim.Kernel612, sim.Kernel73} {
		t.Run(kernel.Name, func(t *testing.T) {
			hosttest.Run(t, func(t *testing.T) hosttest.Bench {
				h := busy(t, sim.Config{Kernel: kernel})
				return hosttest.Bench{
					Host: h, Observer: busy(t, sim.Config{Kernel: kernel, ReadOnly: true}),
					Busy: "/app/worker", Fresh: "/app/fresh", Swappiness: kernel.Swappiness,
					Make:   func(_ testing.TB, path string) { h.Cgroup(path, sim.Limits{}) },
					Remove: func(_ testing.TB, path string) { h.Remove(path) },
				}
			})
		})
	}
}
