package cgroupfs

import (
	"flag"
	"os"
	"testing"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/sim/hosttest"
)

// guest is set where this test binary runs in a guest of the lab, where a real
// kernel may be written to: memlab exec -- ./cgroupfs.test -test.run ConformsOnARealKernel -guest.
var guest = flag.Bool("guest", false, "run the tests that need a kernel of their own; only in a guest of the lab")

// needGuest skips a test that writes to a real cgroup tree.
func needGuest(t *testing.T) {
	t.Helper()
	if !*guest {
		t.Skip("needs a kernel of its own: make conform runs it in a guest of the lab")
	}
}

const cgroupMount = "/sys/fs/cgroup"

// TestConformsOnARealKernel holds the real host to the same suite as the
// simulated one.
func TestConformsOnARealKernel(t *testing.T) {
	needGuest(t)
	hosttest.Run(t, func(t *testing.T) hosttest.Bench {
		open := func(opts ...Option) *FS {
			fs, err := Open("/", opts...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(fs.Close)
			return fs
		}
		host := open()
		swappiness := false
		busy, err := host.Lookup("/app")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range host.Capabilities(t.Context(), &busy) {
			swappiness = swappiness || c.Name == CapReclaimSwappiness && c.State == CapYes
		}
		if bits, ok := lruBits(t, host).Get(); ok && bits&1 == 1 {
			swappiness = true // through lru_gen, where memory.reclaim takes none
		}
		return hosttest.Bench{
			Host: host, Observer: open(ReadOnly()), Busy: "/app", Fresh: "/fresh", Swappiness: swappiness,
			Make: func(t testing.TB, path string) {
				if err := os.Mkdir(cgroupMount+path, 0o755); err != nil {
					t.Fatal(err)
				}
			},
			Remove: func(t testing.TB, path string) {
				if err := os.Remove(cgroupMount + path); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func lruBits(t *testing.T, fs *FS) memcg.Field {
	t.Helper()
	var h memcg.HostSample
	if err := fs.HostSample(&h); err != nil {
		t.Fatal(err)
	}
	return h.LRUGen
}
