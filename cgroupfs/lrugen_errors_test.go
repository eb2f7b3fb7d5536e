package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func oldList(seq int) string {
	return nodeList(0, seq, append([][3]int{{600, 0, 1 << 16}}, young...)...)
}

func TestEINVALHasTheListingReadAgain(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", oldList(1)))
	k.react = func(k *generations, c command) error {
		if c.seq == 1 {
			k.list(cgroupEntry(20, "/p", oldList(5)))
			return unix.EINVAL
		}
		k.take(c.pages)
		return nil
	}
	o := k.run(memcg.Reclaim{Bytes: 100 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	if want := []string{"- 20 0 1 0 100", "- 20 0 5 0 100"}; o.Err != nil || !slices.Equal(k.raws(), want) || k.readings != 2 {
		t.Errorf("commands %q, want %q; %d readings, err %v", k.raws(), want, k.readings, o.Err)
	}
	if o.Asked != 100*page || o.Writes != 2 {
		t.Errorf("what was refused counts as asked for: %+v", o)
	}
}

func TestEINVALIsNotTriedForEver(t *testing.T) {
	k := newGenerations(t, 1024*mib, "sys/fs/cgroup/p/x/memory.current", "9000000000\n")
	k.list(cgroupEntry(20, "/p", oldList(1)), cgroupEntry(21, "/p/x", oldList(1)))
	k.react = func(k *generations, c command) error {
		if c.id == 20 {
			return unix.EINVAL
		}
		k.take(c.pages)
		return nil
	}
	o := k.run(memcg.Reclaim{Bytes: 200 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	want := []string{"- 20 0 1 0 100", "- 20 0 1 0 100", "- 21 0 1 0 200"}
	if !slices.Equal(k.raws(), want) || k.readings != 2 || o.Err != nil {
		t.Errorf("commands %q, want %q; %d readings, err %v", k.raws(), want, k.readings, o.Err)
	}

	k = newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", oldList(1)))
	k.react = func(*generations, command) error { return unix.EINVAL }
	o = k.run(memcg.Reclaim{Bytes: 200 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	if !errors.Is(o.Err, memcg.ErrInvalid) || !errors.Is(o.Err, unix.EINVAL) || len(k.commands) != 2 || o.Asked != 0 || !strings.Contains(o.Err.Error(), `"- 20 0 1 0 200"`) {
		t.Errorf("commands %q, outcome %+v", k.raws(), o)
	}
}

// On 6.12 lru_gen knows no max, and 200 takes anon first of what is in the
// oldest generation, but the oldest generation first whatever is in it.
func TestAMaxThatLRUGenDoesNotTakeIsKeptToTheAnonOfTheOldestGeneration(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{900, 500, 700}, {600, 300, 0}}, young...)...)))
	k.react = func(k *generations, c command) error {
		if c.swappiness == "max" {
			return unix.EINVAL
		}
		k.take(c.pages)
		return nil
	}
	fs := k.host()
	r := memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 600 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(memcg.SwappinessMax)}
	o := fs.Reclaim(t.Context(), r)
	if want := []string{"- 20 0 2 max 600", "- 20 0 2 max 600", "- 20 0 1 200 500"}; !slices.Equal(k.raws(), want) {
		t.Errorf("commands %q, want %q", k.raws(), want)
	}
	if !errors.Is(o.Err, memcg.ErrPartial) || !strings.Contains(o.Err.Error(), "file is in the oldest generation") || o.Asked != 500*page {
		t.Errorf("outcome %+v", o)
	}
	k.commands = nil
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{900, 0, 700}, {600, 300, 0}}, young...)...)))
	if o := fs.Reclaim(t.Context(), r); len(k.commands) != 0 || !errors.Is(o.Err, memcg.ErrPartial) {
		t.Errorf("file is the oldest: commands %q, err %v", k.raws(), o.Err)
	}
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{900, 0, 0}, {600, 900, 0}}, young...)...)))
	if o := fs.Reclaim(t.Context(), r); !slices.Equal(k.raws(), []string{"- 20 0 2 200 600"}) || o.Err != nil {
		t.Errorf("an empty generation is passed over, and what was refused is known: commands %q, err %v", k.raws(), o.Err)
	}
}

func TestEINVALOfACommandWithMaxMayHaveAnotherReason(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{600, 500, 0}}, young...)...)))
	k.react = func(*generations, command) error { return unix.EINVAL }
	fs := k.host()
	o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 200 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(memcg.SwappinessMax)})
	if !errors.Is(o.Err, memcg.ErrInvalid) || len(k.commands) != 3 || fs.refused.evictMax.Load() {
		t.Errorf("commands %q, err %v", k.raws(), o.Err)
	}
}

