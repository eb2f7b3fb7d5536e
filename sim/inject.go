package sim

import (
	"fmt"

	"github.com/memagent/memagent/memcg"
)

// Op names a call of the seam that a Fault can be set on.
type Op string

// Calls that can fail.
const (
	OpList       Op = "list"
	OpSample     Op = "sample"
	OpHostSample Op = "host sample"
	OpReclaim    Op = "reclaim"
	OpWatch      Op = "watch"
	OpReadKnob   Op = "read knob"
	OpWriteKnob  Op = "write knob"
)

// Fault makes a call of the seam go wrong.
type Fault struct {
	Op   Op
	Path string // of the cgroup; "" is any, and the only one for calls without
	// Nth call of this kind that is met, from 1 and counted from Inject on;
	// 0 means all from now on.
	Nth int

	// Err is what the call returns, best one of the memcg.Err kinds; the
	// message tells which call it was.
	Err error
	// Done is how many bytes a Reclaim asks for, in earnest, before it fails.
	Done uint64
	// Vanish removes the cgroup just before the call looks at it.
	Vanish bool
	// Block keeps a Reclaim or WriteKnob in its write until the channel is
	// closed or gives something. A context does not free it: nor does it a
	// write(2). A knob has its value by then.
	Block <-chan struct{}
}

// String describes the fault.
func (f Fault) String() string {
	nth := "every"
	if f.Nth > 0 {
		nth = fmt.Sprintf("number %d", f.Nth)
	}
	return fmt.Sprintf("%s %s %s: %v", f.Op, f.Path, nth, f.Err)
}

type injected struct {
	Fault
	calls int
	met   bool
}

// fails reports whether the call is to return an error. A nil fault is none.
func (f *injected) fails() bool { return f != nil && f.Err != nil }

func (f *injected) block() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.Block
}

func (f *injected) error(what string) error { return fmt.Errorf("sim: %s: %w", what, f.Err) }

// Inject sets faults. Of several that are met by one call the first one set
// counts. A fault on an unknown call, or on one that takes no path, is misuse.
func (h *Host) Inject(faults ...Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range faults {
		switch f.Op {
		case OpSample, OpReclaim, OpReadKnob, OpWriteKnob:
		case OpList, OpHostSample, OpWatch:
			if f.Path != "" || f.Vanish {
				h.misuse("inject %v: a %s is of no cgroup", f, f.Op)
				continue
			}
		default:
			h.misuse("inject %v: there is no such call", f)
			continue
		}
		h.faults = append(h.faults, &injected{Fault: f})
	}
}

// Unmet returns the faults that no call has met yet: a test that set them in
// vain shows nothing.
func (h *Host) Unmet() []Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	var unmet []Fault
	for _, f := range h.faults {
		if !f.met {
			unmet = append(unmet, f.Fault)
		}
	}
	return unmet
}

// fault returns what is set on this call, nil for nothing.
func (h *Host) fault(op Op, path string) *injected {
	var hit *injected
	for _, f := range h.faults {
		if f.Op != op || f.Path != "" && f.Path != path {
			continue
		}
		f.calls++
		if hit == nil && (f.Nth == 0 || f.Nth == f.calls) {
			f.met = true
			hit = f
		}
	}
	if hit != nil && hit.Vanish {
		if c := h.byPath[path]; c != nil {
			h.remove(c)
		}
	}
	return hit
}

// Hide leaves keys out of a cgroup's memory.stat from now on, as a kernel
// without their feature does.
func (h *Host) Hide(path string, keys ...memcg.Stat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known("hide keys of", path)
	if c == nil {
		return
	}
	if c.hidden == nil {
		c.hidden = map[memcg.Stat]bool{}
	}
	for _, k := range keys {
		c.hidden[k] = true
	}
}

// ResetCounters makes every counter of a cgroup's memory.stat start again at
// zero, as it would for a cgroup that was removed and made again.
func (h *Host) ResetCounters(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known("reset counters of", path)
	if c == nil {
		return
	}
	c.offset = [memcg.NumStats]uint64{}
	for k := range memcg.NumStats {
		if isCounter(k) {
			c.offset[k] = h.stat(c, k)
		}
	}
}

// Rewind makes one counter jump back by n, or to zero.
func (h *Host) Rewind(path string, key memcg.Stat, n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known("rewind a counter of", path)
	if c == nil {
		return
	}
	if !isCounter(key) {
		h.misuse("rewind %v of %s: it is a size, not a counter", key, path)
		return
	}
	c.offset[key] += min(n, h.stat(c, key)-c.offset[key])
}

// isCounter tells counters from sizes: they stand behind the sizes.
func isCounter(k memcg.Stat) bool { return k >= memcg.StatRefault }
