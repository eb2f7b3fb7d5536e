package cgroupfs

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// enforceable opens a copy of a fixture as if it were a real cgroup2 mount, in
// which writes go to the fault layer alone.
func enforceable(t testing.TB, id string, faults []fault, extra ...string) (*FS, *faulty) {
	t.Helper()
	root := fixtureCopy(t, id, append(extra,
		"sys/fs/cgroup/cgroup.controllers", "memory\n",
		"proc/self/mountinfo", "26 1 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"proc/self/cgroup", "0::/system.slice/memagent.service\n",
		"sys/fs/cgroup/system.slice/memagent.service/cgroup.procs", strconv.Itoa(os.Getpid())+"\n")...)
	k := withFaults(t, root, faults)
	k.cgroup2 = true
	host := openHost(t, root, withKernel(k))
	if err := host.Enforceable(); err != nil {
		t.Fatal(err)
	}
	return host, k
}

func TestC30SwappinessIsProbedWithARequestForNothing(t *testing.T) {
	var files []string
	for _, c := range []string{"p", "q", "r"} {
		files = append(files, "sys/fs/cgroup/"+c+"/memory.current", "4096\n", "sys/fs/cgroup/"+c+"/memory.reclaim", "")
	}
	faults := append(faultsOf(t, "c30"), fault{op: "write", path: "sys/fs/cgroup/busy/memory.reclaim", errno: unix.EAGAIN})
	files = append(files, "sys/fs/cgroup/busy/memory.current", "4096\n", "sys/fs/cgroup/busy/memory.reclaim", "")
	for _, tt := range []struct {
		name, cgroup    string
		swappiness, max CapState
		err             error
	}{
		{"a kernel that takes an amount alone", "p", CapNo, CapNo, nil},
		{"a kernel that takes 0 to 200", "q", CapYes, CapNo, nil},
		{"a kernel that takes max", "r", CapYes, CapYes, nil},
		{"an answer that says nothing", "busy", CapUnknown, CapUnknown, memcg.ErrPartial},
		{"a cgroup that has gone", "gone", CapUnknown, CapUnknown, memcg.ErrGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", faults, files...)
			in := &memcg.ID{Path: "/gone", Inode: 1}
			if tt.cgroup != "gone" {
				in = matched(t, host, "/"+tt.cgroup)
			}
			caps := ask(t, host, in)
			caps[CapReclaimSwappiness].want(t, tt.swappiness, "0 swappiness=60")
			caps[CapReclaimSwappinessMax].want(t, tt.max, "0 swappiness=max")
			for _, c := range []string{CapReclaimSwappiness, CapReclaimSwappinessMax} {
				if !errors.Is(caps[c].Err, tt.err) {
					t.Errorf("%s: %v, want %v", c, caps[c].Err, tt.err)
				}
			}
			want := []string{"sys/fs/cgroup/" + tt.cgroup + "/memory.reclaim 0 swappiness=60", "sys/fs/cgroup/" + tt.cgroup + "/memory.reclaim 0 swappiness=max"}
			if tt.cgroup == "gone" {
				want = nil
			}
			if d := cmp.Diff(want, k.writes); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
			if host.Writes() != uint64(len(want)) {
				t.Errorf("%d writes counted", host.Writes())
			}
		})
	}
}

func TestProbesWriteOnlyWhereTheyMay(t *testing.T) {
	files := []string{"sys/fs/cgroup/p/memory.current", "1\n", "sys/fs/cgroup/p/memory.reclaim", "",
		"sys/fs/cgroup/memory.reclaim", "", "sys/fs/cgroup/system.slice/memagent.service/memory.reclaim", "",
		"sys/fs/cgroup/system.slice/memory.reclaim", "", "proc/sys/kernel/osrelease", "6.12.1-generic\n"}
	for _, tt := range []struct {
		name, in string
		opts     []Option
		state    CapState
		seen     string
	}{
		{name: "not without a matched cgroup", state: CapNotAsked, seen: "expected to work, not tried: release 6.12.1-generic"},
		{name: "not when observing", in: "/p", opts: []Option{ReadOnly()}, state: CapNotAsked, seen: "observing"},
		{name: "not the root", in: "/", state: CapUnknown},
		{name: "not the agent's own cgroup", in: "/system.slice/memagent.service", state: CapUnknown},
		{name: "not above the agent's own cgroup", in: "/system.slice", state: CapUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host, k := enforceable(t, "", nil, files...)
			for _, o := range tt.opts {
				o(host)
			}
			var in *memcg.ID
			if tt.in != "" {
				in = matched(t, host, tt.in)
			}
			caps := ask(t, host, in)
			caps[CapReclaimSwappiness].want(t, tt.state, tt.seen)
			caps[CapReclaimSwappinessMax].want(t, tt.state, "")
			if len(k.writes) > 0 || host.Writes() != 0 {
				t.Errorf("wrote %q", k.writes)
			}
			if err := caps[CapReclaimSwappiness].Err; tt.state == CapUnknown && !errors.Is(err, memcg.ErrDenied) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestC32NodesAreNeverAskedForAndDemotionIsSeen(t *testing.T) {
	host, k := enforceable(t, "c32", faultsOf(t, "c32"), "sys/fs/cgroup/p/memory.current", "1\n", "sys/fs/cgroup/p/memory.reclaim", "")
	caps := ask(t, host, matched(t, host, "/p"))
	caps[CapDemotion].want(t, CapYes, "demotion_enabled: true; on hosts with slower memory")
	caps[CapReclaimSwappiness].want(t, CapYes, "")
	for _, w := range k.writes {
		if strings.Contains(w, "nodes=") {
			t.Errorf("wrote %q", w)
		}
	}
}
