package cgroupfs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

func TestC42AKnobIsReadAsTheKernelPrintsIt(t *testing.T) {
	const scope = "/system.slice/app.scope"
	for _, tt := range []struct {
		name string
		at   string
		knob memcg.Knob
		want string
	}{
		{"a limit before the daemon-reload", "t0", memcg.KnobHigh, "536870912"},
		{"a limit of zero is one", "t0", memcg.KnobSwapMax, "0"},
		{"a limit after it", "t2", memcg.KnobHigh, "max"},
		{"no swap limit after it", "t2", memcg.KnobSwapMax, "max"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host := openHost(t, fixtureCopy(t, "c42/"+tt.at, onCgroup2("/agent")...), ReadOnly())
			got, err := host.ReadKnob(*matched(t, host, scope), tt.knob)
			if err != nil || got != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestC46AnEmptyListOfNodesIsAValueAndNoError(t *testing.T) {
	host := openHost(t, fixtureCopy(t, "c46", onCgroup2("/agent")...))
	id := *matched(t, host, "/nomad.slice/reserve.slice")
	if got, err := host.ReadKnob(id, memcg.KnobMems); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	own, parent, err := host.EffectiveMems(id)
	if err != nil || own.String() != "0-1" || parent.String() != "0-1" {
		t.Errorf("effective %v in %v, %v", own, parent, err)
	}
}

func TestKnobsThatCannotBeReadSayWhy(t *testing.T) {
	const p = "sys/fs/cgroup/p/"
	root := fixtureCopy(t, "", append(onCgroup2("/agent"), p+"memory.high", "-1\n", p+"cpuset.mems", "0-x\n")...)
	host := openHost(t, root)
	id := *matched(t, host, "/p")
	for _, tt := range []struct {
		name string
		id   memcg.ID
		knob memcg.Knob
		kind error
		says string
	}{
		{"a limit that is none", id, memcg.KnobHigh, memcg.ErrInvalid, `"-1"`},
		{"nodes that are none", id, memcg.KnobMems, memcg.ErrInvalid, `"0-x"`},
		{"a file that this cgroup does not have", id, memcg.KnobSwapMax, memcg.ErrUnsupported, "does not account swap"},
		{"the root", memcg.ID{Path: "/", Inode: matched(t, host, "/").Inode}, memcg.KnobHigh, memcg.ErrUnsupported, "memory.high"},
		{"a cgroup that is gone", memcg.ID{Path: "/gone", Inode: 1}, memcg.KnobHigh, memcg.ErrGone, "/gone"},
		{"another cgroup at its path", memcg.ID{Path: "/p", Inode: id.Inode + 1}, memcg.KnobHigh, memcg.ErrGone, "another cgroup"},
		{"a file that is no knob", id, "memory.max", memcg.ErrInvalid, "not one of the files"},
		{"a path that leads out", id, "../p/memory.high", memcg.ErrInvalid, "not one of the files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := host.ReadKnob(tt.id, tt.knob)
			if !errors.Is(err, tt.kind) || got != "" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q, %v; want %v that says %q", got, err, tt.kind, tt.says)
			}
		})
	}
}

// knobFiles are two cgroups with every knob, and the agent's own.
func knobFiles() (files []string) {
	for _, c := range []string{"p", "p/c", "system.slice", "system.slice/memagent.service"} {
		for _, k := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax} {
			files = append(files, "sys/fs/cgroup/"+c+"/"+string(k), "max\n")
		}
		files = append(files, "sys/fs/cgroup/"+c+"/cpuset.mems", "\n", "sys/fs/cgroup/"+c+"/cpuset.mems.effective", "0-3\n")
	}
	return files
}

func TestAKnobIsWrittenOnceAndInTheKernelsWords(t *testing.T) {
	page := uint64(unix.Getpagesize())
	for _, tt := range []struct {
		name  string
		knob  memcg.Knob
		value string
		want  string
	}{
		{"whole pages", memcg.KnobHigh, "1073741824", "1073741824"},
		{"a part of a page is left out", memcg.KnobHigh, strconv.FormatUint(8*page+1, 10), strconv.FormatUint(8*page, 10)},
		{"max is the word", memcg.KnobHigh, "max", "max"},
		{"and so is every number that means it", memcg.KnobSwapMax, "9223372036854775807", "max"},
		{"zero is zero", memcg.KnobSwapMax, "0", "0"},
		{"nodes in their short form", memcg.KnobMems, "0,1,2", "0-2\n"},
		{"no nodes are a line, never nothing", memcg.KnobMems, "", "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", nil, knobFiles()...)
			if err := host.WriteKnob(t.Context(), *matched(t, host, "/p"), tt.knob, tt.value); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"sys/fs/cgroup/p/" + string(tt.knob) + " " + tt.want}, k.writes); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
			if host.Writes() != 1 {
				t.Errorf("%d writes counted", host.Writes())
			}
		})
	}
}

