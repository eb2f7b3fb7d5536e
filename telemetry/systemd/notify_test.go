package systemd

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told runs what against a manager with a watchdog of 30 s and an interval of
// 5 s, and returns what it was told; beats are "." each.
func told(t *testing.T, what func(tick func(err error))) (messages []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		health := telemetry.NewHealth(5*time.Second, time.Now())
		send := func(message string) error {
			message = strings.ReplaceAll(message, "WATCHDOG=1", ".")
			if n := len(messages); message == "." && n > 0 && strings.HasPrefix(messages[n-1], ".") {
				messages[n-1] += "."
			} else {
				messages = append(messages, message)
			}
			return nil
		}
		m := newManager(health, 30*time.Second, send, func(err error) { t.Error(err) })
		ctx, cancel := context.WithCancel(t.Context())
		wait := m.Start(ctx)
		what(func(err error) {
			tick := &telemetry.Tick{Began: time.Now(), Mode: telemetry.Observe, Watched: 3, Err: err, Host: &memcg.HostSample{}}
			health.Ticked(tick)
			m.Ticked(tick)
			synctest.Wait()
		})
		cancel()
		wait()
	})
	return messages
}

func TestTheManagerHearsOfReadinessTicksAndTheEnd(t *testing.T) {
	got := told(t, func(tick func(error)) {
		tick(nil)
		for range 7 {
			time.Sleep(5 * time.Second)
			tick(nil)
		}
	})
	want := []string{"READY=1\nSTATUS=observe, watching 3 cgroups", "...", "STOPPING=1\nSTATUS=stopping"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALoopThatStandsStillFeedsNoWatchdog(t *testing.T) {
	got := told(t, func(tick func(error)) {
		tick(nil)
		time.Sleep(time.Hour)
	})
	want := []string{"READY=1\nSTATUS=observe, watching 3 cgroups", "..", "STOPPING=1\nSTATUS=stopping"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAHostThatCannotBeReadIsNotReadyAndSaysWhy(t *testing.T) {
	got := told(t, func(tick func(error)) {
		tick(errors.New("no meminfo"))
		tick(errors.New("no meminfo"))
		tick(nil)
	})
	want := []string{"STATUS=the host cannot be read: no meminfo", "READY=1\nSTATUS=observe, watching 3 cgroups", "STOPPING=1\nSTATUS=stopping"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAManagerThatTakesNothingHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		health := telemetry.NewHealth(5*time.Second, time.Now())
		m := newManager(health, 0, func(string) error { <-stuck; return nil }, func(error) {})
		ctx, cancel := context.WithCancel(t.Context())
		wait := m.Start(ctx)
		for range 10 {
			m.Ticked(&telemetry.Tick{Host: &memcg.HostSample{}})
		}
		cancel()
		began := time.Now()
		wait()
		if took := time.Since(began); took != lastWord {
			t.Errorf("waited for %s", took)
		}
		close(stuck)
	})
}

func TestWithoutAManagerThereIsNothingToTell(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if m, err := Find(nil, nil); m != nil || err != nil {
		t.Errorf("%v, %v", m, err)
	}
}

func TestAnEnvironmentThatMakesNoSenseIsAnError(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "/nonexistent")
	t.Setenv("WATCHDOG_USEC", "soon")
	if m, err := Find(nil, nil); m != nil || err == nil || !strings.Contains(err.Error(), `WATCHDOG_USEC="soon"`) {
		t.Errorf("%v, %v", m, err)
	}
}

func TestMessagesGoToTheSocketOfTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "")
	m, err := Find(telemetry.NewHealth(time.Second, time.Now()), func(err error) { t.Error(err) })
	if err != nil || m == nil {
		t.Fatalf("%v, %v", m, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait := m.Start(ctx)
	m.Ticked(&telemetry.Tick{Mode: telemetry.Enforce, Watched: 1, Host: &memcg.HostSample{}})
	buf := make([]byte, 256)
	n, err := l.Read(buf)
	if got := string(buf[:n]); err != nil || got != "STATUS=enforce, watching 1 cgroups" {
		t.Errorf("%q, %v", got, err)
	}
	cancel()
	wait()
}
