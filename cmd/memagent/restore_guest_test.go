package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/journal"
	"github.com/memagent/memagent/memcg"
)

var (
	guest = flag.Bool("guest", false, "run the tests that need a kernel of their own; only in a guest of the lab")
	dieAt = flag.String("die-at", "", "the step at which TestLendAndDie kills itself")
)

// needGuest skips a test that writes to a real cgroup tree.
func needGuest(t *testing.T) {
	t.Helper()
	if !*guest {
		t.Skip("needs a kernel of its own: make conform runs it in a guest of the lab")
	}
}

const (
	guestState = "/memagent-state"
	guestFiles = "/sys/fs/cgroup/app/"
)

// TestRestoreAfterKillAtEveryStepOnARealKernel has a process lend and give back
// and kill itself at each step; memagent restore must then leave every file as
// it was before.
func TestRestoreAfterKillAtEveryStepOnARealKernel(t *testing.T) {
	needGuest(t)
	read := func() string {
		var all []string
		for _, k := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax} {
			b, err := os.ReadFile(guestFiles + string(k))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(k)+" "+strings.TrimSpace(string(b)))
		}
		return strings.Join(all, ", ")
	}
	before := read()
	for _, step := range journal.Steps() {
		child := exec.Command("/proc/self/exe", "-test.run=^TestLendAndDie$", "-guest", "-die-at="+string(step))
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the process did not kill itself there: %v\n%s", step, err, out)
		}
		left := read()
		var o, e bytes.Buffer
		code := run(context.Background(), env{out: &o, err: &e}, []string{"restore", "--state-dir", guestState})
		t.Logf("%s: left %s; restore: exit %d, %q %q", step, left, code, o.String(), e.String())
		if now := read(); code != exitOK || now != before {
			t.Errorf("%s: after the restore %s, want %s", step, now, before)
		}
	}
}

// TestLendAndDie is the process of the test above.
func TestLendAndDie(t *testing.T) {
	if *dieAt == "" {
		t.Skip("is started by TestRestoreAfterKillAtEveryStepOnARealKernel, which make conform runs")
	}
	needGuest(t)
	fs, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	boot, err := fs.BootID()
	if err != nil {
		t.Fatal(err)
	}
	id, err := fs.Lookup("/app")
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(guestState, journal.OnStep(func(s journal.Step) {
		if string(s) == *dieAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it comes
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := journal.NewKeeper(store, fs, journal.Options{Boot: boot})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		knob  memcg.Knob
		value string
	}{{memcg.KnobHigh, "1073741825"}, {memcg.KnobSwapMax, "1048576"}, {memcg.KnobHigh, "2147483648"}} {
		if r, err := keeper.Set(t.Context(), id, s.knob, s.value, "test"); err != nil || r.Outcome != journal.Written {
			t.Fatalf("%s: %+v, %v", s.knob, r, err)
		}
	}
	if r := keeper.RestoreAll(t.Context(), time.Minute); len(r.Failed()) != 0 || r.Err != nil {
		t.Fatalf("%+v", r)
	}
}