func TestAnyValueIsRefusedOrWrittenAsOneLineThatMeansTheSame(t *testing.T) {
	host, _ := enforceable(t, "", nil, knobFiles()...)
	id := *matched(t, host, "/p")
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.StringMatching(`[0-9max,\- \n+]{0,22}`), rapid.String()).Draw(rt, "value")
		knob := rapid.SampledFrom([]memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems}).Draw(rt, "knob")
		b, err := host.knobPayload(id, knob, value)
		switch {
		case err != nil && !errors.Is(err, memcg.ErrInvalid):
			rt.Fatalf("%q: %v", value, err)
		case err != nil:
		case knob == memcg.KnobMems:
			if nodes, err := memcg.ParseNodeMask(value); err != nil || string(b) != nodes.String()+"\n" {
				rt.Fatalf("%q became %q", value, b)
			}
		case strings.Trim(string(b), "0123456789") != "" && string(b) != "max" || len(b) == 0:
			rt.Fatalf("%q became %q", value, b)
		}
	})
}

func TestNoKnobIsWrittenWhereNoneMayBe(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name, cgroup string
		knob         memcg.Knob
		value        string
		ctx          context.Context
		opts         []Option
		kind         error
	}{
		{name: "not the root", cgroup: "/", knob: memcg.KnobHigh, value: "max", kind: memcg.ErrDenied},
		{name: "not the agent's own cgroup", cgroup: "/system.slice/memagent.service", knob: memcg.KnobHigh, value: "max", kind: memcg.ErrDenied},
		{name: "not above it", cgroup: "/system.slice", knob: memcg.KnobSwapMax, value: "max", kind: memcg.ErrDenied},
		{name: "not when observing", cgroup: "/p", knob: memcg.KnobHigh, value: "max", opts: []Option{ReadOnly()}, kind: memcg.ErrReadOnly},
		{name: "not an empty limit", cgroup: "/p", knob: memcg.KnobHigh, value: "", kind: memcg.ErrInvalid},
		{name: "not a line alone", cgroup: "/p", knob: memcg.KnobHigh, value: "\n", kind: memcg.ErrInvalid},
		{name: "not a size with a suffix", cgroup: "/p", knob: memcg.KnobHigh, value: "1G", kind: memcg.ErrInvalid},
		{name: "not nodes that are none", cgroup: "/p", knob: memcg.KnobMems, value: "all", kind: memcg.ErrInvalid},
		{name: "not another file", cgroup: "/p", knob: "memory.max", value: "max", kind: memcg.ErrInvalid},
		{name: "not when time is over", cgroup: "/p", knob: memcg.KnobHigh, value: "max", ctx: over, kind: memcg.ErrPartial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", nil, knobFiles()...)
			for _, o := range tt.opts {
				o(host)
			}
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx
			}
			if err := host.WriteKnob(ctx, *matched(t, host, tt.cgroup), tt.knob, tt.value); !errors.Is(err, tt.kind) {
				t.Errorf("%v, want %v", err, tt.kind)
			}
			if len(k.writes) != 0 || host.Writes() != 0 {
				t.Errorf("wrote %q, %d counted", k.writes, host.Writes())
			}
		})
	}
}

func TestKnobsOfAGoneCgroupAndMissingFiles(t *testing.T) {
	host, k := enforceable(t, "", nil, "sys/fs/cgroup/p/memory.high", "max\n")
	id := *matched(t, host, "/p")
	err := host.WriteKnob(t.Context(), memcg.ID{Path: "/p", Inode: id.Inode + 1}, memcg.KnobHigh, "4096")
	if !errors.Is(err, memcg.ErrGone) {
		t.Errorf("another cgroup at its path: %v", err)
	}
	err = host.WriteKnob(t.Context(), id, memcg.KnobMems, "0")
	if !errors.Is(err, memcg.ErrUnsupported) || !strings.Contains(err.Error(), "cpuset controller is not enabled") {
		t.Errorf("no cpuset: %v", err)
	}
	if _, _, err := host.EffectiveMems(id); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("no cpuset: %v", err)
	}
	if _, _, err := host.EffectiveMems(*matched(t, host, "/")); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("the root: %v", err)
	}
	if len(k.writes) != 0 {
		t.Errorf("wrote %q", k.writes)
	}
}

