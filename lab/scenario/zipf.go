package scenario

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The zipf scenario: memory of half to twice a limit is read at random, some of it more often than
// the rest, as in the tables of the workingset series for anon ("workingset protection/detection on
// the anonymous LRU list", 2020). The kernel is good at this; the agent must not be in its way.
const (
	zipfLimit  = 128 * mib
	zipfCgroup = "/zipf"
	// zipfWarm passes before counting: what the set-up left behind must not count.
	zipfWarm    = 3 * time.Second
	zipfLong    = 10 * time.Second
	zipfShort   = 5 * time.Second
	zipfLeast   = 0.98 // of off, in each cell
	zipfSampled = 500 * time.Millisecond
	zipfPerPass = 500 // accesses in a pass of the workload
	// zipfSwaps is how many swap-ins in 1000 accesses it takes for them to be what decides.
	zipfSwaps = 10
)

// zipfCell is a cell of the table.
type zipfCell struct {
	s    float64
	size int64 // MiB
}

func (c zipfCell) key(what string) string { return fmt.Sprintf("%s_%dM_%.1f", what, c.size, c.s) }

// zipfTable is the sizes and parameters of a form, in MiB.
func zipfTable(short bool) (sizes []int64, params []float64) {
	if short {
		return []int64{128, 256}, []float64{0.1, 0.7, 1.3}
	}
	return []int64{64, 96, 128, 160, 192, 256}, []float64{0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3}
}

var zipf = Scenario{
	Name:     "zipf",
	About:    "memory of half to twice a limit, read at random by zipf: never slower than the kernel alone",
	Law:      "memagent",
	Topology: oneNode,
	Counted:  true,
	Within: func(short bool) time.Duration {
		sizes, params := zipfTable(short)
		return time.Duration(len(sizes)*len(params))*(zipfWarm+zipfTime(short)+zipfWarm) + 3*setUpWithin
	},
	Run:    runZipf,
	Checks: checkZipf,
	Table:  tableZipf,
}

func zipfTime(short bool) time.Duration {
	return form(short, zipfShort, zipfLong)
}

// zipfConfig is the agent's configuration, with as little headroom as an operator would give a
// program that is short of memory. Swap is in memory here, so that its budget may bound nothing.
func zipfConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
host:
  swap:
    write_budget: 1GiB/s
policies:
  - name: zipf
    match:
      - path: %s
    law: %s
    swappiness: {auto: {base: 60, min: 0, max: 200}}
    headroom: 2%%
