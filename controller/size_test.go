package controller

import (
	"testing"
	"unsafe"
)

// cgroupBudget is what the core may keep of each cgroup, in bytes: with the word that Go adds it fits
// the allocator's class of 2304, and the next one is 2688. What only some policies use belongs behind a
// pointer, as placing and steering are.
const cgroupBudget = 2304 - 8

func TestWhatIsKeptOfACgroupFitsItsClassOfTheAllocator(t *testing.T) {
	if n := unsafe.Sizeof(cgroup{}); n > cgroupBudget {
		t.Errorf("%d bytes, want at most %d", n, cgroupBudget)
	}
}
