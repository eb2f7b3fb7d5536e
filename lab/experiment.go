package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/result"
	"github.com/memagent/memagent/lab/scenario"
	"github.com/memagent/memagent/lab/topology"
)

// Experiment is a scenario on one kernel, run a number of times.
type Experiment struct {
	Scenario scenario.Scenario
	// Kernel is the short name of the kernel.
	Kernel string
	// Topology is the name of the machine; empty is the scenario's own.
	Topology string
	// Agents are the agent's states, each run Runs times, alternating.
	Agents []string
	Runs   int
	// Law and LRU replace the scenario's and the kernel's choice when they are not empty.
	Law, LRU string
	Short    bool
	// Counted has guests count instructions for a clock, also where the scenario does not.
	Counted bool
}

// countedSlower bounds how much longer a guest takes when it counts instructions.
const countedSlower = 4

// Run runs an experiment, each run in a fresh guest. The error is for what kept a run from
// being made; checks that fail are in the result.
func (l *Lab) Run(ctx context.Context, e Experiment) (result.Result, error) {
	topo := e.Topology
	if topo == "" {
		topo = e.Scenario.Topology
	}
	counted := e.Counted || e.Scenario.Counted
	res := result.Result{
		Scenario: e.Scenario.Name, KernelAsked: e.Kernel, Topology: topo,
		Short: e.Short, Accel: string(l.Accel(counted)), Law: e.Law,
	}
	if res.Law == "" {
		res.Law = e.Scenario.Law
	}
	t, err := topology.Load(topo)
	if err != nil {
		return res, err
	}
	k, err := l.Kernels().Get(ctx, e.Kernel)
	if err != nil {
		return res, err
	}
	res.Kernel = k.Release
	within := e.Scenario.Within(e.Short)
	if counted {
		within *= countedSlower
	}
	for i := range e.Runs {
		for _, agent := range e.Agents {
			program, err := l.AgentFor(e.Scenario, agent)
			if err != nil {
				return res, err
			}
			l.Say("%s on %s, agent %s, run %d of %d", e.Scenario.Name, k.Release, agent, i+1, e.Runs)
			var run *result.Run
			g := Guest{
				Kernel: k, Topology: t, Agent: program, Counted: counted,
				Files: e.Scenario.Files, BytesPerSecond: e.Scenario.BytesPerSecond, IOPS: e.Scenario.IOPS,
				Within: within,
				Spec: protocol.Spec{
					Job: scenario.JobName, Scenario: e.Scenario.Name,
					Agent: agent, Law: e.Law, Short: e.Short, LRU: e.LRU,
				},
				OnMessage: func(m protocol.Message) {
					switch {
					case m.Hello != nil:
						l.Say("  guest is up: %s, %s LRU", m.Hello.Release, m.Hello.LRU)
					case m.Log != "":
						l.Say("  %s", m.Log)
					case m.Run != nil:
						run = m.Run
					}
				},
			}
			if e.Scenario.Host {
				done, err := l.ContainerHost(ctx, &g)
				if err != nil {
					return res, err
				}
				defer done()
			}
			out, err := l.Boot(ctx, g)
			if err != nil {
				return res, fmt.Errorf("%s on %s with the agent %s: %w", e.Scenario.Name, k.Release, agent, err)
			}
			if run == nil {
				return res, fmt.Errorf("%s on %s with the agent %s: the guest ended without a result", e.Scenario.Name, k.Release, agent)
			}
			run.BootRetries = out.Retries
			run.BootMS, run.HostMS = out.Boot.Milliseconds(), out.Total.Milliseconds()
			run.HostRanMS, run.HostWaitedMS = out.Usage.Ran.Milliseconds(), out.Usage.Waited.Milliseconds()
			res.LRU, res.Kernel = out.Hello.LRU, out.Hello.Release
			res.Runs = append(res.Runs, *run)
			l.Say("  done in %s, booted in %s", out.Total.Round(time.Second), out.Boot.Round(time.Second/10))
		}
	}
	res.Checks = e.Scenario.Checks(res.Runs)
	return res, nil
}

// AgentFor is the memagent for a run of a scenario. A build with a tag is expected beside the
// ordinary one, with the tag behind its name.
func (l *Lab) AgentFor(s scenario.Scenario, agent string) (string, error) {
	if agent != protocol.AgentOn || s.Host { // which has it from its package
		return l.Agent, nil
	}
	if l.Agent == "" {
		return "", errors.New("there is no memagent to run with the agent on: build it beside memlab, or name it with --memagent")
	}
	if s.Build == "" {
		return l.Agent, nil
	}
	program := l.Agent + "-" + s.Build
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%s needs a memagent of its own: %w; make it with `CGO_ENABLED=0 go build -tags %s -o %s ./cmd/memagent`", s.Name, err, s.Build, program)
	}
	return program, nil
}
