package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/telemetry/status"
	"github.com/memagent/memagent/telemetry/top"
)

// socketFlag adds the flag that says where to ask.
func socketFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("socket", status.DefaultSocket, "`PATH` of the agent's status socket, telemetry.status in its config")
}

func statusCommand(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the running memagent sees",
		Long: `Asks the running memagent, over the socket that its config has under
telemetry.status or that it was started with (memagent run --status PATH), what it
sees: how it is itself, what the host has, and a line for each watched cgroup, the
largest first. COST is the share of time spent on bringing
evicted pages back, PRESS the share stalled on memory; "-" is not known, which is
not zero.

Exit codes: 0 it answered, 1 nobody answers or you may not ask, 2 the command line
is wrong.`,
		Args: noArgs,
	}
	socket := socketFlag(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print the answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := status.NewClient(*socket).Status(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(e.out, s)
		}
		return top.Write(e.out, s)
	}
	return cmd
}

func topCommand(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the cgroups of the running memagent, live",
		Long: `Shows what status shows, again and again. Where the output is no terminal it
prints the table once.

Keys: q quit, space pause, n by node and back, r the other way round, arrows and
page keys scroll; to sort: c cgroup, v verdict, m resident, s swap, f refault cost,
p pressure, l lent, a last action.`,
		Args: noArgs,
	}
	socket := socketFlag(cmd)
	every := cmd.Flags().Duration("every", 2*time.Second, "ask again after this `TIME`, from 100ms")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *every < 100*time.Millisecond {
			return usageError{fmt.Errorf("--every %s: want 100ms or more", *every)}
		}
		c := status.NewClient(*socket)
		if in, ok := e.in.(*os.File); !e.tty || !ok || !isTerminal(in) {
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			return top.Write(e.out, s)
		}
		return top.Run(cmd.Context(), c, *every, e.in, e.out)
	}
	return cmd
}

func explainCommand(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain CGROUP",
		Short: "Say why the running memagent did what it did to a cgroup",
		Long: `Asks the running memagent about one cgroup: what it holds, what that means, the
rule that followed and the figures behind it, the bounds it met, what came of it,
and what was decided before. CGROUP is its path below the cgroup2 mount, with or
without the mount before it, or the end of its path where that is enough:

  memagent explain nginx.service

Exit codes: 0 it answered, 1 nobody answers, you may not ask, or no policy watches
such a cgroup, 2 the command line is wrong.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("memagent explain takes one cgroup, such as /system.slice/nginx.service")}
			}
			return nil
		},
	}
	socket := socketFlag(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print the answer as JSON, with the decisions as the log has them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := status.NewClient(*socket).Detail(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(e.out, d)
		}
		return writeDetail(e.out, d)
	}
	return cmd
}

// writeDetail prints an explanation for people.
func writeDetail(w io.Writer, d *status.Detail) error {
	var b strings.Builder
	c := &d.Cgroup
	fmt.Fprintf(&b, "%s, under policy %s, mode %s\n", c.Name, c.Policy, c.Mode)
	if d.Gone != nil {
		fmt.Fprintf(&b, "It is gone, or no policy matches it any more, since %s; this is what was decided last.\n", clock(*d.Gone))
	}
	fmt.Fprintf(&b, "Last looked at %s, %s ago, in tick %d.\n\n", clock(c.Seen), d.Now.Sub(c.Seen).Round(time.Second), d.Tick)
	for _, text := range d.Explained {
		fmt.Fprintln(&b, text)
	}
	if c.Last != nil {
		fmt.Fprintf(&b, "The last action, at %s: %s.\n", clock(c.Last.Time), c.Last.Text)
	}
	if len(d.Past) > 1 {
		fmt.Fprint(&b, "\nWhat was decided, oldest first:\n")
		for _, p := range d.Past {
			when := clock(p.Since)
			if p.Times > 1 {
				when += fmt.Sprintf("..%s, %d times", clock(p.Until), p.Times)
			}
			fmt.Fprintf(&b, "  %s: %s\n", when, p.Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// clock is a time of day, as it is here.
func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
