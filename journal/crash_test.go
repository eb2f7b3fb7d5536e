package journal

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

// crash is the panic by which a test ends an agent at a step.
type crash struct{ at Step }

// crashes runs do and reports whether it ended at the nth passing of a step.
func (b *bench) crashes(at Step, nth int, do func()) (ended bool) {
	b.at = func(s Step) {
		if s != at {
			return
		}
		if nth--; nth == 0 {
			panic(crash{s})
		}
	}
	defer func() {
		b.at = nil
		if r := recover(); r != nil {
			if _, ours := r.(crash); !ours {
				panic(r)
			}
			ended = true
		}
	}()
	do()
	return false
}

// A day of an agent: every step is passed at least once.
func day(ctx context.Context, k *Keeper, id memcg.ID) {
	_, _ = k.Set(ctx, id, memcg.KnobHigh, "1000000", "lend")
	_, _ = k.Set(ctx, id, memcg.KnobHigh, "2000000", "lend more")
	_, _ = k.Set(ctx, id, memcg.KnobMems, "0-1", "keep near")
	_, _ = k.Set(ctx, id, memcg.KnobSwapMax, "4096", "guard")
	k.Restore(ctx, id, memcg.KnobSwapMax)
	_, _ = k.Set(ctx, id, memcg.KnobHigh, "3000000", "lend more")
	k.RestoreAll(ctx, time.Minute)
}

func TestC45ACrashAtAnyStepLeavesNothingBehind(t *testing.T) {
	ctx := context.Background()
	for _, step := range Steps() {
		met := 0
		for nth := 1; ; nth++ {
			b := newBench(t)
			id := b.host.make("/pg")
			b.host.set("/pg", memcg.KnobHigh, "536870912")
			b.host.set("/pg", memcg.KnobMems, "0-2")
			k := b.start()
			if !b.crashes(step, nth, func() { day(ctx, k, id) }) {
				k.store.Close()
				break
			}
			met++
			k = b.restart(k)
			if r := k.Recover(ctx); r.Err != nil || r.Damage != nil || len(r.Failed()) != 0 {
				t.Errorf("%s, passed %d times: %+v", step, nth, r)
			}
			b.wantKnob("/pg", memcg.KnobHigh, "536870912")
			b.wantKnob("/pg", memcg.KnobSwapMax, "max")
			b.wantKnob("/pg", memcg.KnobMems, "0-2")
			if left := k.Entries(); len(left) != 0 {
				t.Errorf("%s, passed %d times: the journal still has %v", step, nth, left)
			}
			k.store.Close()
		}
		if met == 0 {
			t.Errorf("step %s was never passed", step)
		}
	}
}

func TestACrashWhileRecoveringIsRecoveredFrom(t *testing.T) {
	ctx := context.Background()
	for _, step := range Steps()[6:] {
		b := newBench(t)
		id := b.host.make("/pg")
		k := b.start()
		b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
		b.mustSet(k, id, memcg.KnobSwapMax, "0", Written)
		k = b.restart(k)
		if !b.crashes(step, 1, func() { k.Recover(ctx) }) {
			t.Errorf("Recover did not pass %s", step)
		}
		k = b.restart(k)
		k.Recover(ctx)
		b.wantKnob("/pg", memcg.KnobHigh, "max")
		b.wantKnob("/pg", memcg.KnobSwapMax, "max")
		k.store.Close()
	}
}

