package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/scenario"
	"github.com/memagent/memagent/lab/topology"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List scenarios, topologies and kernels",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			tw := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "SCENARIO\t")
			for _, s := range scenario.All() {
				note := ""
				switch {
				case s.Host:
					note = " (not in the suite: needs an image and a package; make host)"
				case !s.Suite:
					note = " (not in the suite: its checks do not all hold yet)"
				}
				fmt.Fprintf(tw, "  %s\t%s%s\n", s.Name, s.About, note)
			}
			fmt.Fprintln(tw, "TOPOLOGY\t")
			for _, n := range topology.Names() {
				t, err := topology.Load(n)
				if err != nil {
					return err
				}
				fmt.Fprintf(tw, "  %s\t%s (%s, %d CPUs)\n", n, t.About, human(uint64(t.Memory())), t.CPUs())
			}
			fmt.Fprintln(tw, "KERNEL\t")
			for _, n := range kernel.Names() {
				state := "not fetched yet"
				if k, ok := l.Kernels().Cached(n); ok {
					state = k.Release
				}
				fmt.Fprintf(tw, "  %s\t%s\n", n, state)
			}
			return tw.Flush()
		},
	}
}
