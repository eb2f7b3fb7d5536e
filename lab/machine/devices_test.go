package machine

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/topology"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestArgsOfEveryTopologyAreTheGoldenOnes(t *testing.T) {
	for _, name := range topology.Names() {
		t.Run(name, func(t *testing.T) {
			top, err := topology.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			args := Args([]Device{
				Base{TCG}, NUMA{top},
				Boot{Image: "/cache/vmlinuz", Initramfs: "/tmp/ird", GuestEnv: "GUEST"},
				Console{Log: "/tmp/console"}, Results{Path: "/dev/fd/3"},
				Disk{Image: "/cache/a,b.img", BytesPerSecond: 1 << 20, IOPS: 100},
			})
			// An option and its value share a line.
			got := strings.ReplaceAll(strings.Join(args, "\n"), "\n-", "\x00-")
			got = strings.ReplaceAll(strings.ReplaceAll(got, "\n", " "), "\x00", "\n") + "\n"
			file := filepath.Join("testdata", name+".args")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("run go test -update to accept:\n%s", d)
			}
		})
	}
}

func TestBaseUsesRealCPUsWithKVM(t *testing.T) {
	got := strings.Join(Base{KVM}.QEMU(), " ")
	if !strings.Contains(got, "-accel kvm -cpu host") {
		t.Errorf("got %s", got)
	}
}

func TestBaseCountsInstructionsWhereAsked(t *testing.T) {
	got := strings.Join(Base{Counted}.QEMU(), " ")
	if !strings.Contains(got, "-accel tcg,thread=single -icount shift=2 ") {
		t.Errorf("got %s", got)
	}
}

func TestConsoleWithoutALogIsTheTerminal(t *testing.T) {
	got := strings.Join(Console{}.QEMU(), " ")
	if !strings.Contains(got, "stdio") || !strings.Contains(got, "signal=off") {
		t.Errorf("got %s", got)
	}
}

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		n          int
		want       []string
	}{
		{"the last lines are kept", "a\nb\nc\n", 2, []string{"b", "c"}},
		{"fewer lines are all kept", "a\r\nb", 30, []string{"a", "b"}},
		{"what firmware draws with is removed", "\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS\x07\n\n  \n[    1.0] Kernel panic\n", 30, []string{"SeaBIOS", "[    1.0] Kernel panic"}},
		{"an empty console is empty", "\n\n", 30, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Tail(tc.text, tc.n)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTailFileSaysWhyThereIsNothing(t *testing.T) {
	got := TailFile(filepath.Join(t.TempDir(), "none"), 3)
	if len(got) != 1 || !strings.Contains(got[0], "cannot be read") {
		t.Errorf("got %q", got)
	}
}

func TestParseSchedstat(t *testing.T) {
	if u, ok := parseSchedstat("1500000 2500000 7\n"); !ok || u.Ran.Microseconds() != 1500 || u.Waited.Microseconds() != 2500 {
		t.Errorf("got %+v, %v", u, ok)
	}
	for _, bad := range []string{"", "1", "a b c"} {
		if _, ok := parseSchedstat(bad); ok {
			t.Errorf("%q was understood", bad)
		}
	}
}

func TestWhatASystemIsToldFitsAKernelsCommandLine(t *testing.T) {
	const room, most = 512, 2048 // characters: for the other devices, and in all
	if n := len(strings.Join(System{}.Kernel(), " ")); n > most-room {
		t.Errorf("%d characters", n)
	}
}
