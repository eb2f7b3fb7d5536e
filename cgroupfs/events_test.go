package cgroupfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// eventful is a host with some cgroups that have a memory.events.
func eventful(t *testing.T, cgroups ...string) (*FS, string) {
	root := cgroupTree(t, cgroups...)
	for _, c := range cgroups {
		raise(t, root, c)
	}
	return openHost(t, root, ReadOnly()), root
}

// raise changes memory.events of a cgroup, as an event does.
func raise(t *testing.T, root, cgroup string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(root, "sys/fs/cgroup", cgroup, "memory.events"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("high 1\n"); err != nil {
		t.Fatal(err)
	}
}

func awaitEvent(t *testing.T, events <-chan memcg.ID) memcg.ID {
	t.Helper()
	select {
	case id, open := <-events:
		if !open {
			t.Fatal("the channel was closed")
		}
		return id
	case <-time.After(30 * time.Second):
		t.Fatal("no event")
	}
	return memcg.ID{}
}

func mustListen(t *testing.T, host *FS, cgroup string) memcg.ID {
	t.Helper()
	id := *matched(t, host, cgroup)
	if err := host.Listen(id); err != nil {
		t.Fatal(err)
	}
	return id
}

func mustHear(t *testing.T, ctx context.Context, host *FS) <-chan memcg.ID {
	t.Helper()
	events, err := host.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestEventsNameTheCgroup(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	host, root := eventful(t, "a", "a/b c", "unheard")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := mustListen(t, host, "/a") // before the channel is there
	events := mustHear(t, ctx, host)
	b := mustListen(t, host, "/a/b c")
	mustListen(t, host, "/a/b c")
	for i, want := range []memcg.ID{b, a, a, b} {
		raise(t, root, "unheard")
		raise(t, root, want.Path)
		if got := awaitEvent(t, events); got != want {
			t.Errorf("event %d is of %v, want %v", i, got, want)
		}
	}
	if host.Writes() != 0 {
		t.Error("listening wrote")
	}
	cancel()
	for range events { // closed when ctx is done
	}
}

func TestEventsOfOneCgroupAreOneWhileNobodyTakesThem(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	host, root := eventful(t, "busy", "last")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mustListen(t, host, "/busy")
	last := mustListen(t, host, "/last")
	events := mustHear(t, ctx, host)
	for range 3000 {
		raise(t, root, "busy")
	}
	raise(t, root, "last")
	// One may have been on offer while the others came; a third would mean
	// that they pile up. It is told from the kernel's own queue by its end.
	n := 0
	for awaitEvent(t, events) != last {
		n++
	}
	if n < 1 || n > 3000/10 {
		t.Errorf("%d events of one cgroup before that of the other", n)
	}
	cancel()
	for range events {
	}
}

func TestTheQueueHoldsEachCgroupOnce(t *testing.T) {
	q := &eventQueue{waiting: map[memcg.ID]bool{}, wake: make(chan struct{}, 1)}
	a, b := memcg.ID{Path: "/a", Inode: 1}, memcg.ID{Path: "/b", Inode: 2}
	for range 100 {
		q.add(a)
		q.add(b)
	}
	for _, want := range []memcg.ID{a, b} {
		if got, ok := q.next(); !ok || got != want {
			t.Errorf("next = %v, %v, want %v", got, ok, want)
		}
	}
	if id, ok := q.next(); ok {
		t.Errorf("%v waits still", id)
	}
	q.add(a) // it was taken, so what comes now is told
	if got, ok := q.next(); !ok || got != a {
		t.Errorf("next = %v, %v", got, ok)
	}
}

func TestAForgottenCgroupIsNotHeardOf(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	host, root := eventful(t, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := mustHear(t, ctx, host)
	a, b := mustListen(t, host, "/a"), mustListen(t, host, "/b")
	host.Forget(a)
	host.Forget(a)
	raise(t, root, "a")
	raise(t, root, "b")
	if got := awaitEvent(t, events); got != b {
		t.Errorf("heard of %v", got)
	}
	mustListen(t, host, "/a")
	raise(t, root, "a")
	if got := awaitEvent(t, events); got != a {
		t.Errorf("heard of %v, want %v", got, a)
	}
	cancel()
	for range events {
	}
}

func TestARemovedCgroupIsForgotten(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	host, root := eventful(t, "a", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := mustHear(t, ctx, host)
	a, b := mustListen(t, host, "/a"), mustListen(t, host, "/b")
	if err := os.Remove(filepath.Join(root, "sys/fs/cgroup/a/memory.events")); err != nil {
		t.Fatal(err)
	}
	raise(t, root, "b") // comes after the end of the watch
	if got := awaitEvent(t, events); got != b {
		t.Errorf("heard of %v", got)
	}
	host.heard.mu.Lock()
	if _, known := host.heard.watches[a]; known || len(host.heard.ids) != 1 {
		t.Errorf("watches %v are kept", host.heard.watches)
	}
	host.heard.mu.Unlock()
	cancel()
	for range events {
	}
}

func TestEventsCanBeHadAgain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	host, root := eventful(t, "a", "b")
	a := mustListen(t, host, "/a")
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		events := mustHear(t, ctx, host)
		if _, err := host.Events(ctx); !errors.Is(err, memcg.ErrInvalid) {
			t.Errorf("a second channel at the same time: %v", err)
		}
		raise(t, root, "a")
		if got := awaitEvent(t, events); got != a {
			t.Errorf("heard of %v", got)
		}
		cancel()
		for range events {
		}
	}
	host.Forget(a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range mustHear(t, ctx, host) {
	}
}

func TestLostEventsAreToldOfEveryCgroup(t *testing.T) {
	host, _ := eventful(t, "a", "b")
	l := &host.heard
	want := map[memcg.ID]bool{mustListen(t, host, "/a"): true, mustListen(t, host, "/b"): true}
	q := &eventQueue{waiting: map[memcg.ID]bool{}, wake: make(chan struct{}, 1)}
	l.take(nil, append(rawEvent(-1, unix.IN_Q_OVERFLOW, ""), 1, 2, 3), q)
	for range want {
		if id, ok := q.next(); !ok || !want[id] {
			t.Errorf("next = %v, %v", id, ok)
		}
	}
}

func TestListenSaysWhyItCannot(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	root := cgroupTree(t, "a", "bare")
	raise(t, root, "a")
	var heard []Note
	host := openHost(t, root, OnNote(func(n Note) { heard = append(heard, n) }))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := mustHear(t, ctx, host)
	if err := host.Listen(memcg.ID{Path: "/gone", Inode: 9}); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("no such cgroup: %v", err)
	}
	old := *matched(t, host, "/a")
	old.Inode++
	if err := host.Listen(old); !errors.Is(err, memcg.ErrGone) {
		t.Errorf("another cgroup: %v", err)
	}
	if err := host.Listen(*matched(t, host, "/bare")); !errors.Is(err, memcg.ErrUnsupported) || !strings.Contains(err.Error(), "memory.events") {
		t.Errorf("no memory.events: %v", err)
	}
	if len(heard) != 0 {
		t.Errorf("notes %v", heard)
	}
	cancel()
	for range events {
	}

	l := &host.heard
	l.add = func(int, string, uint32) (int, error) { return -1, unix.ENOSPC }
	l.inotify = os.Stdin
	for range 3 {
		if err := host.Listen(*matched(t, host, "/a")); !errors.Is(err, memcg.ErrUnsupported) || !errors.Is(err, unix.ENOSPC) {
			t.Errorf("out of watches: %v", err)
		}
	}
	l.inotify = nil
	if len(heard) != 1 || !strings.Contains(heard[0].Err.Error(), "fs.inotify.max_user_watches") {
		t.Errorf("notes %v, want one that tells the limit", heard)
	}
}

func TestWhatAnEndedChannelReadIsNotHeard(t *testing.T) {
	host, _ := eventful(t, "a")
	l := &host.heard
	a := mustListen(t, host, "/a")
	l.ids = map[int32]memcg.ID{1: a} // of another channel by now
	q := &eventQueue{waiting: map[memcg.ID]bool{}, wake: make(chan struct{}, 1)}
	l.take(os.Stdin, append(rawEvent(1, unix.IN_MODIFY, ""), rawEvent(1, unix.IN_IGNORED, "")...), q)
	if id, ok := q.next(); ok || len(l.ids) != 1 {
		t.Errorf("heard of %v, watches %v", id, l.ids)
	}
}
