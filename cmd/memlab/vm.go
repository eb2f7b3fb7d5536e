package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/initramfs"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/terminal"
	"github.com/memagent/memagent/lab/topology"
)

// place are the flags that say where a command runs.
type place struct{ kernel, topology, lru string }

func (p *place) flags(c *cobra.Command, topologyDefault string) {
	c.Flags().StringVar(&p.kernel, "kernel", "6.12", "kernel to boot: 6.1, 6.12 or latest")
	c.Flags().StringVar(&p.topology, "topology", topologyDefault, "machine to boot (see memlab list)")
	c.Flags().StringVar(&p.lru, "lru", "default", "page ageing: classic, mglru or default (the kernel's own)")
}

// guest is a guest at the place, without anything to do yet.
func (p *place) guest(c *cobra.Command, l *lab.Lab) (lab.Guest, error) {
	lru, err := parseLRU(p.lru)
	if err != nil {
		return lab.Guest{}, err
	}
	t, err := topology.Load(p.topology)
	if err != nil {
		return lab.Guest{}, err
	}
	k, err := l.Kernels().Get(c.Context(), p.kernel)
	if err != nil {
		return lab.Guest{}, err
	}
	return lab.Guest{Kernel: k, Topology: t, Spec: protocol.Spec{LRU: lru}}, nil
}

func (a *app) execCommand() *cobra.Command {
	var p place
	var within time.Duration
	var host bool
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run one command in a guest and show its output",
		Long: `exec boots a guest and runs one command there: "memagent" with any arguments, or a program
of this machine, which is taken along with its libraries. Beside it there is a cgroup /app that
holds 16 MiB. memlab ends with the command's exit code.

With --host the guest is a container host: Debian with systemd, podman and containerd, and the command
is one of its own. memagent's packages are in ` + "/run/memlab" + ` there, if they were built; it is not installed.`,
		Example: "  memlab exec --kernel latest -- memagent check\n  memlab exec -- cat /proc/version\n  memlab exec --host -- systemd-cgls",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			g, err := p.guest(c, l)
			if err != nil {
				return err
			}
			if host {
				done, err := l.ContainerHost(c.Context(), &g)
				if err != nil {
					return err
				}
				defer done()
			} else if args[0] != "memagent" || l.Agent == "" {
				if g.Programs, err = initramfs.Programs(args[:1], nil); err != nil {
					return err
				}
				args[0] = filepath.Base(args[0])
			}
			g.Spec.Job, g.Spec.Argv, g.Within = guest.ExecJob, args, within
			g.OnMessage = func(m protocol.Message) {
				switch {
				case m.Output != nil && m.Output.Stream == 2:
					_, err = a.err.Write(m.Output.Data)
				case m.Output != nil:
					_, err = a.out.Write(m.Output.Data)
				case m.Log != "":
					a.say("%s", m.Log)
				}
			}
			out, bootErr := l.Boot(c.Context(), g)
			if bootErr != nil {
				return bootErr
			}
			if err != nil {
				return err
			}
			if out.Done.Code != 0 {
				return &codeError{code: out.Done.Code}
			}
			return nil
		},
	}
	p.flags(c, topology.Default)
	c.Flags().BoolVar(&host, "host", false, "boot a container host instead of a bare kernel")
	c.Flags().DurationVar(&within, "within", 10*time.Minute, "time the command may take")
	return c
}

// shellPrograms make a shell useful.
var shellPrograms = []string{
	"cat", "chmod", "cp", "cut", "dd", "df", "dmesg", "echo", "find", "free", "grep", "head", "hexdump", "kill", "less", "ls", "mkdir",
	"mount", "mv", "nproc", "numactl", "ps", "rm", "rmdir", "sed", "sleep", "sort", "strace", "stty", "swapon", "sync", "tail", "tee",
	"top", "tr", "umount", "uname", "vmstat", "watch", "wc",
}

func (a *app) shellCommand() *cobra.Command {
	var p place
	c := &cobra.Command{
		Use:   "shell",
		Short: "Boot a guest and give its console to a shell",
		Long: `shell boots a guest with memagent, memlab (as /init) and common programs of this machine, and
connects this terminal to its console. Leaving the shell ends the guest; so does Ctrl-A x.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.lab()
			if err != nil {
				return err
			}
			g, err := p.guest(c, l)
			if err != nil {
				return err
			}
			if g.Programs, err = initramfs.Programs([]string{"bash"}, shellPrograms); err != nil {
				return err
			}
			restore := terminal.Save(os.Stdin)
			defer restore()
			g.Spec.Job, g.Terminal = guest.ShellJob, true
			_, err = l.Boot(c.Context(), g)
			return err
		},
	}
	p.flags(c, topology.Default)
	return c
}
