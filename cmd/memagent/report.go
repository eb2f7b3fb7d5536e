package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/recording"
	pages "github.com/memagent/memagent/report"
	"github.com/memagent/memagent/telemetry"
)

type reportFlags struct {
	out  string
	most int
}

func reportCommand(e env) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE -o report.html",
		Short: "Draw what was recorded as one HTML page",
		Long: `Draws a recording: for each cgroup what it held by type and by node, what refaults
cost it, pressure, swap, what was lent, and every action. The page is one file that
loads nothing from anywhere. Of a recording that was cut short it shows what there is.`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return f.report(e, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "`FILE` to write, put in place of one that is there")
	flags.IntVar(&f.most, "cgroups", pages.Most, "draw this `NUMBER` of cgroups, those that matter most")
	return cmd
}

func (f *reportFlags) report(e env, path string) error {
	switch {
	case f.out == "":
		return usageError{errors.New("report needs a file to write: -o report.html")}
	case f.most < 1:
		return usageError{fmt.Errorf("--cgroups %d: want 1 or more", f.most)}
	}
	var survey pages.Survey
	header, ended, err := playFor(path, &survey, nil)
	if err != nil {
		return err
	}
	paths, others := survey.Pick(f.most)
	page := pages.NewPage(strings.TrimSuffix(header.Host, ".")+", recorded by "+header.Program, paths)
	if ended != nil {
		page.Notes = append(page.Notes, ended.Error()+": what came later is not shown")
	}
	if others > 0 {
		page.Notes = append(page.Notes, fmt.Sprintf("%d more cgroups were recorded; memagent report --cgroups %d draws all", others, len(paths)+others))
	}
	_, _, err = playFor(path, page, func(ev *recording.Event) {
		switch {
		case ev.Kind == recording.HostSeen:
			page.Host(ev.Time(), &ev.Host)
		case ev.Kind == recording.Looked && ev.Err == nil && !ev.Glance.Known():
			page.Sample(ev.Time(), ev.Cgroup, &ev.Sample)
		}
	})
	if err != nil {
		return err
	}
	if err := writePage(f.out, page); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	fmt.Fprintf(e.out, "%s: %d cgroups, %s\n", f.out, len(paths), fileSize(f.out))
	for _, note := range page.Notes {
		fmt.Fprintf(e.err, "memagent: %s: %s\n", path, note)
	}
	return nil
}

// playFor plays a recording for a sink, and shows each event before it is
// decided on. ended is why it was cut short, nil where it was not.
func playFor(path string, sink telemetry.Sink, seen func(*recording.Event)) (h recording.Header, ended, err error) {
	r, err := recording.Open(path)
	if err != nil {
		return h, nil, err
	}
	defer r.Close()
	p := controller.Player{Sink: sink, Notify: &telemetry.Notices{Logger: zerolog.Nop()}}
	var e recording.Event
	for {
		err := r.Next(&e)
		switch {
		case isEnd(err):
			return r.Header, nil, nil
		case errors.Is(err, recording.ErrCut):
			return r.Header, err, nil
		case err != nil:
			return h, nil, fmt.Errorf("%s: %w", path, err)
		}
		if seen != nil {
			seen(&e)
		}
		if err := p.Feed(r, &e); err != nil {
			return h, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

// writePage puts a page in place whole or not at all.
func writePage(path string, page *pages.Page) error {
	t, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer t.Cleanup()
	if err := page.Write(t); err != nil {
		return err
	}
	return t.CloseAtomicallyReplace()
}
