package config

import (
	_ "embed"
	"time"
)

// Config is one config file with its defaults filled in. It is read-only once
// made: any number of goroutines may use it.
type Config struct {
	Mode     Mode
	Interval time.Duration // between two ticks, MinInterval..MaxInterval
	// StateDir is where the journal is, an absolute path in its shortest form:
	// what was changed and must be changed back outlives the process there.
	StateDir  string
	Telemetry Telemetry
	Host      Host
	Policies  []Policy // in the order of the file; the first that matches wins
}

// DefaultStateDir is Config.StateDir where the file names none: what the file
// system hierarchy has for the state of one program.
const DefaultStateDir = "/var/lib/memagent"

// Bounds of Config.Interval. Below a second the samples cost more than they
// tell; above ten minutes no verdict is fresh enough to act on.
const (
	MinInterval = time.Second
	MaxInterval = 10 * time.Minute
)

// Mode tells whether memagent may write at all.
type Mode uint8

// Modes. The zero Mode writes nothing.
const (
	Observe Mode = iota // decide and record, write nothing
	Enforce             // carry decisions out
)

var modeNames = []string{"observe", "enforce"}

// String returns the mode as the file has it.
func (m Mode) String() string { return word(modeNames, int(m)) }

// Host is what holds for the host as a whole.
type Host struct {
	// Reserve is kept free on the host before memory is lent, a size or a share
	// of its memory, and the same share of every node.
	Reserve Amount
	Swap    HostSwap
	Nodes   HostNodes
	// DAMON tells whether memory may be taken from one node through it where
	// lru_gen is not to be had.
	DAMON HostDAMON
	// Units is how limits of cgroups that are units of systemd are set.
	Units HostUnits
}

// HostSwap bounds what memagent sends to swap in total.
type HostSwap struct {
	// WriteBudget is swap-out per second over all cgroups. 0: none at all.
	WriteBudget Rate
	// KeepFree is the share of swap, 0..1, that memagent leaves free.
	KeepFree Percent
}

//go:embed default.yaml
var defaultYAML []byte

// Default returns what runs without a config file: it observes every cgroup
// and writes nothing.
func Default() *Config {
	c, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(err) // part of the program, held by a test
	}
	return c
}

// Match is MatchContainer for a cgroup of no container.
func (c *Config) Match(path string) *Policy { return c.MatchContainer(path, nil) }

// MatchContainer returns the policy that a cgroup falls under: the first with a
// selector for its path, as memcg.ID has it, and for the annotations of the
// container that it is or is inside of, nil where that is none. nil: no policy,
// which is what always comes back for the root. The policy belongs to the config
// and must not be changed. MatchContainer allocates nothing.
func (c *Config) MatchContainer(path string, annotations map[string]string) *Policy {
	for i := range c.Policies {
		p := &c.Policies[i]
		for j := range p.Match {
			if p.Match[j].Match(path, annotations) {
				return p
			}
		}
	}
	return nil
}

// Enforces reports whether decisions under p may be carried out: the mode is
// Enforce and the policy does not observe. A nil policy enforces nothing.
func (c *Config) Enforces(p *Policy) bool {
	return c.Mode == Enforce && p != nil && !p.Observe
}

func word(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
