package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func TestC27EAGAINIsANormalEnd(t *testing.T) {
	number := func(file string) uint64 {
		v, _ := parseValueFile(fixture(t, "c27", file)).Get()
		return v
	}
	const dir = "/sys/fs/cgroup/paused/"
	k := newReclaimer(t, number("t0"+dir+"memory.current"))
	k.react = func(k *reclaimer, bytes uint64) error {
		k.current = number("t1" + dir + "memory.current")
		k.set("memory.swap.current", string(fixture(t, "c27/t1"+dir+"memory.swap.current")))
		return unix.EAGAIN
	}
	o := k.run(memcg.Reclaim{Bytes: 402653184})
	if !errors.Is(o.Err, memcg.ErrPartial) || !errors.Is(o.Err, unix.EAGAIN) || o.Writes != 1 {
		t.Errorf("outcome %+v", o)
	}
	if o.Shrunk != memcg.Value(402653184-88080384) || o.SwapOut != memcg.Value(310378496) || o.Reclaimed != memcg.Value(0) {
		t.Errorf("what was moved is not told: %+v", o)
	}
}

func TestC29AnInterruptedWriteIsNeverRepeatedInFull(t *testing.T) {
	k := newReclaimer(t, 400*mib)
	n := 0
	k.react = func(k *reclaimer, bytes uint64) error {
		if n++; n == 1 {
			k.take(5 * mib)
			return unix.EINTR
		}
		k.take(bytes)
		return nil
	}
	o := k.run(memcg.Reclaim{Bytes: 8 * mib})
	if want := []uint64{8 * mib, 3 * mib}; !slices.Equal(k.asked, want) || o.Err != nil || o.Shrunk != memcg.Value(8*mib) {
		t.Errorf("chunks %v, want %v; %+v", k.asked, want, o)
	}

	k = newReclaimer(t, 400*mib)
	k.react = func(*reclaimer, uint64) error { return unix.EINTR }
	o = k.run(memcg.Reclaim{Bytes: 8 * mib})
	if want := []uint64{8 * mib, 4 * mib, 2 * mib}; !slices.Equal(k.asked, want) || !errors.Is(o.Err, memcg.ErrPartial) {
		t.Errorf("a storm of signals: chunks %v, want %v; %v", k.asked, want, o.Err)
	}
}

func TestC29BothEndsReachTheCaller(t *testing.T) {
	for cgroup, want := range map[string]struct {
		errno  unix.Errno
		writes []string
	}{
		"p": {unix.EAGAIN, []string{"1048576"}},
		"q": {unix.EINTR, []string{"1048576", "524288", "262144"}},
	} {
		root := fixtureCopy(t, "c29", append(onCgroup2("/agent"), "sys/fs/cgroup/"+cgroup+"/memory.reclaim", "",
			"sys/fs/cgroup/"+cgroup+"/memory.current", "104857600\n")...)
		k := withFaults(t, root, faultsOf(t, "c29"))
		k.cgroup2 = true
		fs := mustOpen(t, root, withKernel(k))
		o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, "/"+cgroup), Bytes: mib})
		for i := range want.writes {
			want.writes[i] = "sys/fs/cgroup/" + cgroup + "/memory.reclaim " + want.writes[i]
		}
		if !errors.Is(o.Err, memcg.ErrPartial) || !slices.Equal(k.writes, want.writes) {
			t.Errorf("%s: err %v, writes %q", cgroup, o.Err, k.writes)
		}
	}
}

func TestC29EAGAINReachesTheCallerFromARealWrite(t *testing.T) {
	k := newReclaimer(t, 100*mib)
	pipe := filepath.Join(k.root, reclaimed, "memory.reclaim")
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := unix.Open(pipe, unix.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(reader)
	for _, err := unix.Write(reader, make([]byte, 4096)); err == nil; {
		_, err = unix.Write(reader, make([]byte, 4096))
	}
	layer := &fifoKernel{faulty: k.faulty}
	fs := mustOpen(t, k.root, withKernel(layer))
	o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 8 * mib})
	if !errors.Is(o.Err, unix.EAGAIN) || !errors.Is(o.Err, memcg.ErrPartial) {
		t.Errorf("err = %v", o.Err)
	}
	if layer.calls != 1 || o.Writes != 1 || fs.Writes() != 1 {
		t.Errorf("%d calls, %d in the outcome, %d counted; want one", layer.calls, o.Writes, fs.Writes())
	}
	if layer.flags&unix.O_NONBLOCK != 0 {
		t.Error("the descriptor does not block: memory.reclaim would be cut short and memory.high set without reclaim")
	}
}

// fifoKernel lets writes reach a FIFO through the real write. A FIFO answers
// EAGAIN only to a descriptor that does not block, memory.reclaim to any: so
// the flag that was asked for is kept for the test to see, and changed here.
type fifoKernel struct {
	*faulty
	flags int
	calls int
}

func (k *fifoKernel) open(dir int, name string, flags int, how resolve) (int, error) {
	if name == "memory.reclaim" {
		k.flags = flags
		flags |= unix.O_NONBLOCK
	}
	return k.faulty.open(dir, name, flags, how)
}

func (k *fifoKernel) write(fd int, b []byte) (int, error) {
	k.calls++
	return k.faulty.kernel.write(fd, b)
}

