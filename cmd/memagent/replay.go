package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/recording"
	"github.com/memagent/memagent/telemetry"
)

type replayFlags struct {
	config, log      string
	observe, enforce bool
}

func replayCommand(e env) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Decide again on what was recorded, by the same config or by another",
		Long: `Without -c it prints the decisions of the recorded run again, line for line. With
-c it prints where another config would have decided otherwise, and for each cgroup
what both asked for. The samples are those of the recorded run all the same: what
the other config would have changed does not show in them, so a difference is where
to look, not what would have come of it.

Exit codes: 0 played to its end, 1 the recording is cut short or cannot be read, 2
the config or the command line is wrong.`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return f.replay(e, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "decide by this config `FILE` and print the differences")
	flags.BoolVar(&f.enforce, "enforce", false, "with -c: as if its mode were enforce")
	flags.BoolVar(&f.observe, "observe", false, "with -c: as if its mode were observe")
	flags.StringVar(&f.log, "log", "auto", "`FORM` of the decisions: json, text, or auto: text on a terminal")
	return cmd
}

// oneFile wants one argument.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s needs one recording, a FILE of memagent record -o", cmd.CommandPath())}
	}
	return nil
}

func (f *replayFlags) replay(e env, path string) error {
	if f.config == "" && (f.observe || f.enforce) {
		return usageError{errors.New("--observe and --enforce are for another config: -c FILE")}
	}
	run := runFlags{observe: f.observe, enforce: f.enforce, log: f.log}
	if f.observe && f.enforce {
		return usageError{errors.New("--observe and --enforce contradict each other")}
	}
	text, err := run.textual(e.tty)
	if err != nil {
		return err
	}
	var other *config.Config
	if f.config != "" {
		if other, err = config.Load(f.config); err != nil {
			return err
		}
	}
	r, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	notices := &telemetry.Notices{Logger: zerolog.Nop()} // said when it was recorded
	if other == nil {
		var sink telemetry.Sink = telemetry.DecisionLog{Logger: zerolog.New(e.out)}
		if text {
			sink = &telemetry.Terminal{W: e.out}
		}
		p := controller.Player{Sink: sink, Notify: notices}
		return played(e, path, r, p.Play(r))
	}
	d := differ{out: e.out}
	d.was.Notify, d.would.Notify = notices, notices
	d.would.Config, d.would.Mode = other, run.mode(other)
	err = d.play(r)
	if err := d.table(); err != nil {
		return err
	}
	return played(e, path, r, err)
}

// played says what was left out of a replay.
func played(e env, path string, r *recording.Reader, err error) error {
	if r.Skipped > 0 {
		fmt.Fprintf(e.err, "memagent: %s: %d entries of a later version were left out\n", path, r.Skipped)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// isEnd reports whether a recording has come to its proper end.
func isEnd(err error) bool { return err == io.EOF }
