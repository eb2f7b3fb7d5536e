package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/units"
)

type checkFlags struct {
	config, root string
	brief, json  bool
	schema       bool
	configOnly   bool
}

func checkCommand(e env) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what this host can do and whether a config can be carried out",
		Long: `Checks the config, then the host: what its kernel offers, and what each missing
thing costs. It changes nothing. Only where the config enforces it asks a matched
cgroup's memory.reclaim for zero bytes, to learn which arguments the kernel takes.

With --config-only the host is not looked at, for where configs are written and not
carried out: exit 0 means that this config is right.

Exit codes: 0 all that the config asks for can be done, 1 this host cannot do it,
2 the config is wrong.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd.Context(), e) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "config `FILE` to check; without one, only the host is checked")
	flags.StringVar(&f.root, "root", "/", "`DIR` where the host's / is seen")
	flags.BoolVar(&f.brief, "brief", false, "say in one sentence whether this host can be watched")
	flags.BoolVar(&f.json, "json", false, "print the findings as JSON")
	flags.BoolVar(&f.configOnly, "config-only", false, "check the config alone, on any machine")
	flags.BoolVar(&f.schema, "schema", false, "print the JSON schema of the config and end")
	return cmd
}

// finding is one capability in the JSON form.
type finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // yes, no, unknown, not asked
	Detail string `json:"detail,omitempty"`
	Error  string `json:"error,omitempty"`
	Costs  string `json:"costs,omitempty"`  // where the state is no
	Remedy string `json:"remedy,omitempty"` // where the state is no
}

// report is the JSON form of a check.
type report struct {
	Host         string    `json:"host"`
	UID          int       `json:"uid"`
	Capabilities []finding `json:"capabilities"`
	Policies     []plan    `json:"policies"`
}

func (f *checkFlags) check(ctx context.Context, e env) error {
	if f.schema {
		_, err := e.out.Write(config.Schema())
		return err
	}
	if f.brief && f.json {
		return usageError{errors.New("--brief and --json contradict each other")}
	}
	if f.configOnly && (f.config == "" || f.brief || f.json) {
		return usageError{errors.New("--config-only takes a config, -c FILE, and neither --brief nor --json, which are about the host")}
	}
	cfg, err := loadConfig(f.config)
	if err != nil {
		return err
	}
	if f.configOnly {
		_, err := fmt.Fprintf(e.out, "%s is right: mode %s, policies for cgroups: %d\n", f.config, cfg.Mode, len(cfg.Policies))
		return err
	}
	var opts []cgroupfs.Option
	if cfg.Mode == config.Observe {
		opts = append(opts, cgroupfs.ReadOnly())
	}
	if cfg.Host.DAMON == config.DAMONAllow {
		opts = append(opts, cgroupfs.AllowDAMON())
	}
	fs, err := cgroupfs.Open(f.root, opts...)
	if err != nil {
		return err
	}
	defer fs.Close()
	if f.brief {
		_, err := fmt.Fprintln(e.out, fs.Layout().Describe())
		return err
	}
	ids, err := fs.Cgroups(nil)
	if err != nil && len(ids) == 0 {
		return fmt.Errorf("listing the cgroups of this host: %w", err)
	}
	match := matchNow(cfg, f.root, ids)
	caps := fs.Capabilities(ctx, probeTarget(fs, cfg, ids, match))
	plans := makePlans(cfg, ids, caps, match)
	addKnobs(plans, cfg, ids, match, fs.ReadKnob)
	bus := units.NewBus(f.root)
	defer bus.Close()
	addUnits(ctx, plans, cfg, ids, match, units.New(fs, bus, units.Options{Root: f.root, On: true}))
	if f.json {
		if err := writeReport(e.out, fs, caps, plans); err != nil {
			return err
		}
	} else {
		printHost(e.out, fs, caps)
		if f.config != "" {
			printPlans(e.out, cfg, plans)
		}
	}
	if cfg.Mode == config.Enforce {
		if err := fs.Enforceable(); err != nil {
			return fmt.Errorf("the config enforces, and this host cannot: %w", err)
		}
	}
	for _, p := range plans {
		if len(p.Cannot) > 0 {
			return silent(exitHost)
		}
	}
	return nil
}

// probeTarget returns a cgroup in which a request for zero bytes may be made:
// one that an enforcing policy matches. nil: there is none, nothing is asked.
func probeTarget(fs *cgroupfs.FS, cfg *config.Config, ids []memcg.ID, match matcher) *memcg.ID {
	if fs.Enforceable() != nil {
		return nil
	}
	for i := range ids {
		if cfg.Enforces(match(ids[i])) && !fs.Owns(ids[i].Path) {
			return &ids[i]
		}
	}
	return nil
}

func printHost(w io.Writer, fs *cgroupfs.FS, caps []cgroupfs.CapResult) {
	fmt.Fprintf(w, "host: %s\nuser: uid %d\n\n", fs.Layout().Describe(), os.Getuid())
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CAPABILITY\tHERE\tSEEN")
	var missing []cgroupfs.CapResult
	for _, c := range caps {
		detail := c.Detail
		if c.Err != nil {
			detail = c.Err.Error()
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", c.Name, c.State, detail)
		if c.State == cgroupfs.CapNo {
			missing = append(missing, c)
		}
	}
	tw.Flush()
	if len(missing) == 0 {
		return
	}
	fmt.Fprintln(w, "\nwhat is missing, and what that costs:")
	for _, c := range missing {
		fmt.Fprintf(w, "  %s: %s %s\n", c.Name, c.Costs, c.Remedy)
	}
}

func writeReport(w io.Writer, fs *cgroupfs.FS, caps []cgroupfs.CapResult, plans []plan) error {
	r := report{Host: fs.Layout().Describe(), UID: os.Getuid(), Policies: plans}
	for _, c := range caps {
		one := finding{Name: c.Name, State: c.State.String(), Detail: c.Detail}
		if c.Err != nil {
			one.Error = c.Err.Error()
		}
		if c.State == cgroupfs.CapNo {
			one.Costs, one.Remedy = c.Costs, c.Remedy
		}
		r.Capabilities = append(r.Capabilities, one)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
