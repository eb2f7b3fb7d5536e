package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memagent/memagent/lab/result"
)

// zipfRun is a short run with the same figures in every cell but one.
func zipfRun(agent string, rate, perCPU, swapins float64) result.Run {
	r := result.Run{Agent: agent, Facts: map[string]float64{}}
	sizes, params := zipfTable(true)
	for i, size := range sizes {
		for _, s := range params {
			c := zipfCell{s, size}
			r.Facts[c.key("rate")], r.Facts[c.key("per_cpu_second")], r.Facts[c.key("swapins_per_1000")] = 1000, 2000, 100*float64(i)
		}
	}
	c := zipfCell{0.7, 256}
	r.Facts[c.key("rate")], r.Facts[c.key("per_cpu_second")], r.Facts[c.key("swapins_per_1000")] = rate, perCPU, swapins
	return r
}

func TestCheckZipf(t *testing.T) {
	off := zipfRun("off", 1000, 2000, 100)
	for _, tc := range []struct {
		name string
		runs []result.Run
		want []string
	}{
		{"as fast as the kernel", []result.Run{off, zipfRun("on", 980, 1960, 102)},
			[]string{"accesses a second ok", "accesses a CPU second ok", "swap-ins ok"}},
		{"slower in one cell", []result.Run{off, zipfRun("on", 970, 1950, 103)},
			[]string{"accesses a second FAIL", "accesses a CPU second FAIL", "swap-ins FAIL"}},
		{"a cell that was not measured", []result.Run{off, func() result.Run {
			r := zipfRun("on", 1000, 2000, 100)
			delete(r.Facts, zipfCell{1.3, 256}.key("rate"))
			return r
		}()}, []string{"accesses a second FAIL", "accesses a CPU second ok", "swap-ins ok"}},
		{"without the agent there is nothing to check", []result.Run{off},
			[]string{"accesses a second skip", "accesses a CPU second skip", "swap-ins skip"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, verdicts(checkZipf(tc.runs))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheWorstCellIsNamed(t *testing.T) {
	c := checkZipf([]result.Run{zipfRun("off", 1000, 2000, 100), zipfRun("on", 500, 2000, 100)})[0]
	if c.Got != 0.5 || !strings.Contains(c.Want, "500 against 1000 at 256 MiB and s=0.7") {
		t.Errorf("got %+v", c)
	}
}

func TestTableZipf(t *testing.T) {
	got := tableZipf([]result.Run{zipfRun("off", 1000, 2000, 100), zipfRun("on", 1200, 2000, 100)})
	want := `       0.1       0.7       1.3
<128M>
      1000      1000      1000
      1000      1000      1000
      0.00      0.00      0.00
<256M>
      1000      1000      1000
      1000      1200      1000
      0.00      0.20      0.00
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
