package workload

import (
	"flag"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// place says which node a workload's memory comes from, its anon as well as the cache of what it
// reads: the kernel allocates both by the policy of the thread that touches first.
type place struct{ node int }

func (p *place) flag(fs *flag.FlagSet) {
	fs.IntVar(&p.node, "node", -1, "NUMA node the memory must come from; -1 leaves it to the kernel")
}

// take binds the calling goroutine to the place. A policy belongs to a thread, so the goroutine
// keeps its thread from then on, and no other one's memory is bound.
func (p place) take() error {
	if p.node < 0 {
		return nil
	}
	runtime.LockOSThread()
	const mpolBind, bits = 2, 64 // include/uapi/linux/mempolicy.h
	mask := make([]uint64, p.node/bits+1)
	mask[p.node/bits] = 1 << (p.node % bits)
	// The kernel reads one bit less than it is told.
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, mpolBind, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*bits+1))
	if errno != 0 {
		return fmt.Errorf("set_mempolicy to node %d: %w", p.node, errno)
	}
	return nil
}
