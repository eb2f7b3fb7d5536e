package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/demo"
	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/terminal"
	"github.com/memagent/memagent/lab/topology"
)

// demoKernels are tried in this order.
var demoKernels = []string{"6.12", "latest", "6.1"}

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show memagent at work in a guest: an idle container and a busy one",
		Long: `demo boots a guest with four NUMA nodes and two containers, one idle and one busy, lets memagent
enforce one policy on both, and shows what happens. It takes about two minutes and exits 0 only
when the idle one gave its memory back and the busy one kept its own.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			if l.Agent == "" {
				return errors.New("there is no memagent to show: build it beside memlab, or name it with --memagent")
			}
			k, err := a.demoKernel(c, l)
			if err != nil {
				return err
			}
			t, err := topology.Load(topology.Default)
			if err != nil {
				return err
			}
			a.say("booting Linux %s with %d NUMA nodes (%s) ...", k.Release, len(t.Nodes), l.Accel(false))
			out, isFile := a.out.(*os.File)
			screen := demo.Screen{Out: a.out, Redraw: isFile && terminal.Is(out),
				Title: "Both containers have the same policy. Which memory is needed, memagent finds out by itself."}
			var showErr error
			_, err = l.Boot(c.Context(), lab.Guest{
				Kernel: k, Topology: t, Files: demo.Files, Within: demo.Within,
				Spec: protocol.Spec{Job: demo.JobName, Agent: protocol.AgentOn},
				OnMessage: func(m protocol.Message) {
					if m.Sample != nil && showErr == nil {
						showErr = screen.Show(m.Sample)
					}
				},
			})
			if err := errors.Join(err, showErr); err != nil {
				return err
			}
			end := screen.End()
			if end == nil {
				return errors.New("the guest ended without a summary")
			}
			if f := end.Failures(); len(f) > 0 {
				return &codeError{exitCheck, errors.New(strings.Join(f, "; "))}
			}
			fmt.Fprintln(a.out, "The idle container gave its memory back; the busy one kept its own.")
			return nil
		},
	}
}

// demoKernel is the first kernel that is cached, else the first that can be fetched.
func (a *app) demoKernel(c *cobra.Command, l *lab.Lab) (kernel.Kernel, error) {
	store := l.Kernels()
	for _, name := range demoKernels {
		if k, ok := store.Cached(name); ok {
			return k, nil
		}
	}
	var failed []error
	for _, name := range demoKernels {
		k, err := store.Get(c.Context(), name)
		if err == nil {
			return k, nil
		}
		if c.Context().Err() != nil {
			return k, err
		}
		failed = append(failed, err)
	}
	return kernel.Kernel{}, errors.Join(failed...)
}
