package top

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/telemetry/status"
)

// source answers with the host, or with an error when one is set, and counts.
type source struct {
	mu    sync.Mutex
	err   error
	asked int
}

func (s *source) Status(context.Context) (*status.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	return host(), nil
}

func (s *source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// control is what moves the cursor and sets colours.
var control = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\a]*\a|[=>78])")

// terminal is a pseudo-terminal with a program on it.
type terminal struct {
	t    *testing.T
	fd   int
	ptmx *os.File
	rows uint16
	cols uint16
	mu   sync.Mutex
	seen strings.Builder // all that was printed since the last wait
	more chan struct{}
	done chan error
}

func start(t *testing.T, s Source, rows, cols uint16) *terminal {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TERM", "xterm-256color")
	// Sizes are set on the descriptor that pty opened, which that makes a
	// blocking one; what is read and written goes through one that Close ends.
	fd := int(ptmx.Fd())
	talk, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetNonblock(talk, true); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, fd: fd, ptmx: os.NewFile(uintptr(talk), "ptmx"), more: make(chan struct{}, 1), done: make(chan error, 1)}
	x.resize(rows, cols)
	ctx, cancel := context.WithCancel(context.Background())
	// The tty is left to the end of the process: the library may still ask for
	// its size when Run has returned.
	go func() { x.done <- Run(ctx, s, 10*time.Millisecond, tty, tty) }()
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := x.ptmx.Read(buf)
			if err != nil {
				return
			}
			x.mu.Lock()
			x.seen.Write(buf[:n])
			x.mu.Unlock()
			select {
			case x.more <- struct{}{}:
			default:
			}
		}
	})
	t.Cleanup(func() { cancel(); x.ptmx.Close(); reading.Wait(); ptmx.Close() })
	return x
}

func (x *terminal) resize(rows, cols uint16) {
	x.t.Helper()
	x.rows, x.cols = rows, cols
	if err := unix.IoctlSetWinsize(x.fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) keys(text string) {
	x.t.Helper()
	if _, err := x.ptmx.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// redraw has the program draw all of its screen, a row larger or smaller: of what
// it has drawn before it writes only the cells that differ.
func (x *terminal) redraw() {
	x.t.Helper()
	x.resize(x.rows^1, x.cols)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		x.t.Fatal(err)
	}
}

// see waits until all of texts were printed and forgets what was printed up to
// then.
func (x *terminal) see(texts ...string) {
	x.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		x.mu.Lock()
		plain := control.ReplaceAllString(x.seen.String(), "")
		missing := ""
		for _, text := range texts {
			if !strings.Contains(plain, text) {
				missing = text
			}
		}
		if missing == "" {
			x.seen.Reset()
			x.mu.Unlock()
			return
		}
		x.mu.Unlock()
		select {
		case <-x.more:
		case <-again.C:
			x.redraw()
		case err := <-x.done:
			x.t.Fatalf("it ended with %v before it showed %q, but\n%s", err, missing, plain)
		case <-deadline.C:
			x.t.Fatalf("%q did not come, but\n%s", missing, plain)
		}
	}
}

func TestOnATerminalItShowsSortsPausesAndResizes(t *testing.T) {
	src := &source{}
	x := start(t, src, 24, 80)
	x.see("enforce, 7 cgroups by resident", "VERDICT", "file-thrash", "esql@16-main.service", "q quit")
	x.keys("p")
	x.see("by press")
	x.keys("p")
	x.see("by press reversed")
	x.keys("n")
	x.see("N0 anon/file", "n verdicts")
	x.keys("n")
	x.see("VERDICT")
	x.keys(" ")
	x.see("PAUSED, enforce")
	x.keys(" ")
	x.see("enforce, 7 cgroups")
	x.resize(10, 20)
	x.redraw()
	x.see("enforce, 7 cgroups …")
	src.fail(errors.New("the socket is gone"))
	x.see("! the socket is gone")
	src.fail(nil)
	x.see("host: 21 GiB of 64 …")
	x.keys("q")
	if err := <-x.done; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestItEndsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	asked := sourceFunc(func(context.Context) (*status.Status, error) { cancel(); return host(), nil })
	if err := Run(ctx, asked, time.Hour, tty, tty); err != nil {
		t.Error(err)
	}
}

func TestAnAgentThatDoesNotAnswerAtFirstIsAnErrorAndNoScreen(t *testing.T) {
	gone := errors.New("gone")
	if err := Run(t.Context(), &source{err: gone}, time.Second, nil, nil); !errors.Is(err, gone) {
		t.Error(err)
	}
}

type sourceFunc func(context.Context) (*status.Status, error)

func (f sourceFunc) Status(ctx context.Context) (*status.Status, error) { return f(ctx) }
