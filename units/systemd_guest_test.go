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

func (realFiles) EffectiveMems(memcg.ID) (own, parent memcg.NodeMask, err error) {
	return own, parent, memcg.ErrUnsupported
}

// A real systemd, where one runs and a unit is named whose memory.high may be
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
	for _, knob := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax} {
		before, err := realFiles{}.ReadKnob(id, knob)
		if err != nil {
			t.Fatal(err)
		}
		value := fmt.Sprint(512 * mib)
		if n, err := strconv.ParseUint(before, 10, 64); err == nil {
			value = fmt.Sprint(n + 64*mib)
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
		if r := k.Restore(ctx, id, knob); r.Err != nil || r.How != journal.Restored {
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
