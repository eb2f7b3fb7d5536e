package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

const (
	mib  = 1 << 20
	own  = "41943040"  // the operator's memory.high
	ours = "104857600" // with a loan
)

func (h *fakeHost) wantFile(id memcg.ID, k memcg.Knob, want string) {
	h.t.Helper()
	if got := h.files[id.Path+" "+string(k)]; got != want {
		h.t.Errorf("%s of %s is %q, want %q", k, id.Path, got, want)
	}
}

func (h *fakeHost) wantLeft(want ...string) {
	h.t.Helper()
	if got := h.left(); !slices.Equal(got, want) {
		h.t.Errorf("below /run/systemd is %q, want %q", got, want)
	}
}

func mustSet(t *testing.T, k *journal.Keeper, id memcg.ID, knob memcg.Knob, value string) {
	t.Helper()
	if r, err := k.Set(context.Background(), id, knob, value, "test"); err != nil || r.Outcome != journal.Written {
		t.Fatalf("Set(%s, %s) = %v, %v; want written", id.Path, value, r.Outcome, err)
	}
}

func TestC42ADaemonReloadKeepsWhatIsSetAndTakesNothingBackAfterwards(t *testing.T) {
	h := newFakeHost(t)
	id := h.unit("/system.slice/web.service", own)
	k, end := h.keeper(t.TempDir(), true)
	defer end()
	mustSet(t, k, id, memcg.KnobHigh, ours)
	h.reload()
	h.wantFile(id, memcg.KnobHigh, ours)
	h.wantLeft("web.service.d/50-MemoryHigh.conf")
	k.RestoreAll(context.Background(), time.Minute)
	h.wantFile(id, memcg.KnobHigh, own)
	h.wantLeft()
	h.reload()
	h.wantFile(id, memcg.KnobHigh, own)
	if len(k.Entries()) > 0 {
		t.Errorf("the journal still has %v", k.Entries())
	}
}

func TestEveryKnobHasItsProperty(t *testing.T) {
	for knob, value := range map[memcg.Knob]string{memcg.KnobHigh: ours, memcg.KnobSwapMax: "8192", memcg.KnobMems: "0-1"} {
		h := newFakeHost(t)
		id := h.unit("/system.slice/docker-0123456789ab.scope", own)
		h.units["docker-0123456789ab.scope"].transient = true
		k, end := h.keeper(t.TempDir(), true)
		before := h.files[id.Path+" "+string(knob)]
		mustSet(t, k, id, knob, value)
		h.reload()
		h.wantFile(id, knob, value)
		h.wantLeft("docker-0123456789ab.scope.d/50-" + properties[knob] + ".conf")
		k.Restore(context.Background(), id, knob)
		h.wantFile(id, knob, before)
		h.wantLeft()
		end()
	}
}

func TestWhatIsNoUnitIsSetByItsFile(t *testing.T) {
	h := newFakeHost(t)
	h.unit("/system.slice/web.service", own)
	for _, path := range []string{
		"/system.slice/docker-0123456789ab.scope/init",            // inside a delegated scope
		"/user.slice/user-1000.slice/user@1000.service/app.slice", // of a user's manager
		"/system.slice/gone.service",                              // no unit has that name
		"/other.slice/web.service",                                // that unit is elsewhere
		"/kubepods/burstable/pod1",
	} {
		id := h.cgroup(path, own)
		k, end := h.keeper(t.TempDir(), true)
		h.calls = nil
		mustSet(t, k, id, memcg.KnobHigh, ours)
		if want := []string{"file " + path}; !slices.Equal(h.calls, want) {
			t.Errorf("it was set by %q, want %q", h.calls, want)
		}
		k.Restore(context.Background(), id, memcg.KnobHigh)
		h.wantFile(id, memcg.KnobHigh, own)
		end()
	}
	h.wantLeft()
}

func TestAnOperatorsOwnDropInStays(t *testing.T) {
	h := newFakeHost(t)
	id := h.unit("/system.slice/web.service", "max")
	h.write(h.dropIn("web.service", memcg.KnobHigh), "MemoryHigh", own) // systemctl set-property --runtime
	h.reload()
	k, end := h.keeper(t.TempDir(), true)
	defer end()
	mustSet(t, k, id, memcg.KnobHigh, ours)
	k.Restore(context.Background(), id, memcg.KnobHigh)
	h.wantLeft("web.service.d/50-MemoryHigh.conf")
	h.reload()
	h.wantFile(id, memcg.KnobHigh, own)
}

func TestAPropertyThatAnOperatorSetMeanwhileIsTheirs(t *testing.T) {
	ctx := context.Background()
	h := newFakeHost(t)
	id := h.unit("/system.slice/web.service", own)
	k, end := h.keeper(t.TempDir(), true)
	defer end()
	mustSet(t, k, id, memcg.KnobHigh, ours)
	if err := h.SetProperty(ctx, "web.service", "MemoryHigh", uint64(200*mib)); err != nil { // set-property --runtime
		t.Fatal(err)
	}
	mustSet(t, k, id, memcg.KnobHigh, fmt.Sprint(300*mib)) // asserted, on top of theirs
	k.Restore(ctx, id, memcg.KnobHigh)
	h.wantFile(id, memcg.KnobHigh, fmt.Sprint(200*mib))
	h.wantLeft("web.service.d/50-MemoryHigh.conf")
}

