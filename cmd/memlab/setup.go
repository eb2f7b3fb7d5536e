package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/lab/kernel"
)

// need is a program the lab cannot do without, and the package that has it.
type need struct{ program, pkg, why string }

var needs = []need{
	{"qemu-system-x86_64", "qemu-system-x86", "to boot guests"},
	{"mke2fs", "e2fsprogs", "to make data disks"},
	{"dpkg-deb", "dpkg", "to unpack kernels"},
	{"apt-get", "apt", "to fetch kernels"},
}

// missing are the needs this machine does not meet.
func missing() []need {
	var out []need
	for _, n := range needs {
		if _, err := exec.LookPath(n.program); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + n.program); err == nil {
			continue
		}
		out = append(out, n)
	}
	return out
}

func (a *app) setupCommand() *cobra.Command {
	var update bool
	var only []string
	c := &cobra.Command{
		Use:   "setup",
		Short: "Install what is missing and fetch the kernels",
		Long: `setup installs QEMU and mke2fs with apt-get when they are missing (which takes root), and fetches
the kernels into the cache. What is there already is left alone. With --update it also looks for
newer kernels.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.install(c); err != nil {
				return err
			}
			l, err := a.lab()
			if err != nil {
				return err
			}
			store := l.Kernels()
			var failed []error
			for _, name := range only {
				var k kernel.Kernel
				if update {
					k, err = store.Update(c.Context(), name, true)
				} else {
					k, err = store.Get(c.Context(), name)
				}
				if err != nil {
					failed = append(failed, err)
					continue
				}
				a.say("kernel %s is %s", name, k.Release)
			}
			a.say("guests run with %s, the cache is %s", l.Accel(false), l.Cache)
			return errors.Join(failed...)
		},
	}
	c.Flags().BoolVar(&update, "update", false, "fetch package lists again and look for newer kernels")
	c.Flags().StringSliceVar(&only, "kernel", kernel.Names(), "kernels to fetch")
	return c
}

// install installs missing programs, or says what to install.
func (a *app) install(c *cobra.Command) error {
	list := missing()
	if len(list) == 0 {
		return nil
	}
	args := []string{"install", "-y", "--no-install-recommends"}
	for _, n := range list {
		a.say("%s is missing (%s)", n.program, n.why)
		args = append(args, n.pkg)
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("installing packages takes root: run `apt-get %s` as root, then `memlab setup` again", strings.Join(args, " "))
	}
	for _, step := range [][]string{{"update"}, args} {
		a.say("running apt-get %s", strings.Join(step, " "))
		cmd := exec.CommandContext(c.Context(), "apt-get", step...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = a.err, a.err
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("tried `apt-get %s`, which failed: %w; install %s by hand, then run `memlab setup` again", strings.Join(step, " "), err, strings.Join(args[3:], " "))
		}
	}
	if left := missing(); len(left) > 0 {
		return fmt.Errorf("apt-get reported success, but %s is still not to be found", left[0].program)
	}
	return nil
}
