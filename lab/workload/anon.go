package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// word is the stride of a touch in bytes. A pass reads everything, as a program that uses its
// memory does. Reading only a little of each page gives passes of a few milliseconds, in which a
// refill of QEMU's emulated TLB after a flush may weigh as much as the reads; how much has not
// been measured.
const word = 8

// runAnon allocates memory, fills it with bytes that do not compress, and then leaves it alone or
// reads it again and again.
func runAnon(args []string, r *reporter) error {
	fs := flags("anon")
	bytes, window := size(64<<20), size(0)
	fs.Var(&bytes, "size", "memory to allocate")
	fs.Var(&window, "window", "part of the memory a pass touches, moving on by itself each time; 0 is all of it")
	every := fs.Duration("every", 0, "time from one pass to the next; 0 leaves the memory alone")
	passes := fs.Int("passes", 0, "number of passes, after which the memory is left alone; 0 goes on until SIGTERM")
	node := fs.Int("node", -1, "NUMA node the memory must come from; -1 leaves it to the kernel")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if bytes == 0 {
		return errors.New("--size must be more than 0")
	}
	if *node >= 0 {
		// A policy belongs to a thread: the one that touches first must be the one that has it.
		runtime.LockOSThread()
		if err := bind(*node); err != nil {
			return err
		}
	}
	mem, err := allocate(int64(bytes))
	if err != nil {
		return err
	}
	r.ready(int64(bytes))
	if *every <= 0 {
		select {} // SIGTERM ends it
	}
	part := int(window)
	if part == 0 || part > len(mem) {
		part = len(mem)
	}
	var sum uint64
	for at := 0; *passes == 0 || r.n < *passes; at = (at + part) % len(mem) {
		start := time.Now()
		sum += touch(mem[at:min(at+part, len(mem))])
		r.pass(time.Since(start), int64(part))
		if r.err != nil {
			return r.err
		}
		keep(sum)
		pace(start, *every)
	}
	select {} // SIGTERM ends it
}

// allocate maps memory and fills it with bytes that do not compress.
func allocate(bytes int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", bytes, err)
	}
	// Page counts stay exact without huge pages. A kernel that has none answers EINVAL.
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("madvise: %w", err)
	}
	scramble(mem, uint64(time.Now().UnixNano()))
	return mem, nil
}

// bind makes the calling thread's memory come from one node.
func bind(node int) error {
	const mpolBind, bits = 2, 64 // include/uapi/linux/mempolicy.h
	mask := make([]uint64, node/bits+1)
	mask[node/bits] = 1 << (node % bits)
	// The kernel reads one bit less than it is told.
	_, _, errno := unix.Syscall(unix.SYS_SET_MEMPOLICY, mpolBind, uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*bits+1))
	if errno != 0 {
		return fmt.Errorf("set_mempolicy to node %d: %w", node, errno)
	}
	return nil
}

// scramble fills mem with a xorshift sequence, which no compressor makes smaller.
func scramble(mem []byte, x uint64) {
	x |= 1 // zero is the one state that never changes
	for i := 0; i+word <= len(mem); i += word {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(mem[i:], x)
	}
}

// touch reads every word.
func touch(mem []byte) uint64 {
	var sum uint64
	for ; len(mem) >= word; mem = mem[word:] {
		sum += binary.LittleEndian.Uint64(mem)
	}
	return sum
}

// keep makes the compiler believe that a value is needed.
//
//go:noinline
func keep(uint64) {}
