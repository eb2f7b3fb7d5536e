package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/telemetry"
)

// reloader reads the config again when it is told to or the files change, and
// hands what is new to the loop.
type reloader struct {
	live    *config.Live
	logger  zerolog.Logger
	notices *telemetry.Notices
	mode    func(*config.Config) telemetry.Mode
	// writable tells whether the host was opened so that it can be written.
	writable bool
	configs  chan controller.Config
}

// run reads the config again at every hang-up and change until ctx ends.
func (r *reloader) run(ctx context.Context, path string, hangup <-chan os.Signal) {
	changed, err := config.Watch(ctx, path)
	if err != nil {
		r.notices.Warn("config watch", err, "a changed config is read on SIGHUP only")
	}
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			asked = true
		case _, ok := <-changed:
			if !ok {
				changed = nil
				continue
			}
		}
		r.reload(ctx, asked)
	}
}

// reload reads the config once. asked: somebody waits for an answer, also where
// there is nothing new.
func (r *reloader) reload(ctx context.Context, asked bool) {
	cfg, taken, err := r.live.Reload(time.Now(), r.accept)
	status := r.live.Status()
	switch {
	case err != nil || asked && !status.Good():
		r.logger.Error().Err(status.Err).Str("config", status.Path).Time("in_force_since", status.Since).
			Msg("the config is not taken; the one before stays in force")
	case taken:
		next := controller.Config{Config: cfg, Mode: r.mode(cfg), Took: func(c controller.Reconfigured) {
			r.logger.Info().Str("config", status.Path).Str("sum", status.Sum).Str("mode", string(r.mode(cfg))).
				Int("policies", len(cfg.Policies)).Int("cgroups_kept", len(c.Kept)).Int("cgroups_changed", len(c.Changed)).
				Int("cgroups_released", len(c.Released)).Msg("the config was read again")
		}}
		select {
		case r.configs <- next:
		case <-ctx.Done():
		}
	case asked:
		r.logger.Info().Str("config", status.Path).Msg("the config says what it said before")
	}
}

// Why a good config is not taken while memagent runs.
var (
	errStateDir  = errors.New("state_dir cannot change while memagent runs: its journal is there")
	errTelemetry = errors.New("telemetry cannot change while memagent runs: others are connected")
	errDAMON     = errors.New("host.damon cannot change while memagent runs: it is settled when the host is opened")
	errUnits     = errors.New("host.units cannot change while memagent runs: limits are set the one way or the other")
	errObserver  = errors.New("mode: enforce takes a restart: memagent was started to observe and holds no file open for writing")
)

// accept refuses what only a restart can carry out.
func (r *reloader) accept(was, next *config.Config) error {
	if was.StateDir != next.StateDir {
		return fmt.Errorf("%w; restart it to go from %s to %s", errStateDir, was.StateDir, next.StateDir)
	}
	if was.Telemetry != next.Telemetry {
		return fmt.Errorf("%w; restart it to have another", errTelemetry)
	}
	if was.Host.DAMON != next.Host.DAMON {
		return fmt.Errorf("%w; restart it to go from %s to %s", errDAMON, was.Host.DAMON, next.Host.DAMON)
	}
	if was.Host.Units != next.Host.Units {
		return fmt.Errorf("%w; restart it to go from %v to %v", errUnits, was.Host.Units, next.Host.Units)
	}
	if !r.writable && r.mode(next) == telemetry.Enforce {
		return fmt.Errorf("%w; as a service: systemctl restart memagent", errObserver)
	}
	return nil
}
