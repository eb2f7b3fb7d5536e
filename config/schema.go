package config

import (
	"strconv"
	"time"

	"github.com/memagent/memagent/memcg"
)

// What values look like, for the messages.
const (
	wantConfig      = "a mapping with mode, interval, state_dir, telemetry, host and policies"
	wantStateDir    = "the path of a directory such as /var/lib/memagent"
	wantBytes       = "0 or a size such as 64MiB (B, KiB, MiB, GiB, TiB)"
	wantRate        = "0 or a rate such as 4MiB/s"
	wantShareOrSize = "a percentage up to 100%, or a size such as 40GiB"
	wantTarget      = "a percentage above 0%, up to 100%"
	wantSwappiness  = "0..200, max, kernel or auto"
	wantSqueeze     = "off, or a mapping with max_step, pressure_target, cost_target, floor and idle_age"
	wantName        = "a name of 1 to 63 of a-z, 0-9 and -"
	wantGlob        = "a path glob such as '/system.slice/postgresql*.service' or '/kubepods.slice/**'"
	wantMatch       = "a list such as [{path: '/system.slice/**'}]"
	wantContainers  = "a mapping with annotations and swappiness"
	wantPolicies    = "a list of policies, each with name and match"
)

var configKeys = []key[Config]{
	wordKey("mode", "observe: decide and record, write nothing. enforce: carry decisions out.",
		modeNames, func(c *Config) *Mode { return &c.Mode }),
	scalarKey("interval", "1s..10m", "Time between two ticks, 1s..10m.",
		duration(MinInterval, MaxInterval), func(c *Config) *time.Duration { return &c.Interval }, formatDuration),
	{
		name: "state_dir", want: wantStateDir,
		about: "Where the journal of what must be put back is kept; on a disk that outlives a restart, and for one\n" +
			"memagent alone.",
		read: readStateDir, show: func(c *Config) shown { return shown{text: yamlPath(c.StateDir)} },
	},
	{
		name: "telemetry", want: wantTelemetry,
		about: "Where a running memagent can be asked; by default nowhere.",
		read:  func(r *reader, p place, want string, c *Config) { readMapping(r, p, want, telemetryKeys, &c.Telemetry) },
		show:  func(c *Config) shown { return showMapping(telemetryKeys, &c.Telemetry) },
	},
	{
		name: "host", want: "a mapping with reserve, swap, nodes, damon and units",
		read: func(r *reader, p place, want string, c *Config) { readMapping(r, p, want, hostKeys, &c.Host) },
		show: func(c *Config) shown { return showMapping(hostKeys, &c.Host) },
	},
	{
		name: "policies", want: wantPolicies, required: true,
		about: "What is done for which cgroups; the first policy that matches is the one that counts. Cgroups\n" +
			"that no policy matches, and the root, are left alone.",
		read: readPolicies, show: showPolicies,
	},
}

var hostKeys = []key[Host]{
	scalarKey("reserve", wantShareOrSize,
		"Kept free on the host, and the same share on every node, before memory is lent; what is lent comes back\n"+
			"when less is.",
		parseAmount(1), func(h *Host) *Amount { return &h.Reserve }, Amount.String),
	{
		name: "swap", want: "a mapping with write_budget and keep_free",
		about: "Bounds on what memagent sends to swap, over all cgroups.",
		read:  func(r *reader, p place, want string, h *Host) { readMapping(r, p, want, hostSwapKeys, &h.Swap) },
		show:  func(h *Host) shown { return showMapping(hostSwapKeys, &h.Swap) },
	},
	{
		name: "nodes", want: "a mapping with low and high",
		about: "When a node of a NUMA machine is short of memory.",
		read:  func(r *reader, p place, want string, h *Host) { readMapping(r, p, want, hostNodesKeys, &h.Nodes) },
		show:  func(h *Host) shown { return showMapping(hostNodesKeys, &h.Nodes) },
	},
	wordKey("damon", "allow: where lru_gen is not to be had, take memory from one node through DAMON, unless somebody\n"+
		"else uses it; while a request runs, nobody else can. never: leave it alone.",
		hostDAMONNames, func(h *Host) *HostDAMON { return &h.DAMON }),
	wordKey("units", "How memory.high, memory.swap.max and cpuset.mems are set of cgroups that are units of systemd. file: like\n"+
		"any other, and a daemon-reload writes the unit's own over it. property: as a property of the unit until the\n"+
		"next boot, which a reload keeps.",
		hostUnitsNames, func(h *Host) *HostUnits { return &h.Units }),
}