func TestRefusedKnobsNameTheKindTheErrnoAndTheRemedy(t *testing.T) {
	const p = "sys/fs/cgroup/p/"
	for _, tt := range []struct {
		name  string
		knob  memcg.Knob
		errno syscall.Errno
		kind  error
		says  string
	}{
		{"removed before the write", memcg.KnobHigh, unix.ENODEV, memcg.ErrGone, "memory.high"},
		{"a right that is missing", memcg.KnobHigh, unix.EACCES, memcg.ErrDenied, "memory.high"},
		{"c46: processes are in it", memcg.KnobMems, unix.ENOSPC, memcg.ErrInvalid, "parent's cpuset.mems.effective"},
		{"c48: a node that there is not", memcg.KnobMems, unix.ERANGE, memcg.ErrInvalid, "does not exist on this host"},
		{"a node without memory", memcg.KnobMems, unix.EINVAL, memcg.ErrInvalid, "has no memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", []fault{{op: "write", path: p + string(tt.knob), errno: tt.errno}}, knobFiles()...)
			err := host.WriteKnob(t.Context(), *matched(t, host, "/p"), tt.knob, "0")
			if !errors.Is(err, tt.kind) || !errors.Is(err, tt.errno) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v; want %v, %v and %q", err, tt.kind, tt.errno, tt.says)
			}
			if len(k.writes) != 1 {
				t.Errorf("wrote %q: one write, never repeated", k.writes)
			}
		})
	}
}

func TestC46C48RecordedRefusals(t *testing.T) {
	host, _ := enforceable(t, "c46", faultsOf(t, "c46"))
	err := host.WriteKnob(t.Context(), *matched(t, host, "/nomad.slice/reserve.slice/job.scope"), memcg.KnobMems, "")
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("c46: %v", err)
	}
	host, _ = enforceable(t, "c48", faultsOf(t, "c48"))
	id := *matched(t, host, "/p/c")
	if err := host.WriteKnob(t.Context(), id, memcg.KnobMems, "1"); err != nil {
		t.Errorf("c48: %v", err)
	}
	own, parent, err := host.EffectiveMems(id)
	if err != nil || own.Has(1) || parent.Has(1) {
		t.Errorf("c48: effective %v in %v, %v; want node 1 not granted", own, parent, err)
	}
}

// flagSpy notes the flags with which files are opened for writing.
type flagSpy struct {
	kernel
	flags map[string]int
}

func (k *flagSpy) open(dir int, name string, flags int, how resolve) (int, error) {
	if flags&unix.O_ACCMODE == unix.O_WRONLY {
		k.flags[name] = flags
	}
	return k.kernel.open(dir, name, flags, how)
}

func TestC43OnlyMemoryHighIsOpenedSoThatNobodyWaits(t *testing.T) {
	host, k := enforceable(t, "", nil, knobFiles()...)
	spy := &flagSpy{kernel: k, flags: map[string]int{}}
	host.k = spy
	id := *matched(t, host, "/p")
	for _, knob := range []memcg.Knob{memcg.KnobHigh, memcg.KnobSwapMax, memcg.KnobMems} {
		if err := host.WriteKnob(t.Context(), id, knob, "0"); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"memory.high": unix.O_NONBLOCK, "memory.swap.max": 0, "cpuset.mems": 0} {
		if got, ok := spy.flags[name]; !ok || got&unix.O_NONBLOCK != want {
			t.Errorf("%s was opened with %#x, %v", name, got, ok)
		}
	}
}

func TestTheBootIDIsReadOrSaidToBeMissing(t *testing.T) {
	const file = "proc/sys/kernel/random/boot_id"
	for _, tt := range []struct {
		name, content, want string
		kind                error
	}{
		{name: "as the kernel prints it", content: "8f0d5b2e-3a52-4d8e-9d7c-2f6a1b0c9e4d\n", want: "8f0d5b2e-3a52-4d8e-9d7c-2f6a1b0c9e4d"},
		{name: "empty", content: "\n", kind: memcg.ErrInvalid},
		{name: "two lines", content: "a\nb\n", kind: memcg.ErrInvalid},
		{name: "no such file", kind: memcg.ErrUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := onCgroup2("/agent")
			if tt.content != "" {
				files = append(files, file, tt.content)
			}
			host := openHost(t, fixtureCopy(t, "", files...))
			got, err := host.BootID()
			if got != tt.want || !errors.Is(err, tt.kind) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
