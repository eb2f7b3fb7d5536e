// Command memagent watches the memory of a host's cgroups, works out which of
// it each one needs, and takes or moves the rest by a policy.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// version is set when the binary is built.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the run in order; with the handler gone, a second
	// one ends it at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, env{in: os.Stdin, out: os.Stdout, err: os.Stderr, tty: isTerminal(os.Stdout), limit: debug.SetMemoryLimit}, os.Args[1:]))
}
