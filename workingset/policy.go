package workingset

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Law names the rule that squeezes a cgroup nobody needs to grow.
type Law uint8

const (
	// Memagent is the full law of this package: refault distance, verdicts,
	// moves, headroom and a squeeze that knows ages where the kernel tells
	// them.
	Memagent Law = iota
	// TMO is the formula of the paper "TMO: Transparent Memory Offloading in
	// Datacenters" (ASPLOS 2022) and nothing else, with refault cost beside
	// pressure: step = current x max_step x (1 - max(pressure/target,
	// cost/target)), at every sample.
	TMO
	// Senpai is oomd's Senpai plugin with immediate_backoff: at every sixth
	// sample 1 % of what is above the floor, if memory pressure of the last
	// 10 s and 60 s is below 0.1 %. (The older senpai.py, which moves
	// memory.high by the square of its error, is a law for limits; this
	// package asks for reclaim only. docs/algorithms.md compares them.)
	Senpai
)

var lawNames = [...]string{"memagent", "tmo", "senpai"}

// String returns the name of the law as it is written in a configuration.
func (l Law) String() string {
	if int(l) < len(lawNames) {
		return lawNames[l]
	}
	return "law(?)"
}

// Policy is what the operator wants for one cgroup. Values are taken as
// validated; those that make no sense lead to no intent, never to a wild one.
type Policy struct {
	Law        Law
	Swappiness Swappiness
	Squeeze    Squeeze
	Headroom   Headroom
	// SwapGuard allows Intent.SwapGuard.
	SwapGuard bool
	// SwapKeepFree is the part of the host's swap, 0..1 of SwapTotal, that is
	// never asked for. 0 keeps nothing free.
	SwapKeepFree float64
}

// SwappinessKind tells how the swappiness of a request is found.
type SwappinessKind uint8

const (
	// Kernel passes nothing: the host-wide vm.swappiness applies.
	Kernel SwappinessKind = iota
	// Fixed passes Value, always. A Value of 0 means "never swap".
	Fixed
	// Auto starts at Base and follows the priced refault costs within
	// [Min, Max].
	Auto
)

// Swappiness is the policy for the balance of anon against file.
type Swappiness struct {
	Kind SwappinessKind
	// Value is used by Fixed, Base, Min and Max by Auto; all 0 to 200, or
	// memcg.SwappinessMax for anon only.
	Value, Base, Min, Max int
}

// span returns the lowest and the highest value the policy allows to be
// passed; ok is false where none may be passed.
func (s Swappiness) span() (lo, hi int, ok bool) {
	switch s.Kind {
	case Fixed:
		return s.Value, s.Value, inSwappiness(s.Value)
	case Auto:
		return s.Min, s.Max, inSwappiness(s.Min) && inSwappiness(s.Max) && s.Min <= s.Max
	}
	return 0, 0, false
}

func inSwappiness(v int) bool { return v >= 0 && v <= memcg.SwappinessMax }

// neverSwaps reports whether the policy forbids every swap-out.
func (s Swappiness) neverSwaps() bool {
	_, hi, ok := s.span()
	return ok && hi == 0
}

// valid reports whether the policy can be carried out at all.
func (s Swappiness) valid() bool {
	_, _, ok := s.span()
	return ok || s.Kind == Kernel
}

// Squeeze is the policy for taking what is not needed without any limit that
// asks for it.
type Squeeze struct {
	On             bool
	MaxStep        float64       // of memory.current at one sample, 0.005 = 0.5 %
	PressureTarget float64       // share of time some task may stall, 0.001 = 0.1 %
	CostTarget     float64       // share of time refaults may cost, 0.001 = 0.1 %
	Floor          uint64        // bytes of memory.current never gone below
	IdleAge        time.Duration // age from which memory counts as cold, where generations have ages
}

// Headroom is the policy for keeping a cgroup below its own limit, so that the
// kernel's limit reclaim and throttle hardly ever run. The larger of the two
// sizes applies.
type Headroom struct {
	On       bool
	Fraction float64 // of min(memory.high, memory.max)
	Bytes    uint64
}
