package cgroupfs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

func TestAMonitorPagesOutWindowAfterWindow(t *testing.T) {
	for _, tt := range []struct {
		name    string
		newer   bool
		filters string
	}{{"6.12", false, "filters/"}, {"7.3", true, "ops_filters/"}} {
		t.Run(tt.name, func(t *testing.T) {
			k := newDAMON(t, tt.newer)
			fs := k.host()
			o := k.runOn(fs, memcg.Reclaim{Bytes: 8 * mib, Swappiness: memcg.SwappinessOf(100)})
			if o.Err != nil || o.Via != memcg.ViaDAMON || !errors.Is(o.Refused, memcg.ErrUnsupported) || !strings.Contains(o.Refused.Error(), "switched off") {
				t.Errorf("outcome %+v", o)
			}
			// Half of 8, then half of the 4 that are left, then quarters of the request.
			if shrunk, _ := o.Shrunk.Get(); shrunk < 8*mib || shrunk > 10*mib || o.Asked != 8*mib || uint64(o.Writes) != fs.Writes() || o.Writes != len(k.writes) {
				t.Errorf("outcome %+v after %d writes", o, len(k.writes))
			}
			start := uint64(4 * blockBytes)
			for i, w := range k.runs {
				if w.start != start {
					t.Errorf("window %d begins at %d, not at %d", i, w.start, start)
				}
				start = w.end
			}
			if k.waits != len(k.runs) {
				t.Errorf("%d waits for %d windows", k.waits, len(k.runs))
			}
			first := "schemes/0/" + tt.filters + "0/"
			for file, want := range map[string]string{"operations": "paddr", "schemes/0/action": "pageout", "schemes/nr_schemes": "1",
				"schemes/0/" + tt.filters + "nr_filters": "1", first + "type": "memcg", first + "matching": "N", first + "memcg_path": "/p"} {
				if got := k.written(file); got != want {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
			if got := k.written(first + "allow"); (got == "N") != tt.newer {
				t.Errorf("allow is %q", got)
			}
			k.cleared()

			k.runs = nil
			if k.runOn(fs, memcg.Reclaim{Bytes: mib}); k.runs[0].start != start {
				t.Errorf("the next request begins at %d, not where the last ended, %d", k.runs[0].start, start)
			}
		})
	}
}

func TestAMonitorKeepsToTheKindASwappinessAsksFor(t *testing.T) {
	noSwap := []string{"proc/meminfo", "MemTotal: 1000000 kB\nSwapFree: 0 kB\n"}
	for _, tt := range []struct {
		name       string
		swappiness int
		files      []string
		matching   string // of the filter for anon, "" when there is none
		text       string // of the error
	}{
		{"0", 0, nil, "Y", ""}, {"1", 1, nil, "Y", ""}, {"2", 2, nil, "", ""}, {"199", 199, nil, "", ""}, {"200", 200, nil, "N", ""}, {"max", 201, nil, "N", ""},
		{"100 without swap", 100, noSwap, "Y", ""}, {"max without swap", 201, noSwap, "", "swap has no room"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newDAMON(t, false, tt.files...)
			o := k.runOn(k.host(), memcg.Reclaim{Bytes: mib, Swappiness: memcg.SwappinessOf(tt.swappiness)})
			if got := k.written("schemes/0/filters/1/matching"); got != tt.matching || tt.matching != "" && k.written("schemes/0/filters/1/type") != "anon" {
				t.Errorf("anon is matched %q, want %q", got, tt.matching)
			}
			if tt.text == "" && o.Err != nil || tt.text != "" && (!strings.Contains(o.Err.Error(), tt.text) || len(k.writes) != 0) {
				t.Errorf("writes %q, err %v", k.writes, o.Err)
			}
			k.cleared()
		})
	}
}

func TestEachCgroupBelowHasASchemeUnlessItIsProtected(t *testing.T) {
	k := newDAMON(t, false, "sys/fs/cgroup/p/a/memory.current", fmt.Sprintln(40*mib), "sys/fs/cgroup/p/b/memory.current", fmt.Sprintln(8*mib),
		"sys/fs/cgroup/p/b/memory.low", "max\n", "sys/fs/cgroup/p/c/memory.current", "0\n", "sys/fs/cgroup/q/memory.current", fmt.Sprintln(99*mib))
	if o := k.runOn(k.host(), memcg.Reclaim{Bytes: mib}); o.Err != nil {
		t.Error(o.Err)
	}
	if n, a, p := k.written("schemes/nr_schemes"), k.written("schemes/0/filters/0/memcg_path"), k.written("schemes/1/filters/0/memcg_path"); n != "2" || a != "/p/a" || p != "/p" {
		t.Errorf("%s schemes, for %q and %q", n, a, p)
	}
}

func TestAMonitorIsPolite(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		text string
	}{
		{"somebody has monitors", damonCount + "\n2\n", "in use by somebody else"},
		{"damon_stat runs", "sys/module/damon_stat/parameters/enabled\nY\n", "in use by damon_stat"},
		{"damon_reclaim runs", "sys/module/damon_reclaim/parameters/enabled\nY\n", "in use by damon_reclaim"},
		{"damon_lru_sort runs", "sys/module/damon_lru_sort/parameters/enabled\nY\n", "in use by damon_lru_sort"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newDAMON(t, false)
			name, value, _ := strings.Cut(tt.file, "\n")
			k.set(name, value)
			o := k.runOn(k.host(), memcg.Reclaim{Bytes: mib})
			if !errors.Is(o.Err, memcg.ErrUnsupported) || !errors.Is(o.Err, memcg.ErrDenied) || !strings.Contains(o.Err.Error(), tt.text) ||
				!strings.Contains(o.Err.Error(), "switched off") || len(k.writes) != 0 || o.Via != "" {
				t.Errorf("writes %q, outcome %+v", k.writes, o)
			}
		})
	}
	t.Run("it is not allowed", func(t *testing.T) {
		k := newDAMON(t, false)
		fs := mustOpen(t, k.root, withKernel(k))
		if o := k.runOn(fs, memcg.Reclaim{Bytes: mib}); !errors.Is(o.Err, memcg.ErrDenied) || !strings.Contains(o.Err.Error(), "configuration does not allow") || len(k.writes) != 0 {
			t.Errorf("writes %q, err %v", k.writes, o.Err)
		}
	})
	t.Run("an age cannot be asked of it", func(t *testing.T) {
		k := newDAMON(t, false)
		if o := k.runOn(k.host(), memcg.Reclaim{Bytes: mib, OlderThan: time.Minute}); !errors.Is(o.Err, memcg.ErrUnsupported) || len(k.writes) != 0 {
			t.Errorf("writes %q, err %v", k.writes, o.Err)
		}
	})
	t.Run("somebody came first", func(t *testing.T) {
		k := newDAMON(t, false)
		k.react = func(span) error { return unix.EBUSY }
		o := k.runOn(k.host(), memcg.Reclaim{Bytes: mib})
		if !errors.Is(o.Err, unix.EBUSY) || !strings.Contains(o.Err.Error(), "come first") || o.Asked != 0 || o.Via != "" {
			t.Errorf("outcome %+v", o)
		}
		k.cleared()
	})
}

func TestAMonitorIsTakenDownHoweverItEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults []fault
		react  func(k *damonKernel, cancel func()) func(span) error
		r      memcg.Reclaim
		kind   error
		text   string
	}{
		{"enough is gone", nil, nil, memcg.Reclaim{Bytes: mib}, nil, ""},
		{"time is up", nil, func(k *damonKernel, _ func()) func(span) error {
			return func(span) error { k.now = k.now.Add(time.Second); return nil }
		}, memcg.Reclaim{Bytes: mib, Deadline: time.Second}, memcg.ErrPartial, "out of time"},
		{"its context ends", nil, func(k *damonKernel, cancel func()) func(span) error {
			return func(span) error { cancel(); return nil }
		}, memcg.Reclaim{Bytes: mib}, context.Canceled, "canceled"},
		{"all is in use", nil, func(k *damonKernel, _ func()) func(span) error { return func(span) error { return nil } },
			memcg.Reclaim{Bytes: 32 * mib, Deadline: time.Hour}, memcg.ErrPartial, "was in use"},
		{"the floor", nil, nil, memcg.Reclaim{Bytes: 16 * mib, Floor: 60 * mib, Deadline: time.Hour}, memcg.ErrPartial, "down to the floor"},
		{"nobody is left", nil, func(k *damonKernel, _ func()) func(span) error {
			return func(span) error { k.set("sys/fs/cgroup/p/cgroup.events", "populated 0\n"); return nil }
		}, memcg.Reclaim{Bytes: mib}, memcg.ErrPartial, "nobody is left"},
		{"no filter for cgroups", []fault{{op: "write", path: damonContext + "schemes/0/filters/0/type", errno: unix.EINVAL}}, nil,
			memcg.Reclaim{Bytes: mib}, memcg.ErrInvalid, "type"},
		{"a path that is not taken", []fault{{op: "read", path: damonContext + "schemes/0/filters/0/memcg_path", errno: unix.EIO}}, nil,
			memcg.Reclaim{Bytes: mib}, unix.EIO, "memcg_path"},
		{"no paddr", []fault{{op: "write", path: damonContext + "operations", errno: unix.EINVAL}}, nil, memcg.Reclaim{Bytes: mib}, memcg.ErrInvalid, "operations"},
		{"locked", []fault{{op: "write", path: damonAdmin + "/0/contexts/nr_contexts", errno: unix.EACCES}}, nil, memcg.Reclaim{Bytes: mib}, memcg.ErrDenied, "nr_contexts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newDAMON(t, false)
			k.faults = tt.faults
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.react != nil {
				k.react = tt.react(k, cancel)
			}
			fs := k.host()
			tt.r.Cgroup, tt.r.Nodes = idOf(t, fs, "/p"), memcg.NodesOf(8)
			o := fs.Reclaim(ctx, tt.r)
			if !errors.Is(o.Err, tt.kind) || (o.Err == nil) != (tt.kind == nil) || tt.kind != nil && !strings.Contains(o.Err.Error(), tt.text) {
				t.Errorf("err = %v, want %q", o.Err, tt.text)
			}
			if k.current < tt.r.Floor {
				t.Errorf("%d bytes are left, the floor is %d", k.current, tt.r.Floor)
			}
			k.cleared()
		})
	}
	t.Run("a filter that reads back differently", func(t *testing.T) {
		k := newDAMON(t, false)
		fs := k.host()
		fs.k = &forgetful{k, damonContext + "schemes/0/filters/0/matching"}
		if o := k.runOn(fs, memcg.Reclaim{Bytes: mib}); !errors.Is(o.Err, memcg.ErrInvalid) || len(k.runs) != 0 {
			t.Errorf("runs %v, err %v", k.runs, o.Err)
		}
		k.cleared()
	})
}

