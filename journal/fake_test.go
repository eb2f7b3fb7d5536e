package journal

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

const page = 4096

// fakeHost is a host of knobs alone, in memory: limits are rounded down to
// pages, lists of nodes bound by the parent's. It outlives any Keeper.
type fakeHost struct {
	mu      sync.Mutex
	cgroups map[string]*fakeCgroup
	inodes  uint64
	parent  memcg.NodeMask // cpuset.mems.effective of every parent
	writes  []string       // "path knob value"

	// fail answers a call before it does anything: op is "read" or "write".
	fail func(op string, key Key, value string) error
	// block keeps a write from coming back, after the value is set.
	block func(key Key) <-chan struct{}
	// noEmpty refuses to empty a cpuset.mems (case c46).
	noEmpty bool
}

type fakeCgroup struct {
	id    memcg.ID
	knobs map[memcg.Knob]string
}

func newFakeHost() *fakeHost {
	return &fakeHost{cgroups: map[string]*fakeCgroup{}, inodes: 100, parent: memcg.NodesOf(0, 1, 2, 3)}
}

// make makes a cgroup, in the place of another where there is one.
func (h *fakeHost) make(path string) memcg.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inodes++
	c := &fakeCgroup{memcg.ID{Path: path, Inode: h.inodes}, map[memcg.Knob]string{
		memcg.KnobHigh: "max", memcg.KnobSwapMax: "max", memcg.KnobMems: "",
	}}
	h.cgroups[path] = c
	return c.id
}

func (h *fakeHost) remove(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cgroups, path)
}

// get returns a knob of whatever cgroup is at a path.
func (h *fakeHost) get(path string, k memcg.Knob) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cgroups[path].knobs[k]
}

// set writes a knob as its operator does.
func (h *fakeHost) set(path string, k memcg.Knob, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cgroups[path].knobs[k] = value
}

func (h *fakeHost) find(op string, key Key, value string) (*fakeCgroup, error) {
	if h.fail != nil {
		if err := h.fail(op, key, value); err != nil {
			return nil, err
		}
	}
	c := h.cgroups[key.ID.Path]
	if c == nil || c.id != key.ID {
		return nil, fmt.Errorf("%s %v: %w: %w", op, key, memcg.ErrGone, syscall.ENOENT)
	}
	if _, ok := c.knobs[key.Knob]; !ok {
		return nil, fmt.Errorf("%s %v: %w: %w", op, key, memcg.ErrUnsupported, syscall.ENOENT)
	}
	return c, nil
}

func (h *fakeHost) ReadKnob(id memcg.ID, k memcg.Knob) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := h.find("read", Key{id, k}, "")
	if err != nil {
		return "", err
	}
	return c.knobs[k], nil
}

func (h *fakeHost) WriteKnob(_ context.Context, id memcg.ID, k memcg.Knob, value string) error {
	key := Key{id, k}
	if err := h.writeKnob(key, value); err != nil {
		return err
	}
	if h.block != nil {
		if wait := h.block(key); wait != nil {
			<-wait
		}
	}
	return nil
}

func (h *fakeHost) writeKnob(key Key, value string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, key.String()+" "+value)
	c, err := h.find("write", key, value)
	if err != nil {
		return err
	}
	if !Valid(key.Knob, value) {
		return fmt.Errorf("write %v %q: %w: %w", key, value, memcg.ErrInvalid, syscall.EINVAL)
	}
	if h.noEmpty && key.Knob == memcg.KnobMems && value == "" && c.knobs[key.Knob] != "" {
		return fmt.Errorf("write %v: %w: %w", key, memcg.ErrInvalid, syscall.ENOSPC)
	}
	if n, err := strconv.ParseUint(value, 10, 64); err == nil && key.Knob != memcg.KnobMems {
		value = memcg.LimitOf(n / page * page).String()
	}
	c.knobs[key.Knob] = value
	return nil
}

func (h *fakeHost) EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := h.find("read", Key{id, memcg.KnobMems}, "")
	if err != nil {
		return own, parent, err
	}
	asked, err := memcg.ParseNodeMask(c.knobs[memcg.KnobMems])
	if own = asked.And(h.parent); own.Empty() {
		own = h.parent
	}
	return own, h.parent, err
}

// bench is a host, a state directory and a clock, over which agents come and
// go.
type bench struct {
	t    testing.TB
	host *fakeHost
	dir  string
	boot string
	now  time.Time
	at   func(Step)
	// managed stands before host, where there is a service manager.
	managed Knobs
}

func newBench(t testing.TB) *bench {
	return &bench{t: t, host: newFakeHost(), dir: t.TempDir(), boot: "boot-1", now: time.Unix(1_700_000_000, 0)}
}

// start is a new agent. It must be stopped.
func (b *bench) start() *Keeper {
	b.t.Helper()
	s, err := Open(b.dir, OnStep(func(at Step) {
		if b.at != nil {
			b.at(at)
		}
	}))
	if err != nil {
		b.t.Fatal(err)
	}
	var host Knobs = b.host
	if b.managed != nil {
		host = b.managed
	}
	k, err := NewKeeper(s, host, Options{Boot: b.boot, PageSize: page, Now: func() time.Time { return b.now }})
	if err != nil {
		b.t.Fatal(err)
	}
	k.atOnce = 1 // a crash is a panic, which must come through to the test
	return k
}

// restart is what kill -9 and a start make of a Keeper.
func (b *bench) restart(k *Keeper) *Keeper {
	b.t.Helper()
	k.store.Close()
	return b.start()
}

func (b *bench) mustSet(k *Keeper, id memcg.ID, knob memcg.Knob, value string, want Outcome) Result {
	b.t.Helper()
	r, err := k.Set(context.Background(), id, knob, value, "test")
	if err != nil || r.Outcome != want {
		b.t.Fatalf("Set(%s, %s) = %v, %v; want %v", knob, value, r.Outcome, err, want)
	}
	return r
}

func (b *bench) wantKnob(path string, knob memcg.Knob, want string) {
	b.t.Helper()
	if got := b.host.get(path, knob); got != want {
		b.t.Errorf("%s of %s is %q, want %q", knob, path, got, want)
	}
}
