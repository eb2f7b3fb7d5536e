package config

import (
	"strings"
	"time"
)

// Policy is what the operator wants for the cgroups that it matches.
type Policy struct {
	Name  string     // unique, 1 to 63 of a-z, 0-9 and -
	Match []Selector // at least one; any of them is enough

	Swappiness Swappiness // zero: the kernel's
	Law        Law
	Squeeze    Squeeze
	// Headroom is what is kept free below the tighter of memory.high and
	// memory.max, as a share of it or as a size. Unset: none is kept.
	Headroom Amount
	High     High
	Swap     PolicySwap
	// SwapGuard allows memory.swap.max to be held at what is in swap while a
	// stream passes that would push anon out.
	SwapGuard bool
	Numa      Numa
	// Containers is what containers may ask for themselves.
	Containers Containers
	// Observe keeps this policy from writing also where the mode is Enforce.
	Observe bool
}

// PolicySwap bounds what memagent sends to swap from one cgroup.
type PolicySwap struct {
	// WriteBudget is swap-out per second from each cgroup of the policy, at
	// most the host's. 0: none. nil: only the host's budget binds.
	WriteBudget *Rate
}

// Squeeze is how memory that is not needed is taken from a cgroup that shows
// no stress.
type Squeeze struct {
	// Off takes nothing; the other fields then have their defaults.
	Off bool
	// MaxStep is the most that is taken in one tick, of memory.current:
	// above 0, up to MaxStep.
	MaxStep Percent
	// PressureTarget is the share of time stalled on memory (PSI some) at
	// which squeezing stops: above 0, up to 1.
	PressureTarget Percent
	// CostTarget is the share of time spent on refaults at which squeezing
	// stops: above 0, up to 1.
	CostTarget Percent
	// Floor is the memory.current below which nothing is taken.
	Floor Bytes
	// IdleAge is how long memory must have been unused to count as cold:
	// MinIdleAge..MaxIdleAge.
	IdleAge time.Duration
}

// Bounds of a policy. More than a tenth a tick is a shock, not a squeeze.
// Headroom of more than half means that the limit itself is wrong.
const (
	MaxStep     Percent = 0.1
	MaxHeadroom Percent = 0.5
	MinIdleAge          = time.Second
	MaxIdleAge          = 24 * time.Hour
)

// Law names the rule that sets the size of a squeeze.
type Law uint8

// Laws. LawTMO and LawSenpai are the published ones, kept as references.
const (
	LawMemagent Law = iota
	LawTMO
	LawSenpai
)

var lawNames = []string{"memagent", "tmo", "senpai"}

// String returns the law as the file has it.
func (l Law) String() string { return word(lawNames, int(l)) }

func defaultConfig() Config {
	return Config{
		Interval: 5 * time.Second,
		StateDir: DefaultStateDir,
		Host: Host{
			Reserve: ShareOf(defaultReserve),
			Swap:    HostSwap{WriteBudget: 4 << 20, KeepFree: 0.2},
			Nodes:   HostNodes{Low: 0.005, High: 0.01},
		},
	}
}

func defaultPolicy() Policy { return Policy{Squeeze: defaultSqueeze()} }

func defaultSqueeze() Squeeze {
	return Squeeze{MaxStep: 0.005, PressureTarget: 0.001, CostTarget: 0.001, IdleAge: time.Minute}
}

// String returns the policy in one line for people.
func (p *Policy) String() string {
	globs := make([]string, len(p.Match))
	for i, s := range p.Match {
		globs[i] = s.String()
	}
	out := []string{p.Name + ": " + strings.Join(globs, " or ")}
	add := func(words ...string) { out = append(out, strings.Join(words, " ")) }
	if p.Observe {
		add("observe only")
	}
	add("swappiness", p.Swappiness.String())
	add("law", p.Law.String())
	add(p.Squeeze.String())
	if p.Headroom.Kind != AmountUnset {
		add("headroom", p.Headroom.String())
	}
	if p.High.Lend {
		add("lends above memory.high")
		if p.High.AnonGrowth {
			out[len(out)-1] += ", for anon that grows too,"
		}
		if p.High.Ceiling.Kind != AmountUnset {
			out[len(out)-1] += " up to " + p.High.Ceiling.String()
		}
	}
	if p.SwapGuard {
		add("swap guard")
	}
	if p.Swap.WriteBudget != nil {
		add("swap-out up to", p.Swap.WriteBudget.String())
	}
	if text := p.Numa.String(); text != "" {
		add(text)
	}
	if text := p.Containers.String(); text != "" {
		add(text)
	}
	return strings.Join(out, "; ")
}

// String returns the squeeze in one phrase for people.
func (s Squeeze) String() string {
	if s.Off {
		return "no squeeze"
	}
	return "squeeze up to " + s.MaxStep.String() + " a tick, until pressure " + s.PressureTarget.String() +
		" or cost " + s.CostTarget.String() + ", floor " + s.Floor.String() + ", idle " + formatDuration(s.IdleAge)
}