var hostSwapKeys = []key[HostSwap]{
	scalarKey("write_budget", wantRate, "Swap-out per second; 0 for none.",
		ParseRate, func(s *HostSwap) *Rate { return &s.WriteBudget }, Rate.String),
	scalarKey("keep_free", "a percentage, 0%..100%", "The share of swap that is left free.",
		ParsePercent, func(s *HostSwap) *Percent { return &s.KeepFree }, Percent.String),
}

var policyKeys = []key[Policy]{
	{
		name: "name", want: wantName, required: true, about: "1 to 63 of a-z, 0-9 and -, once only.",
		read: readName, show: func(p *Policy) shown { return shown{text: yamlName(p.Name)} },
	},
	{
		name: "match", want: wantMatch, required: true,
		about: "Which cgroups: globs on the path below the cgroup2 mount, any of which is enough. * stays within\n" +
			"a component, ** spans any number of them, ? is one character, [a-z] one of a set. A backslash stands\n" +
			"for itself: '/machine.slice/machine-qemu\\x2d1*.scope', in single quotes. A /** at the end matches\n" +
			"what is below, not the cgroup itself. The root is never matched.",
		read: readMatch, show: showMatch,
	},
	{
		name: "swappiness", want: wantSwappiness,
		about: "0 (never swap) .. 200 (anon first), max (anon only), kernel (pass nothing), or chosen by the law\n" +
			"within bounds: {auto: {base: 60, min: 0, max: 200}}. Passed with reclaim requests; cgroup v2 has\n" +
			"no file for it, and vm.swappiness is never touched.",
		read: readSwappiness, show: showSwappiness,
	},
	wordKey("law", "What sets the size of a squeeze; tmo and senpai are references to compare with.",
		lawNames, func(p *Policy) *Law { return &p.Law }),
	{
		name: "squeeze", want: wantSqueeze,
		about: "Take memory that is not needed from cgroups that show no stress; off for never.",
		read:  readSqueeze,
		show: func(p *Policy) shown {
			if p.Squeeze.Off {
				return shown{text: "off"}
			}
			return showMapping(squeezeKeys, &p.Squeeze)
		},
	},
	withExample("2%", scalarKey("headroom", "a percentage up to 50%, or a size such as 64MiB",
		"Kept free below the tighter of memory.high and memory.max, as a share of it or a size. Unset: none.",
		parseAmount(MaxHeadroom), func(p *Policy) *Amount { return &p.Headroom }, Amount.String)),
	{
		name: "high", want: "a mapping with lend, anon_growth and ceiling",
		read: func(r *reader, p place, want string, v *Policy) { readMapping(r, p, want, highKeys, &v.High) },
		show: func(p *Policy) shown { return showMapping(highKeys, &p.High) },
	},
	{
		name: "swap", want: "a mapping with write_budget",
		read: func(r *reader, p place, want string, v *Policy) { readMapping(r, p, want, policySwapKeys, &v.Swap) },
		show: func(p *Policy) shown { return showMapping(policySwapKeys, &p.Swap) },
	},
	{
		name: "numa", want: "a mapping with reclaim, mems, nodes, swap_when_short and demote",
		about: "What is done about the nodes of a NUMA machine.",
		read:  func(r *reader, p place, want string, v *Policy) { readMapping(r, p, want, numaKeys, &v.Numa) },
		show:  func(p *Policy) shown { return showMapping(numaKeys, &p.Numa) },
	},
	boolKey("swap_guard", "While file that cannot be kept streams through, hold memory.swap.max at what is in swap, so that the\n"+
		"stream does not push anon out. Let go at once when anon grows or file runs low.",
		func(p *Policy) *bool { return &p.SwapGuard }),
	{
		name: "containers", want: wantContainers,
		about: "What containers may ask for themselves in their OCI spec. What this policy forbids they cannot allow.",
		read: func(r *reader, p place, want string, v *Policy) {
			readMapping(r, p, want, containersKeys, &v.Containers)
		},
		show: func(p *Policy) shown { return showMapping(containersKeys, &p.Containers) },
	},
	boolKey("observe", "Write nothing under this policy, whatever the mode.",
		func(p *Policy) *bool { return &p.Observe }),
}