func TestC30ASwappinessThatIsNotTakenIsNotDropped(t *testing.T) {
	for _, tt := range []struct {
		cgroup string
		s      memcg.Swappiness
		kind   error
		text   string
	}{
		{"/p", memcg.SwappinessOf(0), memcg.ErrUnsupported, "takes no swappiness with a request"},
		{"/p", memcg.Swappiness{}, nil, ""},
		{"/q", memcg.SwappinessOf(200), nil, ""},
		{"/q", memcg.SwappinessOf(memcg.SwappinessMax), memcg.ErrUnsupported, "takes no swappiness=max"},
	} {
		t.Run(tt.cgroup+" "+tt.s.String(), func(t *testing.T) {
			files := append(onCgroup2("/agent"), "sys/fs/cgroup"+tt.cgroup+"/memory.reclaim", "", "sys/fs/cgroup"+tt.cgroup+"/memory.current", "104857600\n")
			root := fixtureCopy(t, "c30", files...)
			k := withFaults(t, root, faultsOf(t, "c30"))
			k.cgroup2 = true
			fs := mustOpen(t, root, withKernel(k))
			o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, tt.cgroup), Bytes: mib, Swappiness: tt.s})
			if !errors.Is(o.Err, tt.kind) || (o.Err == nil) != (tt.kind == nil) || len(k.writes) != 1 {
				t.Fatalf("err %v, writes %q", o.Err, k.writes)
			}
			if tt.kind != nil && (!errors.Is(o.Err, unix.EINVAL) || !strings.Contains(o.Err.Error(), tt.text) || o.Asked != 0) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func TestC32DemotionIsToldApartAndNotAskedForAgain(t *testing.T) {
	root := fixtureCopy(t, "c32/t0", append(onCgroup2("/agent"), "sys/fs/cgroup/p/memory.reclaim", "")...)
	after := fixture(t, "c32/t1/sys/fs/cgroup/p/memory.stat")
	k := &reacting{faulty: withFaults(t, root, faultsOf(t, "c32"))}
	k.faulty.cgroup2 = true
	k.after = func() {
		if err := os.WriteFile(filepath.Join(root, "sys/fs/cgroup/p/memory.stat"), after, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fs := mustOpen(t, root, withKernel(k))
	o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 1 << 30})
	page := uint64(unix.Getpagesize())
	if o.Err != nil || o.Shrunk != memcg.Value(0) || o.Demoted != memcg.Value(262144*page) || o.Asked != 1<<30 {
		t.Errorf("outcome %+v", o)
	}
	for _, w := range k.writes {
		if strings.Contains(w, "nodes") {
			t.Errorf("wrote %q", w)
		}
	}
}

// reacting calls after with every write.
type reacting struct {
	*faulty
	after func()
}

func (k *reacting) write(fd int, b []byte) (int, error) {
	n, err := k.faulty.write(fd, b)
	k.after()
	return n, err
}

func TestC25AndC35ErrorsOfAWriteHaveTheirKind(t *testing.T) {
	const file = "sys/fs/cgroup/p/memory.reclaim"
	for _, tt := range []struct {
		op    string
		errno unix.Errno
		kind  error
	}{
		{"open", unix.ENOENT, memcg.ErrUnsupported}, // the cgroup lives and lacks the file (case c22)
		{"open", unix.EACCES, memcg.ErrDenied}, {"open", unix.EPERM, memcg.ErrDenied}, {"open", unix.EROFS, memcg.ErrDenied},
		{"write", unix.EACCES, memcg.ErrDenied}, {"write", unix.ENODEV, memcg.ErrGone}, {"write", unix.EPERM, memcg.ErrDenied},
		{"write", unix.EINVAL, memcg.ErrInvalid}, {"write", unix.EAGAIN, memcg.ErrPartial}, {"write", unix.EIO, unix.EIO},
	} {
		t.Run(tt.op+" "+unix.ErrnoName(tt.errno), func(t *testing.T) {
			k := newReclaimer(t, 100*mib)
			k.faults = []fault{{op: tt.op, path: file, errno: tt.errno}}
			o := k.run(memcg.Reclaim{Bytes: mib})
			if !errors.Is(o.Err, tt.kind) || !errors.Is(o.Err, tt.errno) || !strings.Contains(o.Err.Error(), "p/memory.reclaim") {
				t.Errorf("err = %v", o.Err)
			}
		})
	}
	k := newReclaimer(t, 100*mib)
	fs := k.host()
	id := idOf(t, fs, "/p")
	if err := os.RemoveAll(filepath.Join(k.root, reclaimed)); err != nil {
		t.Fatal(err)
	}
	if o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: id, Bytes: mib}); !errors.Is(o.Err, memcg.ErrGone) || o.Writes != 0 {
		t.Errorf("removed before: %+v", o)
	}
}

func TestNothingIsWrittenWhereNothingMayBe(t *testing.T) {
	for _, tt := range []struct {
		name, cgroup string
		opts         []Option
		plain        bool
		kind         error
	}{
		{"observing", "/p", []Option{ReadOnly()}, false, memcg.ErrReadOnly},
		{"recorded files", "/p", nil, true, memcg.ErrReadOnly},
		{"the root", "/", nil, false, memcg.ErrDenied},
		{"the agent", "/system/agent", nil, false, memcg.ErrDenied},
		{"above the agent", "/system", nil, false, memcg.ErrDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := onCgroup2("/system/agent")
			for _, c := range []string{"", "/system", "/system/agent", "/p"} {
				files = append(files, "sys/fs/cgroup"+c+"/memory.reclaim", "", "sys/fs/cgroup"+c+"/memory.current", "104857600\n")
			}
			root := fixtureCopy(t, "", files...)
			k := withFaults(t, root, nil)
			k.cgroup2 = !tt.plain
			fs := mustOpen(t, root, append(tt.opts, withKernel(k))...)
			o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, tt.cgroup), Bytes: mib})
			if !errors.Is(o.Err, tt.kind) || len(k.writes) != 0 || fs.Writes() != 0 {
				t.Errorf("err %v, writes %q", o.Err, k.writes)
			}
		})
	}
}
