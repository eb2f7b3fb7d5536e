package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOneGuestAtATime(t *testing.T) {
	said := make(chan string, 1)
	l := &Lab{Cache: t.TempDir(), Patience: time.Nanosecond, Say: func(f string, a ...any) { said <- fmt.Sprintf(f, a...) }}
	release, err := l.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		second, err := l.lock(t.Context())
		if err == nil {
			second()
		}
		got <- err
	}()
	if words := <-said; !strings.Contains(words, "waits for the guest of") || !strings.Contains(words, "guest.lock") {
		t.Errorf("said %q", words)
	}
	select {
	case err := <-got:
		t.Errorf("two had the lock: %v", err)
	default:
	}
	release()
	if err := <-got; err != nil {
		t.Errorf("after the first: %v", err)
	}
}

func TestAWaitForTheLockCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &Lab{Cache: t.TempDir(), Patience: time.Nanosecond, Say: func(string, ...any) { cancel() }}
	release, err := (&Lab{Cache: l.Cache}).lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the second lock gave %v", err)
	}
	release()
	// Whoever gave up has not kept it.
	again, err := (&Lab{Cache: l.Cache}).lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestNobodyGetsTheLockAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := &Lab{Cache: t.TempDir()}
	if _, err := l.lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestParseQueue(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       queue
	}{
		{"nobody has a lock", "", queue{}},
		{"one holds it, two wait",
			"1: FLOCK  ADVISORY  WRITE 20727 fe:00:9977959 0 EOF\n" +
				"1: -> FLOCK  ADVISORY  WRITE 20728 fe:00:9977959 0 EOF\n" +
				"1:  -> FLOCK  ADVISORY  WRITE 20729 fe:00:9977959 0 EOF\n", // who waits behind a waiter stands further in
			queue{holders: []int{20727}, waiters: []int{20728, 20729}}},
		{"locks on other files, and of another kind",
			"1: FLOCK  ADVISORY  WRITE 1 fe:00:99 0 EOF\n2: FLOCK  ADVISORY  WRITE 2 fe:01:9977959 0 EOF\n" +
				"3: POSIX  ADVISORY  WRITE 3 fe:00:9977959 0 EOF\n",
			queue{}},
		{"a process that is not to be seen from here", "1: FLOCK  ADVISORY  WRITE 0 fe:00:9977959 0 EOF\n", queue{}},
		{"lines that are cut short", "1:\n1: ->\n1: FLOCK\n1: FLOCK ADVISORY WRITE many fe:00:9977959 0 EOF\n", queue{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := parseQueue(tc.text, 0xfe, 0, 9977959)
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(queue{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzParseQueue(f *testing.F) {
	f.Add("1: FLOCK  ADVISORY  WRITE 20727 fe:00:9977959 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 20728 fe:00:9977959 0 EOF\n")
	f.Fuzz(func(t *testing.T, text string) {
		q := parseQueue(text, 0xfe, 0, 9977959)
		for _, pid := range append(q.holders, q.waiters...) {
			if pid <= 0 {
				t.Errorf("process %d", pid)
			}
		}
	})
}

func TestTheQueueIsToldInWords(t *testing.T) {
	name := func(pid int) string { return fmt.Sprintf("P%d", pid) }
	for _, tc := range []struct {
		name string
		q    queue
		want string
	}{
		{"the kernel does not tell", queue{}, "P7 waits for the guest of another process to end (lock L)"},
		{"one before", queue{holders: []int{3}, waiters: []int{7}}, "P7 waits for the guest of P3 to end (lock L)"},
		{"others beside", queue{holders: []int{3}, waiters: []int{5, 7, 6}}, "P7 waits for the guest of P3 to end (lock L); so do P5, P6"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.q.describe("L", 7, name); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAProcessIsNamedByItsCommandLine(t *testing.T) {
	if got := commandLine(1 << 30); got != fmt.Sprintf("process %d", 1<<30) {
		t.Errorf("a process that is not there is %s", got)
	}
}
