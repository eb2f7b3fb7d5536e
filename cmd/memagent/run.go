package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/telemetry"
)

type runFlags struct {
	config           string
	root             string
	observe, enforce bool
	once             bool
	duration         time.Duration
	log              string
	record           string
	recordMost       string
	status, metrics  string
}

func runCommand(e env) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch, decide and, in enforce mode, act",
		Long: `Watches the cgroups that the config's policies match and decides in every
interval what each one could give. In observe mode, the default, it writes
nothing. In enforce mode it reclaims and, where a policy says so, changes
memory.high, memory.swap.max and cpuset.mems; those are in a journal first, what
an earlier run has left of them is undone at the start, and all of them at the end.

On a terminal it prints what is new, elsewhere one JSON line for each decision.
SIGINT or SIGTERM ends it with a summary; a second one ends it at once.
SIGHUP has it read its config again, as does a change of the file or of one of
its drop-ins, FILE without .yaml with .d/*.yaml; a bad one leaves the one before
in force.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "config `FILE`; without one, everything is observed and nothing written")
	flags.StringVar(&f.root, "root", "/", "`DIR` where the host's / is seen, /host in a sidecar")
	flags.BoolVar(&f.observe, "observe", false, "write nothing, whatever the config says")
	flags.BoolVar(&f.enforce, "enforce", false, "carry decisions out, whatever mode the config has")
	flags.BoolVar(&f.once, "once", false, "decide once for each cgroup, carry it out and end")
	flags.DurationVar(&f.duration, "for", 0, "end after this `TIME` (1m30s); 0 runs until stopped")
	flags.StringVar(&f.status, "status", "", "`PATH` of a socket to be asked at by memagent status, top and explain, whatever the config says")
	flags.StringVar(&f.metrics, "metrics", "", "`ADDRESS` to be scraped at by Prometheus, unix:PATH or 127.0.0.1:PORT, whatever the config says")
	flags.StringVar(&f.record, "record", "", "also record all that is read, and what comes of requests, to a new `FILE`")
	addMaxSize(cmd, &f.recordMost)
	flags.StringVar(&f.log, "log", "auto", "`FORM` of the output: json, text, or auto: text on a terminal")
	return cmd
}

func (f *runFlags) run(ctx context.Context, e env) error {
	if f.observe && f.enforce {
		return usageError{errors.New("--observe and --enforce contradict each other")}
	}
	if err := inTime(f.duration); err != nil {
		return err
	}
	text, err := f.textual(e.tty)
	if err != nil {
		return err
	}
	cfg, live, err := f.load()
	if err != nil {
		return err
	}
	where, err := f.where(cfg)
	if err != nil {
		return err
	}
	mode := f.mode(cfg)
	logger := newLogger(e, text)
	notices := &telemetry.Notices{Logger: logger}
	fs, err := openHost(f.root, cfg, mode, notices)
	if err != nil {
		return err
	}
	defer fs.Close()
	self, _ := fs.Self()

	predicted := &telemetry.Predictions{}
	summary := &telemetry.Summary{Predicted: predicted}
	var decisions telemetry.Sink = telemetry.DecisionLog{Logger: zerolog.New(e.out)}
	if text {
		decisions = &telemetry.Terminal{W: e.out}
	}
	started := time.Now()
	draws, seed := newDraws()
	loop := controller.Loop{
		Core:     controller.NewCore(cfg, mode, self, notices, started),
		Host:     fs,
		Interval: cfg.Interval,
		Notify:   notices,
	}
	loop.Core.DrawFrom(draws)
	containers, err := container.Open(f.root)
	if err != nil {
		return err
	}
	defer containers.Close()
	loop.Core.DescribeBy(containers)
	signalled := ctx
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	// What can be refused comes before the run is said to start, and before a
	// journal is touched: the sockets and the file may be another memagent's.
	front, err := openFront(ctx, where, cfg.Interval, f.stand(cfg, live), fs.Writes, predicted, notices)
	if err != nil {
		return err
	}
	defer front.close()
	front.ticks = append(front.ticks, newOwnMemory(e.limit)...)
	front.watch(&loop, predicted, summary, decisions)
	endRecording, err := keepRecording(f.record, f.recordMost, fs, loop.Core, started, notices)
	if err != nil {
		return err
	}
	defer endRecording()
	f.announce(logger, fs, cfg, mode, seed)
	if mode == telemetry.Enforce && !f.once {
		if j := openJournal(signalled, logger, notices, fs, f.root, cfg); j != nil {
			defer j.close()
			loop.Keeper = j.keeper
		}
	}
	if live != nil && !f.once {
		r := &reloader{live: live, logger: logger, notices: notices, mode: f.mode, writable: mode == telemetry.Enforce, configs: make(chan controller.Config)}
		loop.Configs = r.configs
		hangup := make(chan os.Signal, 1)
		signal.Notify(hangup, syscall.SIGHUP)
		defer signal.Stop(hangup)
		reading, stop := context.WithCancel(ctx)
		defer stop()
		go r.run(reading, f.config, hangup)
	}
	if f.once {
		err = loop.Once(ctx)
	} else {
		err = loop.Run(ctx)
	}
	if err != nil {
		return err
	}
	ran := time.Since(started)
	if text {
		fmt.Fprintln(e.out)
		return summary.WriteTable(e.out, fs.Writes(), ran)
	}
	summary.Log(logger, fs.Writes(), ran)
	return nil
}

// inTime refuses a time to end after that is none.
func inTime(d time.Duration) error {
	if d < 0 {
		return usageError{fmt.Errorf("--for %s: want a time such as 1m30s, or 0 for no end", d)}
	}
	return nil
}

// load reads the config, to be read again later where it is a file.
func (f *runFlags) load() (*config.Config, *config.Live, error) {
	if f.config == "" {
		return config.Default(), nil, nil
	}
	live, err := config.OpenLive(f.config, time.Now())
	if err != nil {
		return nil, nil, err
	}
	return live.Config(), live, nil
}

func (f *runFlags) textual(tty bool) (bool, error) {
	switch f.log {
	case "auto":
		return tty, nil
	case "text":
		return true, nil
	case "json":
		return false, nil
	}
	return false, usageError{fmt.Errorf("--log %s: want auto, json or text", f.log)}
}

func (f *runFlags) mode(cfg *config.Config) telemetry.Mode {
	switch {
	case f.observe:
		return telemetry.Observe
	case f.enforce || cfg.Mode == config.Enforce:
		return telemetry.Enforce
	}
	return telemetry.Observe
}

func (f *runFlags) announce(l zerolog.Logger, fs *cgroupfs.FS, cfg *config.Config, mode telemetry.Mode, seed string) {
	name := f.config
	if name == "" {
		name = builtIn
	}
	l.Info().Str("version", version).Str("config", name).Str("mode", string(mode)).
		Str("host", fs.Layout().Describe()).Dur("interval_ms", cfg.Interval).Int("policies", len(cfg.Policies)).Str("seed", seed).
		Msg("memagent starts")
}

// openHost opens the kernel files for observing, or for enforcing where that
// is possible.
func openHost(root string, cfg *config.Config, mode telemetry.Mode, notices *telemetry.Notices) (*cgroupfs.FS, error) {
	opts := []cgroupfs.Option{cgroupfs.OnNote(func(n cgroupfs.Note) {
		notices.Warn(fmt.Sprintf("file %s: %v", n.File, n.Kind), n.Err, "what this file would tell is left out of decisions, here and wherever else it happens")
	})}
	if mode == telemetry.Observe {
		opts = append(opts, cgroupfs.ReadOnly())
	}
	if cfg.Host.DAMON == config.DAMONAllow {
		opts = append(opts, cgroupfs.AllowDAMON())
	}
	fs, err := cgroupfs.Open(root, opts...)
	if err != nil {
		return nil, err
	}
	if mode == telemetry.Enforce {
		if err := fs.Enforceable(); err != nil {
			fs.Close()
			return nil, fmt.Errorf("cannot enforce on this host: %w; run with --observe to watch it", err)
		}
	}
	return fs, nil
}

// newLogger writes JSON lines, or lines for people.
func newLogger(e env, text bool) zerolog.Logger {
	var w io.Writer = e.out
	if text {
		w = zerolog.ConsoleWriter{Out: e.err, NoColor: !e.tty, TimeFormat: "15:04:05", PartsExclude: []string{zerolog.LevelFieldName}}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}
