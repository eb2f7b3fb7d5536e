package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
)

// Exit codes. They are a promise to scripts and to the service manager.
const (
	exitOK     = 0
	exitHost   = 1 // this host cannot do what was asked
	exitConfig = 2 // the config or the command line is wrong; nothing was started
)

// env is all that a command touches beside its arguments.
type env struct {
	in       io.Reader // nil: none
	out, err io.Writer
	tty      bool // out is a terminal
	// limit sets the limit of the process's own memory, as debug.SetMemoryLimit
	// does; nil leaves it.
	limit func(bytes int64) (before int64)
}

// usageError is a wrong command line.
type usageError struct{ error }

// silent carries an exit code for something that has been said already.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

// newRoot returns the commands.
func newRoot(e env) *cobra.Command {
	root := &cobra.Command{
		Use:   "memagent",
		Short: "Takes from each cgroup the memory it does not need, and says why",
		Long: `memagent watches the memory of a host's cgroups (cgroup v2), works out which of
it each one really needs, and reclaims the rest by a policy. Without a config it
observes everything and writes nothing.

Try it in this order:
  memagent check                  can this host do it, and what is missing
  memagent run                    watch and decide, write nothing
  memagent run -c FILE --observe  what would this config do
  memagent run -c FILE --enforce  do it; whatever it changes is put back at its end`,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		// One wrong, missing or swapped letter or two.
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
	}
	root.SetOut(e.out)
	root.SetErr(e.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(e), checkCommand(e), restoreCommand(e), statusCommand(e), topCommand(e), explainCommand(e), recordCommand(e), replayCommand(e), reportCommand(e), versionCommand(e))
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strict(root)
	return root
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, e env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var code silent
	var usage usageError
	var noController *cgroupfs.NoMemoryController
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, config.ErrBadConfig), errors.Is(err, config.ErrNoConfig), errors.Is(err, config.ErrUnreadable):
		fmt.Fprintln(e.err, err)
		return exitConfig
	case errors.As(err, &noController):
		fmt.Fprintf(e.err, "memagent: %v\n", err)
		return exitHost
	case errors.As(err, &usage):
		fmt.Fprintf(e.err, "memagent: %v\nSee %s --help.\n", err, cmd.CommandPath())
		return exitConfig
	}
	fmt.Fprintf(e.err, "memagent: %v\n", err)
	return exitHost
}

// noArgs refuses words that no command takes, among them unknown commands.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		text := fmt.Sprintf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf(", did you mean %q?", near[0])
		}
		return usageError{errors.New(text)}
	}
	return usageError{fmt.Errorf("%s takes no argument %q", cmd.CommandPath(), args[0])}
}

// helpCommand is help for a command that there is; the library's own takes any word.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long:  "Prints what a command does and which flags it takes, as COMMAND --help does.",
		Args: func(cmd *cobra.Command, args []string) error {
			of, left, err := cmd.Root().Find(args)
			if err != nil {
				return usageError{err}
			}
			return noArgs(of, left)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if of, left, err := cmd.Root().Find(args); err == nil && len(left) == 0 {
				for _, c := range of.Commands() {
					if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), start) {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// strict has the library's own commands refuse words that they do not know: a
// script that asks for the completion of a shell that there is none for must not
// take the help text for it.
func strict(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args, c.RunE = noArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range c.Commands() {
			shell.Args = noArgs
		}
	}
}

// loadConfig reads the config file, or the built-in default where none is
// named.
func loadConfig(file string) (*config.Config, error) {
	if file == "" {
		return config.Default(), nil
	}
	return config.Load(file)
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