func TestAChildThatWentCostsTheOthersNothing(t *testing.T) {
	k := newGenerations(t, 1024*mib, "sys/fs/cgroup/p/x/memory.current", "9000000000\n")
	k.list(cgroupEntry(20, "/p", oldList(1)), cgroupEntry(21, "/p/x", nodeList(0, 1, append([][3]int{{600, 0, 1 << 18}}, young...)...)))
	k.react = func(k *generations, c command) error {
		if c.id == 21 { // removed as it is written
			if err := os.RemoveAll(filepath.Join(k.root, "sys/fs/cgroup/p/x")); err != nil {
				t.Fatal(err)
			}
			return unix.EINVAL
		}
		k.take(c.pages)
		return nil
	}
	o := k.run(memcg.Reclaim{Bytes: 200 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	if want := []string{"- 21 0 1 0 160", "- 20 0 1 0 200"}; o.Err != nil || !slices.Equal(k.raws(), want) || k.readings != 1 {
		t.Errorf("commands %q, want %q; %d readings, err %v", k.raws(), want, k.readings, o.Err)
	}
}

// An id is used only for the cgroup that was there before the listing was read
// and still is: on kernels with private ids it may be another cgroup's by now.
func TestAnIDIsNeverUsedForAnotherCgroup(t *testing.T) {
	for _, of := range []string{"p", "p/x"} {
		t.Run(of+" was replaced within the tick", func(t *testing.T) {
			k := newGenerations(t, 1024*mib, "sys/fs/cgroup/p/x/memory.current", "9000000000\n")
			k.list(cgroupEntry(20, "/p", nodeList(0, 1, young...)), cgroupEntry(21, "/p/x", oldList(1)))
			fs := k.host()
			fs.BeginTick()
			if _, err := fs.Generations(idOf(t, fs, "/p"), nil); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(k.root, "copy"), os.DirFS(filepath.Join(k.root, "sys/fs/cgroup", of))); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(k.root, "sys/fs/cgroup", of), filepath.Join(k.root, "old")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(k.root, "copy"), filepath.Join(k.root, "sys/fs/cgroup", of)); err != nil {
				t.Fatal(err)
			}
			o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 100 * page, OlderThan: time.Minute})
			if len(k.commands) != 0 || !errors.Is(o.Err, memcg.ErrPartial) {
				t.Errorf("commands %q, err %v", k.raws(), o.Err)
			}
			if _, err := fs.Age(t.Context(), idOf(t, fs, "/p")); err != nil {
				t.Error(err)
			}
			for _, c := range k.commands {
				if of == "p" || c.id == 21 {
					t.Errorf("wrote %q", c.raw)
				}
			}
		})
	}
}

func TestAnInterruptedEvictionGoesOnInSmallerSteps(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", oldList(1)))
	n := 0
	k.react = func(k *generations, c command) error {
		if n++; n == 1 {
			k.take(c.pages / 4)
			return unix.EINTR
		}
		k.take(c.pages)
		return nil
	}
	o := k.run(memcg.Reclaim{Bytes: 12 * mib, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	if want := []uint64{8 * mib / page, 4 * mib / page}; !slices.Equal(pagesOf(k.commands), want) || o.Asked != 12*mib || !errors.Is(o.Err, memcg.ErrPartial) {
		t.Errorf("chunks %v, want %v; %+v", pagesOf(k.commands), want, o)
	}

	k = newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", oldList(1)))
	k.react = func(*generations, command) error { return unix.EINTR }
	o = k.run(memcg.Reclaim{Bytes: 64 * mib, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	if want := []uint64{8 * mib / page, 4 * mib / page, 2 * mib / page}; !slices.Equal(pagesOf(k.commands), want) || !errors.Is(o.Err, memcg.ErrPartial) {
		t.Errorf("a storm of signals: chunks %v, want %v; %v", pagesOf(k.commands), want, o.Err)
	}
}

func TestErrorsOfEvictionHaveTheirKind(t *testing.T) {
	for _, tt := range []struct {
		op    string
		errno unix.Errno
		kind  error
	}{
		{"open", unix.ENOENT, memcg.ErrUnsupported}, {"open", unix.EPERM, memcg.ErrDenied}, {"open", unix.EACCES, memcg.ErrDenied},
		{"write", unix.EPERM, memcg.ErrDenied}, {"write", unix.ENODEV, memcg.ErrUnsupported}, {"write", unix.EIO, unix.EIO}, {"read", unix.EIO, unix.EIO},
	} {
		t.Run(tt.op+" "+unix.ErrnoName(tt.errno), func(t *testing.T) {
			k := newGenerations(t, 1024*mib)
			k.list(cgroupEntry(20, "/p", oldList(1)))
			k.faults = []fault{{op: tt.op, path: lruGenFile, errno: tt.errno}}
			o := k.run(memcg.Reclaim{Bytes: mib, OlderThan: time.Minute})
			if !errors.Is(o.Err, tt.kind) || !errors.Is(o.Err, tt.errno) || !strings.Contains(o.Err.Error(), "lru_gen") || o.Asked != 0 {
				t.Errorf("outcome %+v", o)
			}
		})
	}
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", oldList(1)))
	k.set("proc/sys/vm/swappiness", "many\n")
	if o := k.run(memcg.Reclaim{Bytes: mib, OlderThan: time.Minute}); !errors.Is(o.Err, memcg.ErrInvalid) || o.Writes != 0 {
		t.Errorf("outcome %+v", o)
	}
}

// On 6.1 memory.reclaim takes no swappiness, and lru_gen does.
func TestARefusedSwappinessGoesThroughLRUGen(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{1, 100, 300}}, young...)...)))
	const reclaim = "sys/fs/cgroup/p/memory.reclaim"
	k.faults = []fault{{op: "write", path: reclaim, errno: unix.EINVAL, when: func(p string) bool { return strings.Contains(p, "swappiness=") }}}
	fs := k.host()
	id := idOf(t, fs, "/p")
	for _, tt := range []struct {
		swappiness memcg.Swappiness
		writes     []string
		via        string
	}{
		{memcg.SwappinessOf(0), []string{reclaim + " 262144 swappiness=0", lruGenFile + " - 20 0 1 0 64"}, memcg.ViaLRUGen},
		{memcg.SwappinessOf(100), []string{lruGenFile + " - 20 0 1 100 64"}, memcg.ViaLRUGen}, // known by now
		{memcg.Swappiness{}, []string{reclaim + " 262144"}, memcg.ViaReclaim},
		{memcg.SwappinessOf(memcg.SwappinessMax), []string{reclaim + " 262144 swappiness=max", lruGenFile + " - 20 0 1 max 64"}, memcg.ViaLRUGen},
	} {
		k.writes = nil
		o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: 64 * 4096, Swappiness: tt.swappiness})
		if o.Err != nil || !slices.Equal(k.writes, tt.writes) || o.Via != tt.via || o.Writes != len(tt.writes) || o.Asked != 64*4096 {
			t.Errorf("swappiness %v: writes %q, want %q; outcome %+v", tt.swappiness, k.writes, tt.writes, o)
		}
	}
}

