package systemd

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/memagent/memagent/telemetry"
)

// beatsEach is how many times the watchdog is fed in the time that the manager
// allows; sd_watchdog_enabled(3) asks for two at least.
const beatsEach = 3

// Manager is the service manager as memagent sees it. It is a telemetry.Ticks.
type Manager struct {
	health   *telemetry.Health
	watchdog time.Duration // 0: none
	send     func(message string) error
	failed   func(error)
	news     chan string // the latest status that has not been sent
}

// Find returns the manager that started this process and wants to be told, or
// nil. failed is told, from another goroutine, of messages that did not go
// out. An error means that the environment is not what sd_notify(3) says.
func Find(health *telemetry.Health, failed func(error)) (*Manager, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, fmt.Errorf("WATCHDOG_USEC=%q, WATCHDOG_PID=%q of the service manager: %w", os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), err)
	}
	send := func(message string) error {
		_, err := daemon.SdNotify(false, message)
		return err
	}
	return newManager(health, watchdog, send, failed), nil
}

func newManager(health *telemetry.Health, watchdog time.Duration, send func(string) error, failed func(error)) *Manager {
	return &Manager{health: health, watchdog: watchdog, send: send, failed: failed, news: make(chan string, 1)}
}

// Ticked takes note of a regular tick. It must come after the tick was told to
// the manager's Health.
func (m *Manager) Ticked(t *telemetry.Tick) {
	if t.Early {
		return
	}
	text := fmt.Sprintf("%s, watching %d cgroups", t.Mode, t.Watched)
	if t.Err != nil {
		text = "the host cannot be read: " + t.Err.Error()
	}
	select {
	case <-m.news: // what has not been sent is old
	default:
	}
	m.news <- text // the loop is the only sender
}

// Start begins to tell the manager until ctx ends, which it is told too. The
// returned function waits for that for a moment.
func (m *Manager) Start(ctx context.Context) (wait func()) {
	var done sync.WaitGroup
	done.Go(func() { m.run(ctx) })
	return func() {
		over := make(chan struct{})
		go func() { done.Wait(); close(over) }()
		timer := time.NewTimer(lastWord)
		defer timer.Stop()
		select {
		case <-over:
		case <-timer.C:
		}
	}
}

// lastWord is how long the end of the process waits for STOPPING=1 to go out.
const lastWord = time.Second

func (m *Manager) run(ctx context.Context) {
	var beat <-chan time.Time
	if m.watchdog > 0 {
		ticker := time.NewTicker(m.watchdog / beatsEach)
		defer ticker.Stop()
		beat = ticker.C
	}
	ready, said := false, ""
	for {
		select {
		case <-ctx.Done():
			m.tell(daemon.SdNotifyStopping + "\nSTATUS=stopping")
			return
		case text := <-m.news:
			message := ""
			if !ready && m.health.Ready() == nil {
				ready, message = true, daemon.SdNotifyReady+"\n"
			}
			if message == "" && text == said {
				continue
			}
			said = text
			m.tell(message + "STATUS=" + text)
		case now := <-beat:
			if m.health.Alive(now) == nil {
				m.tell(daemon.SdNotifyWatchdog)
			}
		}
	}
}

func (m *Manager) tell(message string) {
	if err := m.send(message); err != nil {
		m.failed(fmt.Errorf("telling the service manager at %s: %w", os.Getenv("NOTIFY_SOCKET"), err))
	}
}
