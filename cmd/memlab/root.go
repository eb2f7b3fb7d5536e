package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/machine"
	"github.com/memagent/memagent/lab/workload"
)

// app is what all commands share.
type app struct {
	out, err io.Writer
	cache    string // --cache
	agent    string // --memagent
	deb      string // --package
}

func newRoot(out, err io.Writer) *cobra.Command {
	a := &app{out: out, err: err}
	root := &cobra.Command{
		Use:   "memlab",
		Short: "Run memagent's scenarios on real kernels",
		Long: `memlab boots Debian's kernels in QEMU, with NUMA nodes, swap and a data disk, and runs
memagent's scenarios there with the agent off and on. It needs no root once QEMU is
installed, and no network once the kernels are cached.

Exit codes: 0 all is well, 1 a check failed, 2 wrong usage or something is missing here.

Environment:
  MEMLAB_ACCEL   kvm or tcg (default: kvm where a kernel comes up with it, else emulation)
  MEMLAB_CACHE   folder for kernels and disk images (default: memagent-lab in the user's cache folder)
  MEMLAB_MIRROR  URI of a Debian archive, where apt is not set up with one`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(out)
	root.SetErr(err)
	root.PersistentFlags().StringVar(&a.cache, "cache", "", "folder for kernels and disk images (default $MEMLAB_CACHE)")
	root.PersistentFlags().StringVar(&a.agent, "memagent", "", "memagent to put into guests (default: the one beside memlab)")
	root.PersistentFlags().StringVar(&a.deb, "package", "", "memagent's .deb for container hosts (default: the newest in dist, beside the folder of memlab)")
	root.AddCommand(a.runCommand(), a.suiteCommand(), a.matrixCommand(), a.demoCommand(), a.listCommand(), a.setupCommand(), a.execCommand(), a.shellCommand(), workloadCommand(out))
	return root
}

// lab makes the lab the flags describe.
func (a *app) lab() (*lab.Lab, error) {
	l := &lab.Lab{Cache: a.cache, Agent: a.agent, Package: a.deb, Say: a.say, Ask: machine.Accel(os.Getenv("MEMLAB_ACCEL"))}
	if l.Ask != "" && l.Ask != machine.KVM && l.Ask != machine.TCG {
		return nil, fmt.Errorf("MEMLAB_ACCEL is %q: it is kvm, tcg, or unset", l.Ask)
	}
	var err error
	if l.Cache == "" {
		if l.Cache, err = lab.DefaultCache(); err != nil {
			return nil, err
		}
	}
	if l.Cache, err = filepath.Abs(l.Cache); err != nil {
		return nil, err
	}
	if l.Self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	if l.Agent == "" {
		beside := filepath.Join(filepath.Dir(l.Self), "memagent")
		if _, err := os.Stat(beside); err == nil {
			l.Agent = beside
		}
	} else if _, err := os.Stat(l.Agent); err != nil {
		return nil, fmt.Errorf("--memagent: %w", err)
	}
	return l, nil
}

// say tells people what is going on, apart from results.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// workloadCommand is how guests start workloads; people may too.
func workloadCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:                "workload anon|file|hotcold|zipf|churn|build|compile [flags]",
		Short:              "Run one of the workloads that scenarios are made of",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return workload.Run(args, out) },
	}
}