func TestARefusedSwappinessIsToldWithBothReasons(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.set(lruGenEnabled, "0x0000\n")
	k.faults = []fault{{op: "write", path: "sys/fs/cgroup/p/memory.reclaim", errno: unix.EINVAL}}
	fs := k.host()
	id := idOf(t, fs, "/p")
	for i := range 2 {
		o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, Swappiness: memcg.SwappinessOf(0)})
		if !errors.Is(o.Err, memcg.ErrUnsupported) || !errors.Is(o.Err, unix.EINVAL) || !strings.Contains(o.Err.Error(), "6.11") || !strings.Contains(o.Err.Error(), "switched off") {
			t.Errorf("err = %v", o.Err)
		}
		if o.Asked != 0 || o.Writes != 1-i {
			t.Errorf("request %d: %+v", i, o)
		}
	}

	k = newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, young...)))
	k.faults = []fault{{op: "write", path: "sys/fs/cgroup/p/memory.reclaim", errno: unix.EINVAL}}
	o := k.run(memcg.Reclaim{Bytes: mib, Swappiness: memcg.SwappinessOf(0)})
	if !errors.Is(o.Err, memcg.ErrPartial) || errors.Is(o.Err, memcg.ErrUnsupported) || !strings.Contains(o.Err.Error(), "aged") {
		t.Errorf("nothing evictable: %v", o.Err)
	}
}

func TestAnAgeIsNeverDropped(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.set(lruGenEnabled, "0x0000\n")
	o := k.run(memcg.Reclaim{Bytes: mib, OlderThan: time.Minute})
	if !errors.Is(o.Err, memcg.ErrUnsupported) || len(k.writes) != 0 {
		t.Errorf("writes %q, outcome %+v", k.writes, o)
	}
}

func TestNothingIsEvictedOrAgedWhereNothingMayBe(t *testing.T) {
	for _, tt := range []struct {
		name, cgroup string
		opts         []Option
		plain        bool
		kind         error
	}{
		{"observing", "/p", []Option{ReadOnly()}, false, memcg.ErrReadOnly},
		{"recorded files", "/p", nil, true, memcg.ErrReadOnly},
		{"the root", "/", nil, false, memcg.ErrDenied},
		{"the agent", "/agent", nil, false, memcg.ErrDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newGenerations(t, 1024*mib)
			k.faulty.cgroup2 = !tt.plain
			k.list(cgroupEntry(1, "/", oldList(1)), cgroupEntry(20, "/p", oldList(1)), cgroupEntry(21, "/agent", oldList(1)))
			fs := k.host(tt.opts...)
			id := idOf(t, fs, tt.cgroup)
			o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib, OlderThan: time.Minute})
			if _, err := fs.Age(t.Context(), id); !errors.Is(o.Err, tt.kind) || !errors.Is(err, tt.kind) || len(k.writes) != 0 || fs.Writes() != 0 {
				t.Errorf("reclaim %v, age %v, writes %q", o.Err, err, k.writes)
			}
		})
	}
}
