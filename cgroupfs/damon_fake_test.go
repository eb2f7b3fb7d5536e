package cgroupfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// blockBytes is the size of the fake's memory blocks.
const blockBytes = 128 << 20

// damonKernel is a host without lru_gen and with DAMON. A page-out frees half
// of what is left in a window: pages are spread evenly over the blocks 4 to 7,
// which are node 8's.
type damonKernel struct {
	*generations
	react func(w span) error // answers "on"; nil frees
	runs  []span
	on    bool
	waits int
}

func newDAMON(t testing.TB, newer bool, files ...string) *damonKernel {
	list := []string{
		lruGenEnabled, "0x0000\n", damonCount, "0\n", damonState, "off\n",
		nodeDir + "/online", "0,8\n", memoryDir + "/block_size_bytes", "8000000\n",
		damonAdmin + "/0/contexts/nr_contexts", "0\n", damonContext + "operations", "vaddr\n",
		damonContext + "targets/nr_targets", "0\n", damonContext + "targets/0/regions/nr_regions", "0\n", damonContext + "schemes/nr_schemes", "0\n",
		damonRegion + "start", "0\n", damonRegion + "end", "0\n",
	}
	for _, f := range []string{"intervals/sample_us", "intervals/aggr_us", "intervals/update_us", "nr_regions/min", "nr_regions/max"} {
		list = append(list, damonContext+"monitoring_attrs/"+f, "0\n")
	}
	filters := "filters/"
	if newer {
		filters = "ops_filters/"
	}
	for i := range 3 {
		dir := fmt.Sprintf("%sschemes/%d/", damonContext, i)
		for _, f := range []string{"action", "access_pattern/sz/min", "access_pattern/sz/max", "access_pattern/nr_accesses/min", "access_pattern/nr_accesses/max",
			"access_pattern/age/min", "access_pattern/age/max", "quotas/ms", "quotas/bytes", "quotas/reset_interval_ms", filters + "nr_filters"} {
			list = append(list, dir+f, "0\n")
		}
		for j := range 2 {
			for _, f := range []string{"type", "matching", "memcg_path"} {
				list = append(list, fmt.Sprintf("%s%s%d/%s", dir, filters, j, f), "\n")
			}
			if newer {
				list = append(list, fmt.Sprintf("%s%s%d/allow", dir, filters, j), "\n")
			}
		}
	}
	for i := range 8 {
		list = append(list, fmt.Sprintf("%s/node%d/memory%d/phys_index", nodeDir, i/4*8, i), "")
	}
	k := &damonKernel{generations: newGenerations(t, 64*mib, append(list, files...)...)}
	return k
}

func (k *damonKernel) write(fd int, b []byte) (int, error) {
	file := k.path(fd, "")
	if _, err := k.faulty.write(fd, b); err != nil {
		return -1, err
	}
	if !strings.HasPrefix(file, damonAdmin) {
		k.t.Errorf("%q is written to %s", b, file)
	}
	if file == damonState {
		if k.on == (string(b) == "on") {
			return -1, unix.EPERM
		}
		if string(b) == "on" {
			if err := k.switchOn(); err != nil {
				return -1, err
			}
		}
		k.on = string(b) == "on"
	}
	if file == damonCount && k.on {
		return -1, unix.EBUSY
	}
	k.set(file, string(b)+"\n")
	return len(b), nil
}

func (k *damonKernel) number(file string) uint64 {
	b, err := os.ReadFile(filepath.Join(k.root, file))
	if err != nil {
		k.t.Fatal(err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}

func (k *damonKernel) switchOn() error {
	w := span{k.number(damonRegion + "start"), k.number(damonRegion + "end")}
	k.runs = append(k.runs, w)
	if w.start < 4*blockBytes || w.end > 8*blockBytes || w.start >= w.end || w.end-w.start > k.current {
		k.t.Errorf("goes through %+v of node 8 with %d bytes in the cgroup", w, k.current)
	}
	if k.react != nil {
		return k.react(w)
	}
	k.take((w.end - w.start) / 2 / page)
	return nil
}

func (k *damonKernel) host(opts ...Option) *FS {
	wait := func(_ context.Context, d time.Duration) { k.waits++; k.now = k.now.Add(d) }
	return mustOpen(k.t, k.root, append([]Option{withKernel(k), withClock(func() time.Time { return k.now }), withWait(wait), AllowDAMON()}, opts...)...)
}

// runOn reclaims from /p on node 8.
func (k *damonKernel) runOn(fs *FS, r memcg.Reclaim) memcg.Outcome {
	k.t.Helper()
	r.Cgroup, r.Nodes = idOf(k.t, fs, "/p"), memcg.NodesOf(8)
	return fs.Reclaim(k.t.Context(), r)
}

// cleared checks that DAMON is as it was found.
func (k *damonKernel) cleared() {
	k.t.Helper()
	if n := k.number(damonCount); n != 0 || k.on {
		k.t.Errorf("%d monitors are left, on: %v", n, k.on)
	}
}

// written returns the last value that was written to a file below damonContext.
func (k *damonKernel) written(file string) (value string) {
	for _, w := range k.writes {
		if name, v, _ := strings.Cut(w, " "); name == damonContext+file {
			value = v
		}
	}
	return value
}
