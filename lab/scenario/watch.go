package scenario

import (
	"context"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// watched is a cgroup over the measured part of a run.
type watched struct {
	start               time.Time
	before, half, after counters.Snapshot
	elapsed, late       time.Duration // the whole, and the part after half, 0 without one
	series              []result.Point
}

// watch samples a cgroup every second. After each sample, alive may end it with an error.
func watch(ctx context.Context, c guest.Cgroup, howLong time.Duration, alive func() error) (watched, error) {
	start := time.Now()
	var half counters.Snapshot
	var halfAt time.Time
	w, err := follow(ctx, c, time.Second, func(now counters.Snapshot) (bool, error) {
		at := time.Since(start)
		if halfAt.IsZero() && at >= howLong/2 {
			half, halfAt = now, time.Now()
		}
		return at >= howLong, alive()
	})
	w.half = half
	if !halfAt.IsZero() {
		w.late = time.Since(halfAt)
	}
	return w, err
}

// follow samples a cgroup, once in every period, until over says so after a sample.
func follow(ctx context.Context, c guest.Cgroup, every time.Duration, over func(now counters.Snapshot) (bool, error)) (watched, error) {
	var w watched
	var err error
	if w.before, err = c.Take(); err != nil {
		return w, err
	}
	w.start = time.Now()
	w.series = append(w.series, point(w.before, w.before, 0))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return w, ctx.Err()
		case <-tick.C:
		}
		if w.after, err = c.Take(); err != nil {
			return w, err
		}
		w.elapsed = time.Since(w.start)
		w.series = append(w.series, point(w.before, w.after, w.elapsed))
		if done, err := over(w.after); err != nil || done {
			return w, err
		}
	}
}

func point(before, now counters.Snapshot, at time.Duration) result.Point {
	const refaultFile = "workingset_refault_file"
	return result.Point{
		AtMS: at.Milliseconds(), Current: now.Current, Anon: now.Stat["anon"], File: now.Stat["file"], Swap: now.Swap,
		Refaults: now.Refaults() - before.Refaults(), RefaultFile: now.Stat[refaultFile] - before.Stat[refaultFile],
		PSISomeUS: now.PSISome - before.PSISome,
	}
}

// lastPoints is the number of samples the end of a series is judged by.
const lastPoints = 5

// fill puts what was watched into a run.
func (w watched) fill(run *result.Run) {
	run.Counters = w.after.Since(w.before)
	run.Nodes = counters.Nodes(w.before, w.after)
	run.Series = w.series
	run.ElapsedMS = w.elapsed.Milliseconds()
	end := func(of func(result.Point) float64) float64 {
		var values []float64
		for _, p := range w.series[max(0, len(w.series)-lastPoints):] {
			values = append(values, of(p))
		}
		return result.Median(values)
	}
	run.Facts = map[string]float64{
		"resident_before_bytes": float64(w.before.Resident()),
		"resident_after_bytes":  end(func(p result.Point) float64 { return float64(p.Resident()) }),
	}
	if w.late > 0 {
		late := w.after.Since(w.half)
		run.Facts["late_psi_some_share"] = float64(late.PSISomeUS) / float64(w.late.Microseconds())
		run.Facts["late_refaults_per_second"] = float64(late.RefaultAnon+late.RefaultFile) / w.late.Seconds()
	}
}

// passes puts a workload's passes from the given one on into a run.
func (w watched) passes(run *result.Run, p *guest.Proc, from int) {
	run.PassMS, run.YardstickMS = p.Passes(from), p.Yardsticks(from)
	for _, t := range p.Begun(from) {
		run.PassAtMS = append(run.PassAtMS, float64(t.Sub(w.start).Microseconds())/1e3)
	}
}
