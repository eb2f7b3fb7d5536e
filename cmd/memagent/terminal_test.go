package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// Libraries for terminals may ask theirs for its colours as soon as they are
// linked in, and wait for an answer that a serial console, or the pseudo-terminal
// of a package manager, never gives.
func TestAProgramOnATerminalThatDoesNotAnswerAsksItNothing(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run", "^$")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
	ptmx, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	out, _ := io.ReadAll(ptmx) // an error is how its end is told
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "\x1b") || !strings.Contains(string(out), "PASS") {
		t.Errorf("got %q", out)
	}
}
