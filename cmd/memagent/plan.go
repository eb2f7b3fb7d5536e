package main

import (
	"fmt"
	"io"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

// plan is what a policy would do on this host.
type plan struct {
	Policy  string `json:"policy"`
	Does    string `json:"does"`    // the policy in one line
	Cgroups int    `json:"cgroups"` // that it matches now
	// Cannot is what the policy asks for and this kernel does not have: the
	// policy, or the part of it, is not carried out.
	Cannot []string `json:"cannot"`
	// Differs is what is carried out otherwise than a reader might expect.
	Differs []string `json:"differs"`
}

func makePlans(cfg *config.Config, ids []memcg.ID, caps []cgroupfs.CapResult, match matcher) []plan {
	state := make(map[string]cgroupfs.CapState, len(caps))
	for _, c := range caps {
		state[c.Name] = c.State
	}
	matched := make(map[*config.Policy]int)
	for _, id := range ids {
		if p := match(id); p != nil {
			matched[p]++
		}
	}
	plans := make([]plan, 0, len(cfg.Policies))
	for i := range cfg.Policies {
		p := &cfg.Policies[i]
		one := plan{Policy: p.Name, Does: p.String(), Cgroups: matched[p], Cannot: []string{}, Differs: []string{}}
		if cfg.Enforces(p) {
			one.Cannot, one.Differs = limits(p, state)
		}
		plans = append(plans, one)
	}
	return plans
}

// limits says what of a policy that enforces cannot be had, and what is had in
// another way.
func limits(p *config.Policy, state map[string]cgroupfs.CapState) (cannot, differs []string) {
	cannot, differs = []string{}, []string{}
	missing := func(name string) bool { return state[name] == cgroupfs.CapNo }
	if missing(cgroupfs.CapReclaim) {
		cannot = append(cannot, "nothing is reclaimed: this kernel has no memory.reclaim")
	}
	fixed := p.Swappiness.Kind == config.SwappinessFixed
	takesNone := missing(cgroupfs.CapReclaimSwappiness) && missing(cgroupfs.CapLRUGen)
	switch {
	case p.Swappiness.NeverSwaps() && takesNone:
		cannot = append(cannot, "nothing is reclaimed: the policy forbids swapping, and this kernel takes no swappiness, neither by memory.reclaim nor by lru_gen")
	case fixed && p.Swappiness.Value == memcg.SwappinessMax && missing(cgroupfs.CapReclaimSwappinessMax) && missing(cgroupfs.CapLRUGen):
		cannot = append(cannot, "swappiness max is not known to this kernel's memory.reclaim; 200 is the nearest")
	case p.Swappiness.Kind != config.SwappinessKernel && takesNone:
		differs = append(differs, "the host's own swappiness is used: this kernel's memory.reclaim takes none")
	}
	if wantsAnon(&p.Swappiness) && !takesNone && missing(cgroupfs.CapReclaimSwappinessMax) && missing(cgroupfs.CapLRUGen) {
		differs = append(differs, "anon is not taken before file while a cgroup has more than some 16 MiB of file that is not in use: the classic LRU of this kernel then takes file alone, whatever the swappiness; see "+
			cgroupfs.CapReclaimSwappinessMax+" and "+cgroupfs.CapLRUGen)
	}
	if !p.Squeeze.Off && missing(cgroupfs.CapPressure) {
		cannot = append(cannot, "nothing is squeezed: without PSI the pressure that would stop it is unknown")
	}
	if !p.Squeeze.Off && missing(cgroupfs.CapRefaultSplit) {
		differs = append(differs, "anon and file refaults cannot be told apart on this kernel")
	}
	cannot, differs = nodeLimits(&p.Numa, missing, cannot, differs)
	if missing(cgroupfs.CapSwap) {
		differs = append(differs, "the host has no swap: only file pages can be reclaimed")
	}
	return cannot, differs
}

// wantsAnon reports whether a policy may ask for anon alone.
func wantsAnon(s *config.Swappiness) bool {
	return s.Kind == config.SwappinessFixed && s.Value >= mostlyAnon || s.Kind == config.SwappinessAuto && s.Max >= mostlyAnon
}

// mostlyAnon is the swappiness from which anon alone is asked for, by turns with file.
const mostlyAnon = 150

// nodeLimits says the same of what a policy wants about nodes.
func nodeLimits(n *config.Numa, missing func(string) bool, cannot, differs []string) ([]string, []string) {
	switch {
	case n.String() == "": // it wants nothing
		return cannot, differs
	case missing(cgroupfs.CapNUMA):
		return cannot, append(differs, "numa does nothing: this host has one node with memory")
	case n.Reclaim == config.NumaReclaimLottery && missing(cgroupfs.CapReclaimNodes):
		cannot = append(cannot, "memory is taken from every node in proportion, and nothing is done for nodes that are short: it cannot be taken from one node alone here, see "+cgroupfs.CapReclaimNodes)
	}
	if n.Mems != config.NumaMemsKeep && missing(cgroupfs.CapCpuset) {
		cannot = append(cannot, "cpuset.mems is never written: the cpuset controller is not enabled, see "+cgroupfs.CapCpuset)
	}
	return cannot, differs
}

// toEnforce is what to do where a config observes and is meant to act.
const toEnforce = "it writes nothing. To carry it out: set mode: enforce, check it again, and restart memagent (systemctl restart memagent); a reload does not do"

func printPlans(w io.Writer, cfg *config.Config, plans []plan) {
	fmt.Fprintf(w, "\nconfig: mode %s, every %s, %d policies; the first that matches wins\n", cfg.Mode, cfg.Interval, len(plans))
	if cfg.Mode == config.Observe {
		fmt.Fprintln(w, toEnforce)
	}
	for _, p := range plans {
		fmt.Fprintf(w, "  %s\n    matches %d cgroups now\n", p.Does, p.Cgroups)
		for _, text := range p.Cannot {
			fmt.Fprintf(w, "    CANNOT: %s\n", text)
		}
		for _, text := range p.Differs {
			fmt.Fprintf(w, "    note: %s\n", text)
		}
	}
}