// forgetful takes writes to one file and keeps its value.
type forgetful struct {
	*damonKernel
	file string
}

func (k *forgetful) write(fd int, b []byte) (int, error) {
	if k.path(fd, "") == k.file {
		return len(b), nil
	}
	return k.damonKernel.write(fd, b)
}

func TestAMonitorThatWasLeftRunningIsEnded(t *testing.T) {
	const intervals = damonContext + "monitoring_attrs/intervals/"
	for _, tt := range []struct {
		name         string
		count        string
		sample, aggr int
		found        bool
	}{
		{"one of ours", "1\n", damonInterval, damonInterval, true}, {"somebody's", "1\n", 5000, 100000, false},
		{"ours among others", "2\n", damonInterval, damonInterval, false}, {"none", "0\n", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newDAMON(t, false)
			k.set(damonCount, tt.count)
			k.set(intervals+"sample_us", fmt.Sprintln(tt.sample))
			k.set(intervals+"aggr_us", fmt.Sprintln(tt.aggr))
			k.on = tt.found
			found, err := k.host().EndMonitor()
			if found != tt.found || err != nil || (len(k.writes) > 0) != tt.found {
				t.Errorf("found %v, err %v, writes %q", found, err, k.writes)
			}
			if tt.found {
				k.cleared()
			}
		})
	}
	k := newDAMON(t, false)
	if _, err := k.host(ReadOnly()).EndMonitor(); !errors.Is(err, memcg.ErrReadOnly) {
		t.Errorf("an observer: %v", err)
	}
}

func TestMemoryBlocksOfANodeAreItsOwn(t *testing.T) {
	block := func(node, n int) []string { return []string{fmt.Sprintf("%s/node%d/memory%d/x", nodeDir, node, n), ""} }
	files := []string{nodeDir + "/online", "0,8\n", memoryDir + "/block_size_bytes", "8000000\n", nodeDir + "/node8/memory_failure/x", "", nodeDir + "/node8/meminfo", ""}
	for _, b := range [][2]int{{0, 0}, {0, 1}, {0, 9}, {0, 5}, {8, 5}, {8, 4}, {8, 10}, {8, 11}} {
		files = append(files, block(b[0], b[1])...)
	}
	fs := hostOf(t, "", files...)
	for _, tt := range []struct {
		nodes []memcg.NodeID
		want  string
	}{
		{[]memcg.NodeID{0}, "[{0 268435456} {1207959552 1342177280}]"},
		{[]memcg.NodeID{8}, "[{536870912 671088640} {1342177280 1610612736}]"}, // 5 is shared
		{[]memcg.NodeID{0, 8}, "[{0 268435456} {536870912 805306368} {1207959552 1610612736}]"},
	} {
		if spans, err := fs.physicalMemory(memcg.NodesOf(tt.nodes...)); err != nil || fmt.Sprint(spans) != tt.want {
			t.Errorf("nodes %v: %v, %v, want %s", tt.nodes, spans, err, tt.want)
		}
	}
	if _, err := fs.physicalMemory(memcg.NodesOf(3)); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("a node without blocks: %v", err)
	}
	if _, err := hostOf(t, "", nodeDir+"/online", "0\n").physicalMemory(memcg.NodesOf(0)); !errors.Is(err, memcg.ErrUnsupported) {
		t.Errorf("a kernel without blocks: %v", err)
	}
}

func TestWindowsGoThroughAllRanges(t *testing.T) {
	spans := []span{{100, 200}, {300, 350}}
	at := uint64(0)
	var got []span
	for range 5 {
		w := window(spans, at, 60)
		got, at = append(got, w), w.end
	}
	if want := "[{100 160} {160 200} {300 350} {100 160} {160 200}]"; fmt.Sprint(got) != want {
		t.Errorf("windows %v, want %v", got, want)
	}
}
