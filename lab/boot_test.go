package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/memagent/memagent/lab/kernel"
	"github.com/memagent/memagent/lab/machine"
	"github.com/memagent/memagent/lab/protocol"
	"github.com/memagent/memagent/lab/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emptyELF is a 64-bit ELF header without anything behind it: a program without a dynamic linker.
var emptyELF = "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x3e\x00\x01\x00\x00\x00" +
	strings.Repeat("\x00", 28) + "\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00"

// fakeQEMU puts a shell script in QEMU's place. It runs with descriptor 3 open for messages, and
// with $CONSOLE naming the console's file.
func fakeQEMU(t *testing.T, script string) (l *Lab, said *[]string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\nfor a; do case $a in file,id=console,path=*) CONSOLE=${a#*path=};; esac; done\n" + script
	if err := os.WriteFile(filepath.Join(dir, machine.Program), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "memlab")
	if err := os.WriteFile(self, []byte(emptyELF), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	said = &[]string{}
	return &Lab{Cache: t.TempDir(), Self: self, Say: func(f string, a ...any) { *said = append(*said, fmt.Sprintf(f, a...)) }}, said
}

func quad(t *testing.T) Guest {
	t.Helper()
	top, err := topology.Load(topology.Default)
	if err != nil {
		t.Fatal(err)
	}
	return Guest{Topology: top, Kernel: kernel.Kernel{Release: "9.9.9"}, Within: time.Minute}
}

const hello = `echo '{"hello":{"release":"9.9.9","lru":"mglru"}}' >&3` + "\n"

func TestBootHandsOnMessagesUntilTheLast(t *testing.T) {
	l, _ := fakeQEMU(t, hello+`echo '{"log":"working"}' >&3; echo '{"done":{"code":3}}' >&3; exec sleep 1000`)
	g := quad(t)
	var got []string
	g.OnMessage = func(m protocol.Message) { got = append(got, m.Log) }
	out, err := l.Boot(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	if out.Hello.Release != "9.9.9" || out.Done.Code != 3 || out.Retries != 0 {
		t.Errorf("got %+v", out)
	}
	if len(got) != 2 || got[1] != "working" { // hello, then the log
		t.Errorf("got %q", got)
	}
}

func TestBootStartsAGuestThatDiedBeforeItsHelloOnceMore(t *testing.T) {
	l, said := fakeQEMU(t, `if [ ! -e "$0.died" ]; then touch "$0.died"; echo 'Oops: int3' >"$CONSOLE"; exit 0; fi
`+hello+`echo '{"done":{}}' >&3`)
	out, err := l.Boot(context.Background(), quad(t))
	if err != nil {
		t.Fatal(err)
	}
	if out.Retries != 1 {
		t.Errorf("%d retries, want 1", out.Retries)
	}
	if all := strings.Join(*said, "\n"); !strings.Contains(all, "Oops: int3") {
		t.Errorf("the console of the one that died was not shown: %s", all)
	}
}

func TestBootGivesUpOnAGuestThatDiesTwiceBeforeItsHello(t *testing.T) {
	l, _ := fakeQEMU(t, `echo x >>"$0.starts"; exit 1`)
	_, err := l.Boot(context.Background(), quad(t))
	if !errors.Is(err, errDied) {
		t.Fatalf("got %v", err)
	}
	starts, err := os.ReadFile(filepath.Join(filepath.Dir(l.Self), machine.Program+".starts"))
	if err != nil || len(starts) != 4 {
		t.Errorf("started %d times, want 2: %v", len(starts)/2, err)
	}
}

func TestBootNeverRetriesAGuestThatDiedAtWork(t *testing.T) {
	l, _ := fakeQEMU(t, `echo x >>"$0.starts"; echo 'Kernel panic - not syncing' >"$CONSOLE"
`+hello+`exit 0`)
	_, err := l.Boot(context.Background(), quad(t))
	if err == nil || errors.Is(err, errDied) || !strings.Contains(err.Error(), "Kernel panic - not syncing") {
		t.Fatalf("got %v", err)
	}
	starts, err := os.ReadFile(filepath.Join(filepath.Dir(l.Self), machine.Program+".starts"))
	if err != nil || len(starts) != 2 {
		t.Errorf("started %d times, want 1: %v", len(starts)/2, err)
	}
}

func TestBootEndsAGuestThatHangs(t *testing.T) {
	l, _ := fakeQEMU(t, `echo 'watchdog: soft lockup' >"$CONSOLE"
`+hello+`exec sleep 1000`)
	g := quad(t)
	g.Within = time.Millisecond
	_, err := l.Boot(context.Background(), g)
	if err == nil || !strings.Contains(err.Error(), "did not finish within 1ms") || !strings.Contains(err.Error(), "soft lockup") {
		t.Errorf("got %v", err)
	}
}

func TestBootEndsWithItsContext(t *testing.T) {
	l, _ := fakeQEMU(t, hello+`exec sleep 1000`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := quad(t)
	g.OnMessage = func(protocol.Message) { cancel() }
	if _, err := l.Boot(ctx, g); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBootTellsWhatTheGuestCouldNotDo(t *testing.T) {
	l, _ := fakeQEMU(t, hello+`echo '{"done":{"error":"no such device"}}' >&3`)
	_, err := l.Boot(context.Background(), quad(t))
	if err == nil || !strings.Contains(err.Error(), "in the guest: no such device") {
		t.Errorf("got %v", err)
	}
}

func TestBootTellsWhatQEMUComplainsOf(t *testing.T) {
	l, _ := fakeQEMU(t, `echo 'invalid accelerator' >&2; exit 1`)
	_, err := l.Boot(context.Background(), quad(t))
	if err == nil || !strings.Contains(err.Error(), "QEMU says: invalid accelerator") {
		t.Errorf("got %v", err)
	}
}

func TestBootWithoutQEMUSaysHowToGetIt(t *testing.T) {
	l, _ := fakeQEMU(t, "")
	t.Setenv("PATH", t.TempDir())
	if _, err := l.Boot(context.Background(), quad(t)); !errors.Is(err, machine.ErrNoQEMU) {
		t.Errorf("got %v", err)
	}
}