var squeezeKeys = []key[Squeeze]{
	scalarKey("max_step", "a percentage above 0%, up to 10%", "The most that is taken in one tick, of memory.current.",
		percentAbove0(MaxStep), func(s *Squeeze) *Percent { return &s.MaxStep }, Percent.String),
	scalarKey("pressure_target", wantTarget, "The share of time stalled on memory (PSI some) at which squeezing stops.",
		percentAbove0(1), func(s *Squeeze) *Percent { return &s.PressureTarget }, Percent.String),
	scalarKey("cost_target", wantTarget, "The share of time spent on refaults at which squeezing stops.",
		percentAbove0(1), func(s *Squeeze) *Percent { return &s.CostTarget }, Percent.String),
	scalarKey("floor", wantBytes, "The memory.current below which nothing is taken.",
		ParseBytes, func(s *Squeeze) *Bytes { return &s.Floor }, Bytes.String),
	scalarKey("idle_age", "1s..24h", "How long memory must have been unused to count as cold, 1s..24h.",
		duration(MinIdleAge, MaxIdleAge), func(s *Squeeze) *time.Duration { return &s.IdleAge }, formatDuration),
}

var policySwapKeys = []key[PolicySwap]{
	withExample("1MiB/s", scalarKey("write_budget", wantRate,
		"Swap-out per second from each cgroup; 0 for none. Unset: only the host's budget binds.",
		func(text string) (*Rate, error) { v, err := ParseRate(text); return &v, err },
		func(s *PolicySwap) **Rate { return &s.WriteBudget },
		func(v *Rate) string {
			if v == nil {
				return ""
			}
			return v.String()
		})),
}

// auto is the mapping behind swappiness: {auto: ...}.
type auto struct{ bounds Swappiness }

var autoKeys = []key[auto]{{
	name: "auto", want: "a mapping with base, min and max", required: true,
	read: func(r *reader, p place, want string, a *auto) { readMapping(r, p, want, boundKeys, &a.bounds) },
	show: func(a *auto) shown { return showMapping(boundKeys, &a.bounds) },
}}

var boundKeys = []key[Swappiness]{
	boundKey("base", func(s *Swappiness) *int { return &s.Base }),
	boundKey("min", func(s *Swappiness) *int { return &s.Min }),
	boundKey("max", func(s *Swappiness) *int { return &s.Max }),
}

func boundKey(name string, field func(*Swappiness) *int) key[Swappiness] {
	return key[Swappiness]{
		name: name, want: "0..200",
		read: func(r *reader, p place, want string, s *Swappiness) {
			if v, ok := r.integer(p, want, 0, memcg.SwappinessMax-1); ok {
				*field(s) = v
			}
		},
		show: func(s *Swappiness) shown { return shown{text: strconv.Itoa(*field(s))} },
	}
}

func withExample[T any](example string, k key[T]) key[T] {
	k.example = example
	return k
}

func duration(low, high time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := ParseDuration(text)
		switch {
		case err != nil:
			return 0, err
		case d < low:
			return 0, faultf(ErrValue, "%s is below %s", text, formatDuration(low))
		case d > high:
			return 0, faultf(ErrValue, "%s is above %s", text, formatDuration(high))
		}
		return d, nil
	}
}

func percentAbove0(high Percent) func(string) (Percent, error) {
	return func(text string) (Percent, error) {
		p, err := ParsePercent(text)
		switch {
		case err != nil:
			return 0, err
		case p == 0:
			return 0, faultf(ErrValue, "%s is not above 0%%", text)
		case p > high:
			return 0, faultf(ErrValue, "%s is above %v", text, high)
		}
		return p, nil
	}
}
