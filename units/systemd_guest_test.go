package units

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

// realFiles are the knobs of this host.
type realFiles struct{}

func (realFiles) file(id memcg.ID, k memcg.Knob) string {
	return filepath.Join("/sys/fs/cgroup", id.Path, string(k))
}

func (f realFiles) ReadKnob(id memcg.ID, k memcg.Knob) (string, error) {
	b, err := os.ReadFile(f.file(id, k))
	return strings.TrimSpace(string(b)), err
}

func (f realFiles) WriteKnob(_ context.Context, id memcg.ID, k memcg.Knob, value string) error {
	return os.WriteFile(f.file(id, k), []byte(value+"\n"), 0)
}

func (f realFiles) EffectiveMems(id memcg.ID) (own, parent memcg.NodeMask, err error) {
	const effective = memcg.Knob("cpuset.mems.effective")
	if own, err = f.nodes(id, effective); err == nil {
		parent, err = f.nodes(memcg.ID{Path: filepath.Dir(id.Path)}, effective)
	}
	return own, parent, err
}

func (f realFiles) nodes(id memcg.ID, k memcg.Knob) (memcg.NodeMask, error) {
	v, err := f.ReadKnob(id, k)
	if err != nil {
		return memcg.NodeMask{}, err
	}
	return memcg.ParseNodeMask(v)
}

// other returns a value that a knob does not hold: 64 MiB more, or the last one of the
// nodes that it may use. It is "" where there is no other node.
func other(t *testing.T, id memcg.ID, k memcg.Knob, now string) (value string) {
	t.Helper()
	if k != memcg.KnobMems {
		n, err := strconv.ParseUint(now, 10, 64)
		if err != nil {
			n = 448 * mib
		}
		return fmt.Sprint(n + 64*mib)
	}
	own, _, err := realFiles{}.EffectiveMems(id)
	if err != nil {
		t.Fatal(err)
	}
	if own.Len() < 2 {
		t.Logf("%s: a host with one node", k)
		return ""
	}
	for node := range own.All {
		value = fmt.Sprint(node)
	}
	return value
}

// A real systemd, where one runs and a unit is named whose limits and nodes may be
// changed: MEMAGENT_TEST_UNIT=/system.slice/x.service, its cgroup. It is made into a
// binary with go test -c, and run as root in a guest.
func TestC42ARealSystemdKeepsWhatIsSetAndForgetsItAfterwards(t *testing.T) {
	const name = "MEMAGENT_TEST_UNIT"
	cgroup := os.Getenv(name)
	if cgroup == "" {
		t.Skipf("no systemd to try it on: set %s to the cgroup of a unit, as root, on a host of its own", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	bus := NewBus("/")
	defer bus.Close()
	reload := func() {
		t.Helper()
		c, err := bus.connected(ctx)
		if err == nil {
			err = c.ReloadContext(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	knobs := New(realFiles{}, bus, Options{On: true})
	id := memcg.ID{Path: cgroup, Inode: 1}
	if unit, err := knobs.UnitOf(ctx, id); err != nil || unit == "" {
		t.Fatalf("%s is unit %q, %v", cgroup, unit, err)
	}
	u, _ := unitOf(cgroup)
	s, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k, err := journal.NewKeeper(s, knobs, journal.Options{Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, knob := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems} {
		before, err := realFiles{}.ReadKnob(id, knob)
		if err != nil {
			t.Fatal(err)
		}
		value := other(t, id, knob, before)
		if value == "" {
			continue
		}
		want := func(when, want string) {
			t.Helper()
			if got, err := (realFiles{}).ReadKnob(id, knob); err != nil || got != want {
				t.Errorf("%s, %s is %q, %v; want %q", when, knob, got, err, want)
			}
		}
		_, had, err := knobs.noted(u, knob)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := k.Set(ctx, id, knob, value, "test"); err != nil || r.Outcome != journal.Written {
			t.Fatalf("set: %v, %v", r.Outcome, err)
		}
		want("set", value)
		reload()
		want("after a reload", value)
		r := k.Restore(ctx, id, knob)
		switch {
		case r.Err == nil && r.How == journal.StoodIn && before == "":
			// Kernels before 7.2 take no empty set back (case c46).
			_, parent, err := realFiles{}.EffectiveMems(id)
			if err != nil {
				t.Fatal(err)
			}
			before = parent.String()
		case r.Err != nil || r.How != journal.Restored:
			t.Errorf("restored: %v, %v", r.How, r.Err)
		}
		want("put back", before)
		if _, has, err := knobs.noted(u, knob); err != nil || has != had {
			t.Errorf("a drop-in is there: %t, %v; before: %t", has, err, had)
		}
		reload()
		want("after another reload", before)
	}
}
