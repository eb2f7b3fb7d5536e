package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/lab/protocol"
)

// Names of the jobs every guest knows.
const (
	ExecJob  = "exec"
	ShellJob = "shell"
)

// A command is run beside a cgroup that holds a little memory, so that what it says of cgroups
// is not about an empty tree.
const (
	neighbour       = "/app"
	neighbourSize   = "16MiB"
	neighbourWithin = time.Minute
)

// Exec is the job that runs Spec.Argv and hands its output and exit code to the host.
func Exec(ctx context.Context, g *Guest) (int, error) {
	if len(g.Spec.Argv) == 0 {
		return 0, errors.New("no command to run")
	}
	if !g.Spec.System { // which has cgroups enough
		c, err := NewCgroup(neighbour)
		if err != nil {
			return 0, err
		}
		if _, err := c.Settle(neighbourWithin, "anon", "--size", neighbourSize); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, g.Spec.Argv[0], g.Spec.Argv[1:]...)
	cmd.Dir = "/"
	cmd.Stdout = stream{g, 1}
	cmd.Stderr = stream{g, 2}
	return exitCode(cmd.Run())
}

// Shell is the job that gives the console to a shell.
func Shell(ctx context.Context, g *Guest) (int, error) {
	tty, err := os.OpenFile("/dev/ttyS0", os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("opening the console: %w", err)
	}
	defer tty.Close()
	cmd := exec.CommandContext(ctx, "/bin/bash", "--norc", "-i")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "HOME=/root", "TERM=vt100", "PS1=guest:\\w# ")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return exitCode(cmd.Run())
}

// exitCode turns how a command ended into its exit code, or an error when it did not run.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// stream sends what is written to it as Output messages.
type stream struct {
	g  *Guest
	id int
}

func (s stream) Write(p []byte) (int, error) {
	s.g.Send(protocol.Message{Output: &protocol.Output{Stream: s.id, Data: append([]byte(nil), p...)}})
	return len(p), nil
}

// DropCaches frees all clean file pages and slab, so that a file's next reader is charged for it.
func DropCaches() error {
	unix.Sync()
	return Write("/proc/sys/vm/drop_caches", "3")
}
