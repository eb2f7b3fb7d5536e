package hosttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// Knobs is what the journal asks of a host, method for method; a test beside
// the simulated host holds the two together.
type Knobs interface {
	ReadKnob(id memcg.ID, k memcg.Knob) (string, error)
	WriteKnob(ctx context.Context, id memcg.ID, k memcg.Knob, value string) error
	EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error)
}

// KnobBench is a Bench whose hosts have knobs.
type KnobBench struct {
	Bench
	Knobs    Knobs // of Bench.Host
	Observer Knobs // of Bench.Observer
}

// RunKnobs tests what a host does with the files that keep their value. mk is
// called once for every test.
func RunKnobs(t *testing.T, mk func(*testing.T) KnobBench) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, KnobBench)
	}{
		{"a limit reads as it was written, in whole pages", limitsRoundTrip},
		{"what is no value is not written", badValuesRefused},
		{"a limit below what is used holds, and going back to max does", highBelowUsage},
		{"nodes within the parent's are granted", memsGranted},
		{"nodes that there are not are refused", memsRefused},
		{"an emptied list of nodes inherits, or is refused and changes nothing", memsEmptied},
		{"knobs of a gone cgroup say so, and its successor's stay", knobsGone},
		{"the root has no knobs", rootRefused},
		{"an observer reads knobs and writes none", observerWritesNoKnob},
		{"what is over is not written", knobCut},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, mk(t)) })
	}
}

// fresh makes a cgroup for one test.
func (b *KnobBench) fresh(t *testing.T) memcg.ID {
	t.Helper()
	b.Make(t, b.Fresh)
	t.Cleanup(func() { b.Remove(t, b.Fresh) })
	return b.find(t, b.Fresh)
}

