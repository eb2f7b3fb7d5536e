package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

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
	rate := size(0)
	fs.Var(&rate, "rate", "how much is filled in a second; 0 is as much as can be")
	stick := yardstickFlag(fs)
	var at place
	at.flag(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if bytes == 0 {
		return errors.New("--size must be more than 0")
	}
	if err := at.take(); err != nil {
		return err
	}
	mem, err := allocateAt(int64(bytes), int64(rate))
	if err != nil {
		return err
	}
	if err := r.measureWith(*stick); err != nil {
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
	for from := 0; *passes == 0 || r.n < *passes; from = (from + part) % len(mem) {
		start := time.Now()
		sum += touch(mem[from:min(from+part, len(mem))])
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
func allocate(bytes int64) ([]byte, error) { return allocateAt(bytes, 0) }

// allocateAt is allocate with at most rate bytes a second, unless rate is 0.
func allocateAt(bytes, rate int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", bytes, err)
	}
	// Page counts stay exact without huge pages. A kernel that has none answers EINVAL.
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("madvise: %w", err)
	}
	start := time.Now()
	seed := uint64(start.UnixNano())
	if rate == 0 {
		scramble(mem, seed)
		return mem, nil
	}
	const piece = 256 << 10 // bytes between two looks at the clock
	for at := int64(0); at < bytes; {
		next := min(at+piece, bytes)
		scramble(mem[at:next], seed+uint64(at))
		at = next
		pace(start, time.Duration(float64(at)/float64(rate)*float64(time.Second)))
	}
	return mem, nil
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
