package guest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/memagent/memagent/lab/result"
)

// The agent's place in a guest. It has a cgroup of its own, so that its memory is nobody else's.
const (
	AgentPath   = "/bin/memagent"
	agentConfig = "/etc/memagent.yaml"
	AgentCgroup = "/memagent"
	// StateDir is where the agent keeps what must survive it. It does not survive the guest.
	StateDir = "/var/lib/memagent"
)

// Modes of the agent.
const (
	Enforce = "--enforce"
	Observe = "--observe"
)

// stopWithin is how long the agent may take to end after SIGTERM unless a scenario has it take longer.
const stopWithin = 5 * time.Second

// keepLines is the number of the agent's last decisions that are kept as an artifact.
const keepLines = 400

// Agent is a running memagent.
type Agent struct {
	// Within is how long it may take to end after SIGTERM; 0 is 5 s.
	Within time.Duration

	cmd    *exec.Cmd
	stderr *tail
	ended  chan struct{}

	mu        sync.Mutex
	log       [][]byte // last lines of its output
	decisions map[string][]Decision
	reclaimed map[string]uint64 // bytes
	summary   *Summary
	notices   []string
	err       error // valid once ended is closed
}

// StartAgent starts the agent with that configuration, and with variables such as "A=b" in its
// environment.
func StartAgent(config, mode string, env ...string) (*Agent, error) {
	if err := os.WriteFile(agentConfig, []byte(config), 0o644); err != nil {
		return nil, fmt.Errorf("writing the agent's configuration: %w", err)
	}
	c, err := NewCgroup(AgentCgroup)
	if err != nil {
		return nil, err
	}
	attr, dir, err := c.attr()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	a := &Agent{stderr: &tail{}, ended: make(chan struct{}), decisions: map[string][]Decision{}, reclaimed: map[string]uint64{}}
	a.cmd = exec.Command(AgentPath, "run", "-c", agentConfig, mode, "--log", "json")
	a.cmd.Dir = "/"
	a.cmd.Env = append(os.Environ(), env...)
	a.cmd.SysProcAttr = attr
	a.cmd.Stderr = a.stderr
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the agent: %w", err)
	}
	go a.follow(out)
	return a, nil
}

func (a *Agent) follow(out io.Reader) {
	defer close(a.ended)
	br := bufio.NewReader(out)
	for {
		line, err := br.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			a.take(line)
		}
		if err != nil {
			break
		}
	}
	a.err = a.cmd.Wait()
}

// take understands one line of the agent's output.
func (a *Agent) take(line []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = append(a.log, line)
	if len(a.log) > keepLines {
		a.log = a.log[1:]
	}
	d, s := ParseAgentLine(line)
	if d != nil {
		d.Heard = time.Now()
		a.decisions[d.Cgroup] = append(a.decisions[d.Cgroup], *d)
		if d.Outcome != nil && d.Outcome.Reclaimed != nil {
			freed := *d.Outcome.Reclaimed
			if moved := d.Outcome.Demoted; moved != nil {
				freed -= min(*moved, freed)
			}
			a.reclaimed[d.Cgroup] += freed
		}
	}
	if s != nil {
		a.summary = s
	}
	if d == nil && s == nil {
		a.notices = append(a.notices, string(line))
	}
}

// Notices are the lines the agent has printed so far that are neither a decision nor its summary, in
// order.
func (a *Agent) Notices() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.notices...)
}

// Latest is the agent's last decision about a cgroup, and what it has reclaimed there so far, in
// bytes by its own account.
func (a *Agent) Latest(cgroup string) (d Decision, reclaimed uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if all := a.decisions[cgroup]; len(all) > 0 {
		d = all[len(all)-1]
	}
	return d, a.reclaimed[cgroup]
}

// Decisions are all of the agent's decisions about a cgroup so far, in order.
func (a *Agent) Decisions(cgroup string) []Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Decision(nil), a.decisions[cgroup]...)
}

// All are the agent's decisions so far about all cgroups, by path; those about one are in order.
func (a *Agent) All() map[string][]Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string][]Decision, len(a.decisions))
	for path, list := range a.decisions {
		out[path] = append([]Decision(nil), list...)
	}
	return out
}

// PID is the agent's process.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Ended is closed when the agent has ended, however it did.
func (a *Agent) Ended() <-chan struct{} { return a.ended }

// Killed says whether the agent was ended by SIGKILL. It may be called once Ended is closed.
func (a *Agent) Killed() bool {
	ws, ok := a.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// Terminate sends the agent SIGTERM and does not wait. One that has ended already is left alone.
func (a *Agent) Terminate() error {
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the agent: %w", err)
	}
	return nil
}

// Alive returns an error when the agent has ended by itself.
func (a *Agent) Alive() error {
	select {
	case <-a.ended:
		return fmt.Errorf("the agent ended by itself: %v: %s", a.err, a.lastWords())
	default:
		return nil
	}
}

// lastWords is what an agent that ended had to say.
func (a *Agent) lastWords() string {
	if s := a.stderr.String(); s != "" {
		return s
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.log); n > 0 {
		return string(a.log[n-1])
	}
	return "it said nothing"
}

// Transcript is the end of the agent's output.
func (a *Agent) Transcript() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(bytes.Join(a.log, []byte("\n")))
}

// Stop ends the agent with SIGTERM and returns what it said of itself, and what was measured.
func (a *Agent) Stop() (result.AgentStats, error) {
	var st result.AgentStats
	if err := a.Alive(); err != nil {
		return st, err
	}
	within := a.Within
	if within == 0 {
		within = stopWithin
	}
	asked := time.Now()
	if err := a.Terminate(); err != nil {
		return st, err
	}
	select {
	case <-a.ended:
	case <-time.After(within):
		a.Kill()
		return st, fmt.Errorf("the agent did not end within %s of SIGTERM", within)
	}
	st.StopMS = time.Since(asked).Milliseconds()
	ps := a.cmd.ProcessState
	st.ExitCode = ps.ExitCode()
	st.MeasuredCPUMS = (ps.UserTime() + ps.SystemTime()).Milliseconds()
	st.MeasuredKernelMS = ps.SystemTime().Milliseconds()
	if ru, ok := ps.SysUsage().(*syscall.Rusage); ok {
		st.MeasuredRSSKiB = ru.Maxrss
	}
	if st.ExitCode != 0 {
		return st, fmt.Errorf("the agent ended with %v: %s", a.err, a.lastWords())
	}
	a.mu.Lock()
	s := a.summary
	a.mu.Unlock()
	if s == nil {
		return st, errors.New(`the agent ended without a line whose message is "summary"`)
	}
	st.CPUMS, st.RSSKiB, st.Decisions, st.Actions = s.CPUMS, s.RSSKiB, s.Decisions, s.Actions
	st.ReclaimedBytes, st.Writes = s.ReclaimedBytes, s.Writes
	return st, nil
}

// Kill ends the agent at once.
func (a *Agent) Kill() {
	// The only error is that it has ended by itself.
	_ = a.cmd.Process.Kill()
	<-a.ended
}