// read returns a knob, and skips where this host does not have it.
func (b *KnobBench) read(t *testing.T, id memcg.ID, k memcg.Knob) string {
	t.Helper()
	v, err := b.Knobs.ReadKnob(id, k)
	if errors.Is(err, memcg.ErrUnsupported) {
		t.Skipf("%v: boot a host whose cgroups have it", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (b *KnobBench) write(t *testing.T, id memcg.ID, k memcg.Knob, value string) {
	t.Helper()
	before := b.Host.Writes()
	if err := b.Knobs.WriteKnob(t.Context(), id, k, value); err != nil {
		t.Fatal(err)
	}
	if n := b.Host.Writes() - before; n != 1 {
		t.Errorf("the host counts %d writes for one", n)
	}
}

func limitsRoundTrip(t *testing.T, b KnobBench) {
	id := b.fresh(t)
	var host memcg.HostSample
	if err := b.Host.HostSample(&host); err != nil {
		t.Fatal(err)
	}
	page := host.PageSize
	for _, k := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax} {
		if v := b.read(t, id, k); v != "max" {
			t.Errorf("%s of a new cgroup is %q", k, v)
		}
		for _, tt := range []struct{ write, want string }{
			{fmt.Sprint(64 * page), fmt.Sprint(64 * page)},
			{fmt.Sprint(65*page - 1), fmt.Sprint(64 * page)},
			{"0", "0"},
			{"9223372036854775807", "max"},
			{fmt.Sprint(page), fmt.Sprint(page)},
			{"max", "max"},
		} {
			b.write(t, id, k, tt.write)
			if v := b.read(t, id, k); v != tt.want {
				t.Errorf("%s after %s is %q, want %q", k, tt.write, v, tt.want)
			}
		}
	}
	var s memcg.Sample
	b.write(t, id, memcg.KnobHigh, fmt.Sprint(64*page))
	if err := b.Host.Sample(id, &s); err != nil || s.High != memcg.LimitOf(64*page) {
		t.Errorf("a sample says %v, %v", s.High, err)
	}
}

func badValuesRefused(t *testing.T, b KnobBench) {
	id := b.fresh(t)
	before := b.Host.Writes()
	for _, tt := range []struct {
		knob  memcg.Knob
		value string
	}{
		{memcg.KnobHigh, ""}, {memcg.KnobHigh, "\n"}, {memcg.KnobHigh, "-1"}, {memcg.KnobHigh, "1G"}, {memcg.KnobHigh, "max\n"},
		{memcg.KnobSwapMax, "0x1000"}, {memcg.KnobMems, "all"}, {memcg.KnobMems, "0\n"}, {"memory.max", "max"},
	} {
		wantKind(t, fmt.Sprintf("%s %q", tt.knob, tt.value), b.Knobs.WriteKnob(t.Context(), id, tt.knob, tt.value), memcg.ErrInvalid)
	}
	if n := b.Host.Writes() - before; n != 0 {
		t.Errorf("%d writes", n)
	}
	_, err := b.Knobs.ReadKnob(id, "memory.max")
	wantKind(t, "reading memory.max", err, memcg.ErrInvalid)
}

func highBelowUsage(t *testing.T, b KnobBench) {
	id := b.find(t, b.Busy)
	was := b.read(t, id, memcg.KnobHigh)
	defer b.write(t, id, memcg.KnobHigh, was)
	current := value(t, "memory.current", b.sample(t, id).Current)
	want := (current - 1<<20) >> 16 << 16
	b.write(t, id, memcg.KnobHigh, fmt.Sprint(want))
	if v := b.read(t, id, memcg.KnobHigh); v != fmt.Sprint(want) {
		t.Errorf("memory.high is %q, want %d", v, want)
	}
}

func memsGranted(t *testing.T, b KnobBench) {
	id := b.fresh(t)
	b.read(t, id, memcg.KnobMems)
	_, parent, err := b.Knobs.EffectiveMems(id)
	if err != nil || parent.Empty() {
		t.Fatalf("the parent's nodes are %v, %v", parent, err)
	}
	for one := range parent.All {
		b.write(t, id, memcg.KnobMems, memcg.NodesOf(one).String())
		own, _, err := b.Knobs.EffectiveMems(id)
		if err != nil || own != memcg.NodesOf(one) {
			t.Errorf("asked for node %d, got %v, %v", one, own, err)
		}
		if v := b.read(t, id, memcg.KnobMems); v != memcg.NodesOf(one).String() {
			t.Errorf("cpuset.mems is %q", v)
		}
	}
	b.write(t, id, memcg.KnobMems, "") // nobody is in it
	if own, _, err := b.Knobs.EffectiveMems(id); err != nil || own != parent {
		t.Errorf("emptied, it has %v, %v; want %v", own, err, parent)
	}
}

func memsRefused(t *testing.T, b KnobBench) {
	id := b.fresh(t)
	was := b.read(t, id, memcg.KnobMems)
	wantKind(t, "node 1023", b.Knobs.WriteKnob(t.Context(), id, memcg.KnobMems, "1023"), memcg.ErrInvalid)
	if v := b.read(t, id, memcg.KnobMems); v != was {
		t.Errorf("cpuset.mems went from %q to %q", was, v)
	}
}

func memsEmptied(t *testing.T, b KnobBench) {
	id := b.find(t, b.Busy)
	was := b.read(t, id, memcg.KnobMems)
	_, parent, err := b.Knobs.EffectiveMems(id)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, id, memcg.KnobMems, parent.String())
	err = b.Knobs.WriteKnob(t.Context(), id, memcg.KnobMems, "")
	now := b.read(t, id, memcg.KnobMems)
	switch {
	case err == nil && now != "":
		t.Errorf("emptied, cpuset.mems is %q", now)
	case err != nil:
		wantKind(t, "emptying cpuset.mems of a cgroup with a process", err, memcg.ErrInvalid)
		if now != parent.String() {
			t.Errorf("refused, cpuset.mems went from %v to %q", parent, now)
		}
	case was != "":
		b.write(t, id, memcg.KnobMems, was)
	}
}

func knobsGone(t *testing.T, b KnobBench) {
	b.Make(t, b.Fresh)
	old := b.find(t, b.Fresh)
	b.write(t, old, memcg.KnobHigh, "1048576")
	b.Remove(t, b.Fresh)
	check := func(when string) {
		t.Helper()
		_, err := b.Knobs.ReadKnob(old, memcg.KnobHigh)
		wantKind(t, "ReadKnob "+when, err, memcg.ErrGone)
		wantKind(t, "WriteKnob "+when, b.Knobs.WriteKnob(t.Context(), old, memcg.KnobHigh, "1048576"), memcg.ErrGone)
		_, _, err = b.Knobs.EffectiveMems(old)
		wantKind(t, "EffectiveMems "+when, err, memcg.ErrGone)
	}
	check("of a removed cgroup")
	id := b.fresh(t)
	check("of the cgroup that was there before")
	if v := b.read(t, id, memcg.KnobHigh); v != "max" {
		t.Errorf("memory.high of the new one is %q", v)
	}
}

func rootRefused(t *testing.T, b KnobBench) {
	root := memcg.ID{Path: "/", Inode: 1}
	for _, k := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax} {
		wantKind(t, "writing "+string(k)+" of the root", b.Knobs.WriteKnob(t.Context(), root, k, "max"), memcg.ErrDenied)
		_, err := b.Knobs.ReadKnob(root, k)
		wantKind(t, "reading "+string(k)+" of the root", err, memcg.ErrUnsupported)
	}
}

func observerWritesNoKnob(t *testing.T, b KnobBench) {
	if b.Observer == nil {
		t.Skip("no host to observe with: set KnobBench.Observer to the same host opened for observing")
	}
	id := b.find(t, b.Busy)
	was := b.read(t, id, memcg.KnobHigh)
	if v, err := b.Observer.ReadKnob(id, memcg.KnobHigh); err != nil || v != was {
		t.Errorf("it reads %q, %v", v, err)
	}
	wantKind(t, "WriteKnob by an observer", b.Observer.WriteKnob(t.Context(), id, memcg.KnobHigh, "max"), memcg.ErrReadOnly)
}

func knobCut(t *testing.T, b KnobBench) {
	id := b.fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, "a write after ctx had ended", b.Knobs.WriteKnob(ctx, id, memcg.KnobHigh, "1048576"), memcg.ErrPartial)
	if v := b.read(t, id, memcg.KnobHigh); v != "max" {
		t.Errorf("memory.high is %q", v)
	}
}
