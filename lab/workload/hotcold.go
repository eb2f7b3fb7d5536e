package workload

import (
	"errors"
	"time"
)

// runHotCold is the test program of the workingset series for anon ("workingset
// protection/detection on the anonymous LRU list", 2020): cold memory, then a hot set that is used
// and abandoned, then a second hot set that is used in turn with a window of the cold memory. Who
// keeps the abandoned set for what it once was thrashes.
func runHotCold(args []string, r *reporter) error {
	fs := flags("hotcold")
	cold, window, hot := size(512<<20), size(128<<20), size(96<<20)
	fs.Var(&cold, "cold", "cold memory")
	fs.Var(&window, "window", "part of the cold memory that a pass touches, moving on by itself each time")
	fs.Var(&hot, "hot", "each of the two hot sets")
	loops := fs.Int("loops", 15, "number of passes")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if cold == 0 || hot == 0 || window == 0 || window > cold {
		return errors.New("--cold, --window and --hot must be more than 0, and the window no more than the cold memory")
	}
	old, err := allocate(int64(cold))
	if err != nil {
		return err
	}
	first, err := allocate(int64(hot))
	if err != nil {
		return err
	}
	const activations = 2 // the second access is what makes a page active
	var sum uint64
	for range activations {
		sum += touch(first)
	}
	second, err := allocate(int64(hot))
	if err != nil {
		return err
	}
	r.ready(int64(cold + 2*hot))
	at := 0
	for range *loops {
		start := time.Now()
		end := min(at+int(window), len(old))
		sum += touch(old[at:end])
		sum += touch(second)
		at = end % len(old)
		r.pass(time.Since(start), int64(window+hot))
		if r.err != nil {
			return r.err
		}
	}
	keep(sum)
	select {} // the memory is looked at from outside until SIGTERM
}
