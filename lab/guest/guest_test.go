package guest

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSwapHeaderIsWhatMkswapWrites(t *testing.T) {
	const page, size = 4096, 1 << 30
	h := SwapHeader(size, page)
	if len(h) != page {
		t.Fatalf("%d bytes, want a page", len(h))
	}
	if got := string(h[page-10:]); got != "SWAPSPACE2" {
		t.Errorf("signature %q", got)
	}
	if v := binary.LittleEndian.Uint32(h[1024:]); v != 1 {
		t.Errorf("version %d, want 1", v)
	}
	if last := binary.LittleEndian.Uint32(h[1028:]); last != size/page-1 {
		t.Errorf("last page %d, want %d", last, size/page-1)
	}
	if bad := binary.LittleEndian.Uint32(h[1032:]); bad != 0 {
		t.Errorf("%d bad pages, want none", bad)
	}
}

func TestTheMountTableKnowsItsFileSystems(t *testing.T) {
	known := map[string]bool{"proc": true, "sysfs": true, "devtmpfs": true, "devpts": true, "debugfs": true, "cgroup2": true, "tmpfs": true}
	seen := map[string]bool{}
	for _, m := range append(append([]mount(nil), systemMounts...), ownMounts...) {
		if !known[m.fstype] {
			t.Errorf("%s: no file system %q", m.target, m.fstype)
		}
		if seen[m.target] {
			t.Errorf("%s is mounted twice", m.target)
		}
		for parent := range seen {
			if strings.HasPrefix(parent, m.target+"/") {
				t.Errorf("%s hides %s, which was mounted before it", m.target, parent)
			}
		}
		seen[m.target] = true
	}
	for _, must := range []string{"/proc", "/sys", "/dev", CgroupRoot, "/sys/kernel/debug"} {
		if !seen[must] {
			t.Errorf("%s is not mounted", must)
		}
	}
}

func TestAnOrdinaryProcessIsNoInit(t *testing.T) {
	t.Setenv("MEMLAB_GUEST", "1")
	if os.Getpid() != 1 && IsInit() {
		t.Error("a process with another id than 1 took itself for a guest's init")
	}
}

func TestParseAgentLine(t *testing.T) {
	for _, tc := range []struct {
		name, line string
		decision   string // the text of the decision, if it is one
		reclaimed  uint64
		summary    *Summary
	}{
		{"a decision, with fields nobody asked for",
			`{"level":"info","tick":3,"cgroup":"/app","text":"squeeze 4 MiB","want":4194304,"because":[{"name":"x"}],"outcome":{"reclaimed":4096,"took_us":7},"message":"decision"}`,
			"squeeze 4 MiB", 4096, nil},
		{"an outcome nobody could measure", `{"message":"decision","text":"t","outcome":{"reclaimed":null}}`, "t", 0, nil},
		{"the summary", `{"message":"summary","cpu_ms":12,"rss_kib":9000,"decisions":5,"actions":4,"reclaimed_bytes":4096,"writes":4,"cgroups":2}`, "", 0,
			&Summary{CPUMS: 12, RSSKiB: 9000, Decisions: 5, Actions: 4, ReclaimedBytes: 4096, Writes: 4}},
		{"another message", `{"message":"started"}`, "", 0, nil},
		{"no JSON", `panic: oh`, "", 0, nil},
		{"a decision of another form", `{"message":"decision","tick":"three"}`, "", 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, s := ParseAgentLine([]byte(tc.line))
			text, reclaimed := "", uint64(0)
			if d != nil {
				text = d.Text
				if d.Outcome != nil && d.Outcome.Reclaimed != nil {
					reclaimed = *d.Outcome.Reclaimed
				}
			}
			if text != tc.decision || reclaimed != tc.reclaimed {
				t.Errorf("decision %q, reclaimed %d", text, reclaimed)
			}
			if diff := cmp.Diff(tc.summary, s); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKnobsSince(t *testing.T) {
	before := Knobs{"/c/a/memory.high": "max\n", "/c/a/memory.low": "0\n"}
	for _, tc := range []struct {
		name string
		now  Knobs
		want []string
	}{
		{"nothing changed", Knobs{"/c/a/memory.high": "max\n", "/c/a/memory.low": "0\n"}, nil},
		{"a value changed", Knobs{"/c/a/memory.high": "4096\n", "/c/a/memory.low": "0\n"}, []string{`/c/a/memory.high was "max\n" and is "4096\n"`}},
		{"a file went", Knobs{"/c/a/memory.high": "max\n"}, []string{`/c/a/memory.low is gone, it was "0\n"`}},
		{"a file came", Knobs{"/c/a/memory.high": "max\n", "/c/a/memory.low": "0\n", "/c/b/x": "1"}, []string{`/c/b/x is new, with "1"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, tc.now.Since(before)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	tl := &tail{}
	for range 3 {
		if _, err := tl.Write([]byte(strings.Repeat("a", tailBytes))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tl.Write([]byte("the end\n")); err != nil {
		t.Fatal(err)
	}
	if got := tl.String(); len(got) > tailBytes || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-10:])
	}
}
