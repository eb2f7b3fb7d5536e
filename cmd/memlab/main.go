// Command memlab boots real kernels with NUMA nodes in QEMU and runs memagent's scenarios there.
// The same program is the init of its guests, and the workloads that run in them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/memagent/memagent/lab/demo"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/scenario"
)

// jobs are what a guest can be asked to do.
var jobs = map[string]guest.Job{
	guest.ExecJob:    guest.Exec,
	guest.ShellJob:   guest.Shell,
	scenario.JobName: scenario.Job,
	demo.JobName:     demo.Job,
}

// Exit codes.
const (
	exitOK     = 0
	exitCheck  = 1 // a check failed
	exitBroken = 2 // usage, or the environment
)

// codeError is an error that says how the program ends.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func main() {
	if guest.IsInit() {
		guest.Init(jobs)
	}
	if guest.IsService() {
		if err := guest.Serve(jobs); err != nil {
			fmt.Fprintf(os.Stderr, "memlab: %v\n", err)
			os.Exit(exitBroken)
		}
		return
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	root := newRoot(os.Stdout, os.Stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var code *codeError
	switch {
	case errors.As(err, &code):
		if code.err != nil {
			fmt.Fprintf(os.Stderr, "memlab: %v\n", code.err)
		}
		return code.code
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "memlab: interrupted; no guest is left running")
		return exitBroken
	}
	fmt.Fprintf(os.Stderr, "memlab: %v\n", err)
	return exitBroken
}
