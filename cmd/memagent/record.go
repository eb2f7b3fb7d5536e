package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/recording"
	"github.com/memagent/memagent/telemetry"
)

type recordFlags struct {
	config, root, out string
	duration          time.Duration
	most              string
}

func recordCommand(e env) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record -o FILE",
		Short: "Record what memagent sees, to replay it or to draw a report of it",
		Long: `Watches as memagent run --observe does, and writes all that it reads to a new
file: samples of the cgroups that the config matches, of the host, and the ages of
memory. It writes nothing to the kernel and may run beside a memagent that acts. To
record one that acts, with what came of it, use memagent run --record FILE.

The file is compressed, can be read up to the last second or so after kill -9, and
ends at its full size. Paths of cgroups are in it: it is readable for you alone.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.record(cmd.Context(), e) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "`FILE` to write; it must not exist")
	flags.StringVarP(&f.config, "config", "c", "", "config `FILE`; without one, all cgroups are recorded")
	flags.StringVar(&f.root, "root", "/", "`DIR` where the host's / is seen, /host in a sidecar")
	flags.DurationVar(&f.duration, "for", 0, "end after this `TIME` (24h); 0 records until stopped")
	addMaxSize(cmd, &f.most)
	return cmd
}

func addMaxSize(cmd *cobra.Command, most *string) {
	cmd.Flags().StringVar(most, "max-size", "256MiB", "end the recording at this `SIZE`")
}

func (f *recordFlags) record(ctx context.Context, e env) error {
	if f.out == "" {
		return usageError{errors.New("record needs a file to write: -o FILE")}
	}
	if err := inTime(f.duration); err != nil {
		return err
	}
	cfg, err := loadConfig(f.config)
	if err != nil {
		return err
	}
	notices := &telemetry.Notices{Logger: newLogger(e, true)}
	fs, err := openHost(f.root, cfg, telemetry.Observe, notices)
	if err != nil {
		return err
	}
	defer fs.Close()
	self, _ := fs.Self()
	containers, err := container.Open(f.root)
	if err != nil {
		return err
	}
	defer containers.Close()
	started := time.Now()
	w, err := startRecording(f.out, f.most, fs, started)
	if err != nil {
		return err
	}
	summary := &telemetry.Summary{}
	loop := controller.Loop{
		Core: controller.NewCore(cfg, telemetry.Observe, self, notices, started),
		Host: fs, Interval: cfg.Interval, Sink: summary, Notify: notices,
	}
	draws, _ := newDraws()
	loop.Core.DrawFrom(draws)
	loop.Core.DescribeBy(containers)
	loop.Core.RecordTo(w, started)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if f.duration > 0 {
		ctx, stop = context.WithTimeout(ctx, f.duration)
		defer stop()
	}
	go func() {
		<-w.Done()
		stop()
	}()
	err = loop.Run(ctx)
	if closed := w.Close(); closed != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w", f.out, closed))
	}
	if err != nil && !errors.Is(err, recording.ErrFull) {
		return err
	}
	fmt.Fprintf(e.out, "%s: %d samples in %s, %s%s\nmemagent report %s -o report.html draws it, memagent replay %s decides on it again.\n",
		f.out, summary.Decisions, time.Since(started).Round(time.Second), fileSize(f.out), fullNote(err), f.out, f.out)
	return nil
}

func fullNote(err error) string {
	if err != nil {
		return ", full: --max-size gives it more"
	}
	return ""
}

func fileSize(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "of unknown size"
	}
	return telemetry.Bytes(uint64(info.Size()))
}

// startRecording begins a recording of a host.
func startRecording(path, most string, fs *cgroupfs.FS, started time.Time) (*recording.Writer, error) {
	size, err := config.ParseBytes(most)
	if err != nil || size == 0 {
		return nil, usageError{fmt.Errorf("--max-size %s: want a size such as 256MiB", most)}
	}
	return recording.Create(path, recording.NewHeader("memagent "+version, fs.Layout().Describe(), started), int64(size))
}

// keepRecording records a run that goes on where the recording ends. The
// returned function ends it.
func keepRecording(path, most string, fs *cgroupfs.FS, core *controller.Core, started time.Time, notices *telemetry.Notices) (end func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	w, err := startRecording(path, most, fs, started)
	if err != nil {
		return nil, err
	}
	core.RecordTo(w, started)
	go func() {
		<-w.Done()
		if err := w.Err(); err != nil {
			notices.Warn("recording", fmt.Errorf("%s: %w", path, err), "the recording has ended; memagent goes on")
		}
	}()
	return func() { _ = w.Close() }, nil // its error has been said
}
