package cgroupfs

import (
	"os"
	"testing"

	"github.com/memagent/memagent/sim/hosttest"
)

// TestKnobHostConformsOnARealKernel holds the knobs of the real host to the
// same suite as those of the simulated one.
func TestKnobHostConformsOnARealKernel(t *testing.T) {
	needGuest(t)
	hosttest.RunKnobs(t, func(t *testing.T) hosttest.KnobBench {
		open := func(opts ...Option) *FS {
			fs, err := Open("/", opts...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(fs.Close)
			return fs
		}
		host := open()
		return hosttest.KnobBench{
			Knobs: host, Observer: open(ReadOnly()),
			Bench: hosttest.Bench{
				Host: host, Busy: "/app", Fresh: "/fresh",
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
			},
		}
	})
}

func TestBootIDConformsOnARealKernel(t *testing.T) {
	needGuest(t)
	host := openHost(t, "/", ReadOnly())
	first, err := host.BootID()
	if second, again := host.BootID(); err != nil || again != nil || first != second || len(first) != 36 {
		t.Errorf("%q, %v; then %q, %v", first, err, second, again)
	}
}
