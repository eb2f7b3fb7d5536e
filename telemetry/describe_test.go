package telemetry

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

func TestDescribe(t *testing.T) {
	base := func() Record {
		return Record{
			Verdict: "idle", Rule: "squeeze-tmo", Current: memcg.Value(512 << 20), Elapsed: 2 * time.Second,
			RefaultAnon: memcg.Value(10), RefaultFile: memcg.Value(30), Stall: memcg.Value(1000),
		}
	}
	for name, c := range map[string]struct {
		change func(*Record)
		want   string
	}{
		"nothing is wanted": {
			func(*Record) {},
			"idle at 512 MiB, 20 refaults/s, stalled 0.05%: leave it alone (squeeze-tmo)",
		},
		"a request was handed out": {
			func(r *Record) { r.Want, r.Acted = 5<<20, true },
			"idle at 512 MiB, 20 refaults/s, stalled 0.05%: reclaim 5 MiB (squeeze-tmo)",
		},
		"a wish was held back": {
			func(r *Record) { r.Want, r.Held = 5<<20, "observe mode" },
			"idle at 512 MiB, 20 refaults/s, stalled 0.05%: would reclaim 5 MiB (squeeze-tmo); held back: observe mode",
		},
		"a bound clipped it": {
			func(r *Record) {
				r.Want, r.Acted, r.Clipped, r.Swappiness = 1<<20, true, "floor", memcg.SwappinessOf(0)
			},
			"idle at 512 MiB, 20 refaults/s, stalled 0.05%: reclaim 1 MiB with swappiness 0 (squeeze-tmo, clipped by floor)",
		},
		"absent figures are left out, not zero": {
			func(r *Record) {
				r.RefaultAnon, r.RefaultFile, r.Stall = memcg.Absent(memcg.Unsupported), memcg.Field{}, memcg.Field{}
				r.Current = memcg.Absent(memcg.Unsupported)
			},
			"idle at an unknown size (unsupported): leave it alone (squeeze-tmo)",
		},
		"what was lacking is named": {
			func(r *Record) {
				r.Verdict, r.Rule = "unknown", "missing-counters"
				for _, name := range []string{"pgsteal", "anon", "file", "inactive_file"} {
					r.Because = append(r.Because, memcg.Term{Name: name})
				}
			},
			"unknown at 512 MiB, 20 refaults/s, stalled 0.05%: leave it alone (missing-counters: no pgsteal, anon, file and more)",
		},
		"a first sample has no rates": {
			func(r *Record) { r.Elapsed = 0 },
			"idle at 512 MiB: leave it alone (squeeze-tmo)",
		},
		"an outcome is told": {
			func(r *Record) {
				r.Done = &memcg.Outcome{
					Request: memcg.Reclaim{Bytes: 8 << 20}, Reclaimed: memcg.Value(6 << 20), SwapOut: memcg.Value(2 << 20),
					Demoted: memcg.Value(1 << 20), Took: 42 * time.Millisecond, Err: fmt.Errorf("x: %w", memcg.ErrPartial),
				}
			},
			"idle at 512 MiB, 20 refaults/s, stalled 0.05%: leave it alone (squeeze-tmo); the request before took 6 MiB of 8 MiB, " +
				"2 MiB of it to swap, 1 MiB only moved to a slower node in 42ms (the kernel found no more)",
		},
		"a cgroup that is gone": {
			func(r *Record) { r.Err = fmt.Errorf("read: %w", memcg.ErrGone) },
			"the cgroup is gone",
		},
		"a cgroup that cannot be read": {
			func(r *Record) { r.Err = errors.New("open /a/memory.stat: denied") },
			"could not be read: open /a/memory.stat: denied",
		},
	} {
		r := base()
		c.change(&r)
		if got := r.Describe(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for in, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 20: "1 MiB", 1<<20 - 1: "1 MiB",
		1234567890: "1.15 GiB", 999 << 20: "999 MiB", 1023 << 20: "0.999 GiB", math.MaxUint64: "16 EiB",
	} {
		if got := Bytes(in); got != want {
			t.Errorf("%d: got %q, want %q", in, got, want)
		}
	}
}

func TestPercentShowsNoNumberWhereThereIsNone(t *testing.T) {
	for in, want := range map[float64]string{0: "0%", 0.00123: "0.123%", 1: "100%", 0.0999: "9.99%"} {
		if got := Percent(in); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
	if got := Percent(math.NaN()); got != "?%" {
		t.Errorf("NaN: got %q", got)
	}
}

func TestC19NamesAreShownWholeAndCannotBreakALine(t *testing.T) {
	for in, want := range map[string]string{
		"/system.slice/a:b.service":      "/system.slice/a:b.service",
		`/machine-qemu\x2d1.scope`:       `/machine-qemu\x2d1.scope`,
		"/odd/ümlaut":                    "/odd/ümlaut",
		"/my vm":                         `"/my vm"`,
		"/bad\x1b[31m":                   `"/bad\x1b[31m"`,
		"/not\xffutf8":                   `"/not\xffutf8"`,
		"/odd/-leading-dash/[glob]*?nam": "/odd/-leading-dash/[glob]*?nam",
	} {
		if got := Name(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
