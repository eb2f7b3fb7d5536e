package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Program is the QEMU the lab uses.
const Program = "qemu-system-x86_64"

// ErrNoQEMU is returned when QEMU is not installed.
var ErrNoQEMU = errors.New(Program + " is not installed: run `memlab setup`, or apt-get install qemu-system-x86")

// endGrace is how long QEMU has to end after it was killed before waiting is given up.
const endGrace = 10 * time.Second

// Process is a running QEMU.
type Process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan struct{}
	err    error // valid once done is closed
}

// Start runs QEMU. It ends with ctx, with Stop, with this process, or when the guest powers off.
// The file extra is descriptor 3 in QEMU. With terminal, QEMU has this process's terminal.
func Start(ctx context.Context, args []string, tmp string, extra *os.File, terminal bool) (*Process, error) {
	path, err := exec.LookPath(Program)
	if err != nil {
		return nil, ErrNoQEMU
	}
	p := &Process{done: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, path, args...)
	p.cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = []*os.File{extra}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: !terminal}
	p.cmd.WaitDelay = endGrace
	if terminal {
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when QEMU has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop ends QEMU and waits until it is gone.
func (p *Process) Stop() {
	select {
	case <-p.done:
		return
	default:
	}
	// The only error is that it has ended by itself.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Complaint is what QEMU itself had to say, for error messages; empty when it said nothing.
// It may be called once Done is closed.
func (p *Process) Complaint() string {
	s := strings.TrimSpace(p.stderr.String())
	if s == "" && p.err != nil {
		s = p.err.Error()
	}
	return s
}
