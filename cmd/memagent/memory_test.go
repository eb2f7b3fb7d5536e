package main

import (
	"slices"
	"testing"

	"github.com/memagent/memagent/telemetry"
)

func TestTheLimitOfItsOwnMemoryFollowsTheNumberOfCgroups(t *testing.T) {
	var set []int64
	limit := func(n int64) int64 {
		set = append(set, n)
		return 0
	}
	o := newOwnMemory(limit)
	for _, watched := range []int{0, 10, 4000, 10_000, 10_000, 300} {
		o.Ticked(&telemetry.Tick{Watched: watched})
	}
	if want := []int64{64 << 20, 24<<20 + 10_000*8<<10, 64 << 20}; !slices.Equal(set, want) {
		t.Errorf("set %d, want %d", set, want)
	}
}

func TestWhoeverSetsGOMEMLIMITHasTheLastWord(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "1GiB")
	if o := newOwnMemory(func(int64) int64 { t.Error("set"); return 0 }); o != nil {
		t.Error("it would set another limit")
	}
}
