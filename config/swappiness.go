package config

import (
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// SwappinessKind tells who decides on the balance between anon and file.
type SwappinessKind uint8

// Kinds of swappiness.
const (
	// SwappinessKernel passes nothing: vm.swappiness applies. It is what an
	// unset swappiness means, and not the same as 0.
	SwappinessKernel SwappinessKind = iota
	// SwappinessFixed passes Value with every request.
	SwappinessFixed
	// SwappinessAuto lets the law choose between Min and Max, from Base.
	SwappinessAuto
)

// Swappiness is what a policy says of the balance between anon and file. The
// zero Swappiness is the kernel's.
type Swappiness struct {
	Kind SwappinessKind
	// Value is 0 (never swap) to 200, or memcg.SwappinessMax (anon only). Only
	// where Kind is SwappinessFixed.
	Value int
	// 0 <= Min <= Base <= Max <= 200. Only where Kind is SwappinessAuto.
	Base, Min, Max int
}

// The bounds of auto where the file does not say: what the kernel allows,
// around the kernel's own default of vm.swappiness.
const (
	autoBase = 60
	autoMin  = 0
	autoMax  = 200
)

// FixedSwappiness returns the swappiness that is always v: 0..200 or
// memcg.SwappinessMax.
func FixedSwappiness(v int) Swappiness { return Swappiness{Kind: SwappinessFixed, Value: v} }

// AutoSwappiness returns the swappiness that the law chooses within
// 0 <= low <= base <= high <= 200.
func AutoSwappiness(base, low, high int) Swappiness {
	return Swappiness{Kind: SwappinessAuto, Base: base, Min: low, Max: high}
}

// Request returns what to pass with a reclaim request where nothing has to be
// chosen; ok is false for SwappinessAuto, whose value the law chooses.
func (s Swappiness) Request() (r memcg.Swappiness, ok bool) {
	switch s.Kind {
	case SwappinessKernel:
		return memcg.Swappiness{}, true
	case SwappinessFixed:
		return memcg.SwappinessOf(s.Value), true
	}
	return memcg.Swappiness{}, false
}

// NeverSwaps reports whether the policy forbids anon to leave: a fixed 0, or
// an auto that cannot choose anything else.
func (s Swappiness) NeverSwaps() bool {
	return s.Kind == SwappinessFixed && s.Value == 0 || s.Kind == SwappinessAuto && s.Max == 0
}

// String returns the swappiness in a word: a number, "max", "kernel", or
// "auto (60, 0..200)".
func (s Swappiness) String() string {
	if r, ok := s.Request(); ok {
		return r.String()
	}
	return fmt.Sprintf("auto (%d, %d..%d)", s.Base, s.Min, s.Max)
}