// TestRandomCrashes lets agents live and die at random over three cgroups whose
// operator meddles, and whose paths change hands. After each death the next
// agent must leave every knob at what the operator last set.
func TestRandomCrashes(t *testing.T) {
	knobs := []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems}
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		b := newBench(t)
		want := map[string]map[memcg.Knob]string{}
		ids := map[string]memcg.ID{}
		renew := func(path string) {
			ids[path] = b.host.make(path)
			want[path] = map[memcg.Knob]string{memcg.KnobHigh: "max", memcg.KnobSwapMax: "max", memcg.KnobMems: ""}
		}
		paths := []string{"/a", "/b", "/a/c"}
		for _, p := range paths {
			renew(p)
		}
		value := func(knob memcg.Knob, ours bool) string {
			if knob == memcg.KnobMems {
				return rapid.SampledFrom([]string{"0", "1", "0-1", "0-2"}).Draw(rt, "mems")
			}
			// Two ranges, so that nobody writes what the other wrote.
			n := rapid.IntRange(1, 1000).Draw(rt, "pages") * page * 2
			if ours {
				n += page + rapid.IntRange(0, page-1).Draw(rt, "odd")
			}
			return strconv.Itoa(n)
		}
		for range rapid.IntRange(2, 3).Draw(rt, "agents") {
			k := b.start()
			k.Recover(ctx)
			step := rapid.SampledFrom(Steps()).Draw(rt, "step")
			nth := rapid.IntRange(1, 8).Draw(rt, "nth")
			b.crashes(step, nth, func() {
				for range rapid.IntRange(1, 12).Draw(rt, "deeds") {
					path := rapid.SampledFrom(paths).Draw(rt, "path")
					knob := rapid.SampledFrom(knobs).Draw(rt, "knob")
					switch rapid.IntRange(0, 9).Draw(rt, "deed") {
					case 0:
						if knob == memcg.KnobMems {
							break // any list is one that the agent may have written
						}
						v := value(knob, false)
						b.host.set(path, knob, v)
						want[path][knob] = v
					case 1:
						renew(path)
					case 2:
						k.Restore(ctx, ids[path], knob)
					case 3:
						b.now = b.now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(rt, "seconds")) * time.Second)
					default:
						_, _ = k.Set(ctx, ids[path], knob, value(knob, true), "random")
					}
				}
				if rapid.Bool().Draw(rt, "stops in order") {
					k.RestoreAll(ctx, time.Minute)
				}
			})
			k = b.restart(k)
			r := k.Recover(ctx)
			if r.Err != nil || r.Damage != nil || len(r.Failed()) != 0 {
				rt.Fatalf("Recover: %+v", r)
			}
			for path, knobs := range want {
				for knob, v := range knobs {
					if got := b.host.get(path, knob); got != v {
						rt.Fatalf("after a crash at the %d. %s, %s of %s is %q, its operator set %q; %s", nth, step, knob, path, got, v, told(r))
					}
				}
			}
			k.store.Close()
		}
	})
}

func told(r Report) (s string) {
	for _, u := range r.Undone {
		s += fmt.Sprintf("%v %v; ", u.Key, u.How)
	}
	return s
}

func TestAPathThatComesBackNeverGetsTheOldValue(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name string
		undo func(b *bench, k *Keeper, id memcg.ID) (*Keeper, How)
	}{
		{"by a restore", func(_ *bench, k *Keeper, id memcg.ID) (*Keeper, How) {
			return k, k.Restore(ctx, id, memcg.KnobHigh).How
		}},
		{"at the end", func(_ *bench, k *Keeper, _ memcg.ID) (*Keeper, How) {
			return k, k.RestoreAll(ctx, time.Minute).Undone[0].How
		}},
		{"after a crash", func(b *bench, k *Keeper, _ memcg.ID) (*Keeper, How) {
			k = b.restart(k)
			return k, k.Recover(ctx).Undone[0].How
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			id := b.host.make("/pg")
			b.host.set("/pg", memcg.KnobHigh, "8388608")
			k := b.start()
			b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
			b.host.make("/pg")
			// The worst case: the new one has just the value that was written.
			b.host.set("/pg", memcg.KnobHigh, "1048576")
			k, how := tt.undo(b, k, id)
			if how != CgroupGone || len(k.Entries()) != 0 {
				t.Errorf("it was %v; left %v", how, k.Entries())
			}
			b.wantKnob("/pg", memcg.KnobHigh, "1048576")
			k.store.Close()
		})
	}
}

func TestAfterARebootEntriesAreDroppedAndSaid(t *testing.T) {
	b := newBench(t)
	id := b.host.make("/pg")
	k := b.start()
	b.mustSet(k, id, memcg.KnobHigh, "1048576", Written)
	b.boot = "boot-2"
	k = b.restart(k)
	defer k.store.Close()
	r := k.Recover(context.Background())
	if len(r.Undone) != 1 || r.Undone[0].How != Rebooted || len(k.Entries()) != 0 {
		t.Errorf("Recover: %+v; left %v", r, k.Entries())
	}
	b.wantKnob("/pg", memcg.KnobHigh, "1048576") // the same inode and value, and yet another cgroup
}
