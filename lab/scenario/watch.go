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
	before, half, after counters.Snapshot
	elapsed, late       time.Duration // the whole, and the part after half
	series              []result.Point
}

// watch samples a cgroup every second. After each sample, alive may end it with an error.
func watch(ctx context.Context, c guest.Cgroup, howLong time.Duration, alive func() error) (watched, error) {
	var w watched
	var err error
	if w.before, err = c.Take(); err != nil {
		return w, err
	}
	start := time.Now()
	var halfAt time.Time
	w.series = append(w.series, point(w.before, w.before, 0))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Since(start) < howLong {
		select {
		case <-ctx.Done():
			return w, ctx.Err()
		case <-tick.C:
		}
		if w.after, err = c.Take(); err != nil {
			return w, err
		}
		at := time.Since(start)
		w.series = append(w.series, point(w.before, w.after, at))
		if halfAt.IsZero() && at >= howLong/2 {
			w.half, halfAt = w.after, time.Now()
		}
		if err := alive(); err != nil {
			return w, err
		}
	}
	w.elapsed, w.late = time.Since(start), time.Since(halfAt)
	return w, nil
}

func point(before, now counters.Snapshot, at time.Duration) result.Point {
	return result.Point{
		AtMS: at.Milliseconds(), Current: now.Current, Anon: now.Stat["anon"], File: now.Stat["file"], Swap: now.Swap,
		Refaults: now.Refaults() - before.Refaults(), PSISomeUS: now.PSISome - before.PSISome,
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
	var end []float64
	for _, p := range w.series[max(0, len(w.series)-lastPoints):] {
		end = append(end, float64(p.Resident()))
	}
	late := w.after.Since(w.half)
	run.Facts = map[string]float64{
		"resident_before_bytes":    float64(w.before.Resident()),
		"resident_after_bytes":     result.Median(end),
		"late_psi_some_share":      float64(late.PSISomeUS) / float64(w.late.Microseconds()),
		"late_refaults_per_second": float64(late.RefaultAnon+late.RefaultFile) / w.late.Seconds(),
	}
}
