package guest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/memagent/memagent/lab/workload"
)

// self is this program, wherever it is in the guest.
const self = "/init"

// Proc is a workload running in a cgroup.
type Proc struct {
	what   string
	cmd    *exec.Cmd
	stderr *tail
	ready  chan struct{}
	ended  chan struct{}

	mu     sync.Mutex
	passes []float64 // milliseconds
	sticks []float64 // milliseconds, empty where none were asked for
	begun  []time.Time
	last   time.Time // the last pass's end
	err    error     // valid once ended is closed
}

// Start starts a workload in the cgroup.
func (c Cgroup) Start(args ...string) (*Proc, error) {
	p := &Proc{
		what:   "workload " + strings.Join(args, " "),
		stderr: &tail{},
		ready:  make(chan struct{}),
		ended:  make(chan struct{}),
	}
	p.cmd = exec.Command(self, append([]string{"workload"}, args...)...)
	attr, dir, err := c.attr()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	p.cmd.SysProcAttr = attr
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s in %s: %w", p.what, c.Path, err)
	}
	go p.follow(out)
	return p, nil
}

// Finish starts a workload in the cgroup and waits for its end.
func (c Cgroup) Finish(within time.Duration, args ...string) (*Proc, error) {
	p, err := c.Start(args...)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return nil, fmt.Errorf("%s: %w: %s", p.what, p.err, p.stderr)
		}
		return p, nil
	case <-time.After(within):
		p.Stop()
		return nil, fmt.Errorf("%s did not end within %s", p.what, within)
	}
}

// Settle starts a workload in the cgroup and waits until everything is allocated.
func (c Cgroup) Settle(within time.Duration, args ...string) (*Proc, error) {
	p, err := c.Start(args...)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ready:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended before it was ready: %v: %s", p.what, p.err, p.stderr)
	case <-time.After(within):
		p.Stop()
		return nil, fmt.Errorf("%s was not ready within %s", p.what, within)
	}
}

// follow reads the workload's events until it ends.
func (p *Proc) follow(out io.Reader) {
	defer close(p.ended)
	sc := bufio.NewScanner(out)
	ready := false
	for sc.Scan() {
		var e workload.Event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			continue // not an event: a runtime's last words
		}
		switch e.Event {
		case workload.Ready:
			if !ready {
				ready = true
				close(p.ready)
			}
		case workload.Pass:
			p.mu.Lock()
			p.passes = append(p.passes, e.MS)
			if e.YardstickMS > 0 {
				p.sticks = append(p.sticks, e.YardstickMS)
			}
			p.last = time.Now().Add(-milliseconds(e.YardstickMS))
			p.begun = append(p.begun, p.last.Add(-milliseconds(e.MS)))
			p.mu.Unlock()
		}
	}
	p.err = p.cmd.Wait()
}

// Ready says whether everything is allocated.
func (p *Proc) Ready() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// Passes are the times of the passes so far, in milliseconds, from the given one on.
func (p *Proc) Passes(from int) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]float64{}, p.passes[min(from, len(p.passes)):]...)
}

// Yardsticks are the times of the yardsticks after these passes, in milliseconds; none where none
// were asked for.
func (p *Proc) Yardsticks(from int) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]float64(nil), p.sticks[min(from, len(p.sticks)):]...)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Begun is when the passes so far began, from the given one on.
func (p *Proc) Begun(from int) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Time{}, p.begun[min(from, len(p.begun)):]...)
}

// Last is when the last pass so far ended, the zero time when there was none.
func (p *Proc) Last() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Count is the number of passes so far.
func (p *Proc) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.passes)
}

// Alive returns an error when the workload has ended by itself.
func (p *Proc) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended early: %v: %s", p.what, p.err, p.stderr)
	default:
		return nil
	}
}

// Stop ends the workload and waits for it.
func (p *Proc) Stop() {
	// The only error is that it has ended by itself.
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// tailBytes is how much a tail keeps.
const tailBytes = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > tailBytes {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-tailBytes:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
