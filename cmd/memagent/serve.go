package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/endpoint"
	"github.com/memagent/memagent/telemetry/metrics"
	"github.com/memagent/memagent/telemetry/status"
	"github.com/memagent/memagent/telemetry/systemd"
)

// shopFront is what a run shows of itself: to Prometheus, to those who ask,
// and to the service manager. What is not asked for is not there.
type shopFront struct {
	sinks   telemetry.Sinks
	ticks   telemetry.TickList
	servers []*endpoint.Server
	stop    context.CancelFunc
	said    func() // waits until the service manager was told of the end
}

// openFront opens what the config and the environment ask for. It runs until
// ctx ends and is closed.
func openFront(ctx context.Context, where config.Telemetry, interval time.Duration, stand func() telemetry.ConfigState, writes func() uint64, predicted *telemetry.Predictions, notices *telemetry.Notices) (_ *shopFront, err error) {
	now := time.Now()
	health := telemetry.NewHealth(interval, now)
	ctx, stop := context.WithCancel(ctx)
	f := &shopFront{stop: stop, said: func() {}}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	failed := func(what string) func(error) {
		return func(err error) { notices.Warn(what, err, "memagent goes on; somebody who asked got no answer") }
	}
	if where.Metrics != (config.Address{}) {
		m := metrics.New(metrics.Options{Version: version, Writes: writes, Config: stand, Predicted: predicted})
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", m.Handler(failed("scrape")))
		status.HandleHealth(mux, health)
		if err := f.serve("telemetry.metrics", where.Metrics, mux, failed("metrics")); err != nil {
			return nil, err
		}
		f.sinks, f.ticks = append(f.sinks, m), append(f.ticks, m)
	}
	if where.Status != "" {
		b := status.NewBoard(version, now, stand, predicted)
		if err := f.serve("telemetry.status", config.Address{Network: "unix", Addr: where.Status}, status.Handler(b, health), failed("status")); err != nil {
			return nil, err
		}
		f.sinks, f.ticks = append(f.sinks, b), append(f.ticks, b)
	}
	// Ready once whoever asks then is told of the tick that made it so.
	f.ticks = append(f.ticks, health)
	manager, err := systemd.Find(health, func(err error) {
		notices.Warn("service manager", err, "the service manager may take memagent for stuck")
	})
	if err != nil {
		return nil, err
	}
	if manager != nil {
		f.ticks = append(f.ticks, manager)
		f.said = manager.Start(ctx)
	}
	return f, nil
}

func (f *shopFront) serve(what string, at config.Address, h http.Handler, failed func(error)) error {
	l, err := endpoint.Listen(at.Network, at.Addr)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.servers = append(f.servers, endpoint.Serve(l, h, failed))
	return nil
}

// watch has a loop tell the front what it does.
func (f *shopFront) watch(l *controller.Loop, other ...telemetry.Sink) {
	l.Sink = append(telemetry.Sinks(other), f.sinks...)
	l.Ticks = f.ticks
}

// close closes at once what is open; whoever is being answered is cut off.
func (f *shopFront) close() {
	for _, s := range f.servers {
		_ = s.Close() // the listener is gone either way
	}
	f.stop()
	f.said()
}

// where is what the config says, with what the command line has instead.
func (f *runFlags) where(cfg *config.Config) (config.Telemetry, error) {
	t := cfg.Telemetry
	if f.once {
		return config.Telemetry{}, nil // nobody could ask in time
	}
	if f.status != "" {
		path, err := filepath.Abs(f.status)
		if err != nil {
			return t, usageError{fmt.Errorf("--status %s: %w", f.status, err)}
		}
		t.Status = path
	}
	if f.metrics != "" {
		at, err := config.ParseAddress(f.metrics)
		if err != nil {
			return t, usageError{fmt.Errorf("--metrics: %w; want unix:/run/memagent/metrics.sock, or 127.0.0.1:9750", err)}
		}
		if at.Remote() && !t.Remote {
			return t, usageError{fmt.Errorf("--metrics %s: other hosts can reach it; want 127.0.0.1, or telemetry: {remote: true} in the config", f.metrics)}
		}
		t.Metrics = at
	}
	return t, nil
}

// stand returns how the config stands, at any time.
func (f *runFlags) stand(cfg *config.Config, live *config.Live) func() telemetry.ConfigState {
	started := time.Now()
	if live == nil {
		return func() telemetry.ConfigState {
			return telemetry.ConfigState{Name: builtIn, Policies: len(cfg.Policies), Since: started, Taken: 1}
		}
	}
	return func() telemetry.ConfigState {
		s := live.Status()
		return telemetry.ConfigState{Name: s.Path, Sum: s.Sum, Policies: len(live.Config().Policies), Since: s.Since, Err: s.Err, Taken: s.Taken, Refused: s.Refused}
	}
}

// builtIn stands for the name of a config where there is no file.
const builtIn = "built-in: observe everything"