func TestAFileThatSomebodyWroteByHandKeepsItsValueAndTheUnitLosesOurs(t *testing.T) {
	h := newFakeHost(t)
	id := h.unit("/system.slice/web.service", own)
	k, end := h.keeper(t.TempDir(), true)
	defer end()
	mustSet(t, k, id, memcg.KnobHigh, ours)
	h.files[id.Path+" memory.high"] = "8192"
	if u := k.Restore(context.Background(), id, memcg.KnobHigh); u.How != journal.LeftForeign || u.Err != nil {
		t.Errorf("Restore() = %v, %v; want left to somebody else", u.How, u.Err)
	}
	h.wantFile(id, memcg.KnobHigh, "8192")
	h.wantLeft()
	h.reload()
	h.wantFile(id, memcg.KnobHigh, own) // as without memagent
}

func TestTheFileHadAnotherValueThanTheUnit(t *testing.T) {
	h := newFakeHost(t)
	id := h.unit("/system.slice/web.service", "max")
	h.files[id.Path+" memory.high"] = own // by a runtime that writes the file
	k, end := h.keeper(t.TempDir(), true)
	defer end()
	mustSet(t, k, id, memcg.KnobHigh, ours)
	k.Restore(context.Background(), id, memcg.KnobHigh)
	h.wantFile(id, memcg.KnobHigh, own)
	h.wantLeft()
	if got := h.units["web.service"].loaded[memcg.KnobHigh]; got != "max" {
		t.Errorf("the unit has MemoryHigh %s, want max", got)
	}
}

func TestAServiceThatIsStartedAgainDoesNotBeginWithALoan(t *testing.T) {
	h := newFakeHost(t)
	id := h.unit("/system.slice/web.service", own)
	k, end := h.keeper(t.TempDir(), true)
	defer end()
	mustSet(t, k, id, memcg.KnobHigh, ours)
	delete(h.files, id.Path+" memory.high")
	if err := k.Forget(id); err != nil {
		t.Error(err)
	}
	h.wantLeft()
	h.reload()
	h.wantFile(id, memcg.KnobHigh, own)
}

func TestTheNextAgentUndoesItAlsoWhereUnitsAreLeftAlone(t *testing.T) {
	h, dir := newFakeHost(t), t.TempDir()
	id := h.unit("/system.slice/web.service", own)
	k, end := h.keeper(dir, true)
	mustSet(t, k, id, memcg.KnobHigh, ours)
	end() // kill -9
	k, end = h.keeper(dir, false)
	defer end()
	if r := k.Recover(context.Background()); len(r.Failed()) > 0 {
		t.Errorf("not undone: %v", r.Failed())
	}
	h.wantFile(id, memcg.KnobHigh, own)
	h.wantLeft()
}

func TestADropInLeftBetweenTheTwoStepsOfUndoingIsRemoved(t *testing.T) {
	h, dir := newFakeHost(t), t.TempDir()
	id := h.unit("/system.slice/web.service", own)
	k, end := h.keeper(dir, true)
	mustSet(t, k, id, memcg.KnobHigh, ours)
	end()
	if err := h.SetProperty(context.Background(), "web.service", "MemoryHigh", uint64(40*mib)); err != nil {
		t.Fatal(err)
	}
	k, end = h.keeper(dir, true)
	defer end()
	k.Recover(context.Background())
	h.wantLeft()
}

func TestNothingIsSetWhereItCouldNotBeTakenBack(t *testing.T) {
	busGone, denied := fmt.Errorf("%w: no socket", ErrNoManager), fmt.Errorf("%w: polkit", memcg.ErrDenied)
	for _, c := range []struct {
		name   string
		breaks func(h *fakeHost)
		want   error
	}{
		{"systemd does not answer", func(h *fakeHost) { h.off = busGone }, ErrNoManager},
		{"systemd does not allow it", func(h *fakeHost) { h.deny = denied }, memcg.ErrDenied},
		{"/run/systemd is not there", func(h *fakeHost) { _ = os.RemoveAll(h.root + "/run/systemd") }, os.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newFakeHost(t)
			id := h.unit("/system.slice/web.service", own)
			k, end := h.keeper(t.TempDir(), true)
			defer end()
			c.breaks(h)
			if _, err := k.Set(context.Background(), id, memcg.KnobHigh, ours, "test"); !errors.Is(err, c.want) {
				t.Errorf("Set() = %v, want %v", err, c.want)
			}
			h.wantFile(id, memcg.KnobHigh, own)
			h.wantLeft()
			if len(k.Entries()) > 0 {
				t.Errorf("the journal has %v", k.Entries())
			}
		})
	}
}