`, zipfCgroup, law)
}

func runZipf(ctx context.Context, g *guest.Guest) (result.Run, error) {
	run := result.Run{Facts: map[string]float64{}}
	app, err := guest.NewCgroup(zipfCgroup)
	if err != nil {
		return run, err
	}
	if err := app.Set("memory.max", fmt.Sprint(zipfLimit)); err != nil {
		return run, err
	}
	agent, err := accompany(ctx, g, zipfConfig(law(g, "memagent")), app)
	if err != nil {
		return run, err
	}
	defer agent.end()
	start := time.Now()
	sizes, params := zipfTable(g.Spec.Short)
	for _, size := range sizes {
		for _, s := range params {
			if err := zipfMeasure(ctx, g, app, agent, &run, zipfCell{s, size}); err != nil {
				return run, err
			}
		}
	}
	run.ElapsedMS = time.Since(start).Milliseconds()
	return run, agent.finish(&run, start, app)
}

// zipfMeasure measures one cell.
func zipfMeasure(ctx context.Context, g *guest.Guest, app guest.Cgroup, agent companion, run *result.Run, cell zipfCell) error {
	p, err := app.Settle(setUpWithin, "zipf", "--size", fmt.Sprint(cell.size*mib), "--s", fmt.Sprint(cell.s))
	if err != nil {
		return err
	}
	defer p.Stop()
	if _, err := watch(ctx, app, zipfWarm, func() error { return agent.alive(p) }); err != nil {
		return err
	}
	first, cpu := p.Count(), time.Duration(0)
	if cpu, err = cpuTime(app); err != nil {
		return err
	}
	begun := time.Now()
	w, err := follow(ctx, app, zipfSampled, func(counters.Snapshot) (bool, error) {
		return time.Since(begun) >= zipfTime(g.Spec.Short), agent.alive(p)
	})
	if err != nil {
		return err
	}
	used, err := cpuTime(app)
	if err != nil {
		return err
	}
	accesses := float64(p.Count()-first) * zipfPerPass
	c := w.after.Since(w.before)
	run.Counters = sum(run.Counters, c)
	run.Facts[cell.key("rate")] = accesses / w.elapsed.Seconds()
	run.Facts[cell.key("per_cpu_second")] = accesses / (used - cpu).Seconds()
	run.Facts[cell.key("swapins_per_1000")] = 1000 * float64(c.SwapIn) / accesses
	g.Logf("%d MiB, s=%.1f: %.0f accesses a second, %.0f a CPU second, %.0f swap-ins in 1000", cell.size, cell.s,
		run.Facts[cell.key("rate")], run.Facts[cell.key("per_cpu_second")], run.Facts[cell.key("swapins_per_1000")])
	return nil
}

// cpuTime is the CPU time a cgroup has used.
func cpuTime(c guest.Cgroup) (time.Duration, error) {
	text, err := c.Get("cpu.stat")
	return time.Duration(counters.ParseFlat(text)["usage_usec"]) * time.Microsecond, err
}

// zipfFacts is a table of what was measured, by cell.
func zipfFacts(runs []result.Run) (sizes []int64, params []float64) {
	sizes, params = zipfTable(false)
	if len(runs) > 0 && math.IsNaN(fact(zipfCell{params[1], sizes[0]}.key("rate"))(runs[0])) {
		return zipfTable(true)
	}
	return sizes, params
}

func checkZipf(runs []result.Run) []result.Check {
	on, off := result.Of(runs, "on"), result.Of(runs, "off")
	names := []string{"accesses a second", "accesses a CPU second", "swap-ins"}
	if len(on) == 0 || len(off) == 0 {
		var checks []result.Check
		for _, n := range names {
			checks = append(checks, result.Skip(n, needsBoth))
		}
		return checks
	}
	// worst finds the cell in which the agent does worst: the ratio with it to that without it is
	// lowest, or highest where sign is -1.
	worst := func(what string, sign float64, least float64) (ratio float64, words string) {
		ratio = math.NaN()
		sizes, params := zipfFacts(runs)
		for _, size := range sizes {
			for _, s := range params {
				cell := zipfCell{s, size}
				a, with := fact(cell.key(what)).of(on)
				b, without := fact(cell.key(what)).of(off)
				if b < least {
					continue
				}
				if math.IsNaN(ratio) || sign*a/b < sign*ratio || math.IsNaN(a/b) {
					ratio = a / b
					words = fmt.Sprintf(" of off in the worst cell; %s against %s at %d MiB and s=%.1f", with, without, size, s)
				}
			}
		}
		return ratio, words
	}
	rate, where := worst("rate", 1, 0)
	checks := []result.Check{result.AtLeast(names[0], rate, zipfLeast, where)}
	rate, where = worst("per_cpu_second", 1, 0)
	checks = append(checks, result.AtLeast(names[1], rate, zipfLeast, where))
	rate, where = worst("swapins_per_1000", -1, zipfSwaps)
	if where == "" {
		return append(checks, result.Skip(names[2], "without the agent no cell swapped enough to compare"))
	}
	return append(checks, result.AtMost(names[2], rate, 1/zipfLeast, where+", in 1000 accesses"))
}

// tableZipf is the table of the series: parameters across, and for each size the accesses a second
// without and with the agent, and what it made better.
func tableZipf(runs []result.Run) string {
	on, off := result.Of(runs, "on"), result.Of(runs, "off")
	if len(on) == 0 || len(off) == 0 {
		return ""
	}
	sizes, params := zipfFacts(runs)
	var b strings.Builder
	for _, s := range params {
		fmt.Fprintf(&b, "%10.1f", s)
	}
	b.WriteByte('\n')
	for _, size := range sizes {
		fmt.Fprintf(&b, "<%dM>\n", size)
		var rows [3]string
		for _, s := range params {
			cell := zipfCell{s, size}
			with, _ := fact(cell.key("rate")).of(on)
			without, _ := fact(cell.key("rate")).of(off)
			rows[0] += fmt.Sprintf("%10.0f", without)
			rows[1] += fmt.Sprintf("%10.0f", with)
			rows[2] += fmt.Sprintf("%10.2f", with/without-1)
		}
		b.WriteString(strings.Join(rows[:], "\n") + "\n")
	}
	return b.String()
}

func sum(a, b result.Counters) result.Counters {
	a.RefaultFile += b.RefaultFile
	a.RefaultAnon += b.RefaultAnon
	a.SwapIn += b.SwapIn
	a.SwapOut += b.SwapOut
	a.PgMajFault += b.PgMajFault
	a.PgScan += b.PgScan
	a.PgSteal += b.PgSteal
	a.PSISomeUS += b.PSISomeUS
	a.PSIFullUS += b.PSIFullUS
	return a
}
