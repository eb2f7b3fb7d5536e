package workingset

import "time"

const (
	// holdAfterStop is how long nothing is squeezed after pressure or cost went
	// over a target: senpai's six quiet ticks of 5 s. It gives refaults that
	// are under way the time to show.
	holdAfterStop = 30 * time.Second
	// quietPerStep is the time without a stop after which a halved step is
	// doubled again. Twice the hold, so that a workload at its edge is asked
	// less and less often.
	quietPerStep = 2 * holdAfterStop
	// mostHalvings bounds how small the step becomes: 1/64 of max_step still
	// moves, so that the law finds out when a workload has become idle.
	mostHalvings = 6
	// squeezeGap is the least time between two squeezes, and the least that
	// one is measured by: an early wake must not make a step of a fraction of
	// a second into a whole one. A tenth below the shortest interval that a
	// configuration may have, since ticks come a little early or late.
	squeezeGap = 900 * time.Millisecond
)

// squeezer is what the squeeze remembers.
type squeezer struct {
	halvings uint8
	hold     time.Duration // nothing is squeezed until this is over
	quiet    time.Duration // since the last stop or doubling
	ticks    uint8         // samples since senpai last looked

	// What stalls and refaults cost over the last squeezeGap or the last
	// sample, whichever is longer: in a fraction of a second a single fault
	// would look like pressure.
	seconds, stall, cost float64 // s, microseconds, microseconds
}

// note adds one sample to what the squeeze is measured by.
func (q *squeezer) note(seconds, stall, cost float64) {
	if q.seconds >= squeezeGap.Seconds() {
		q.seconds, q.stall, q.cost = 0, 0, 0
	}
	q.seconds += seconds
	q.stall += stall
	q.cost += cost
}

// wait lets time pass.
func (q *squeezer) wait(elapsed time.Duration) {
	if q.hold > 0 {
		q.hold = max(0, q.hold-elapsed)
		return
	}
	if q.halvings == 0 {
		return
	}
	if q.quiet += elapsed; q.quiet >= quietPerStep {
		q.halvings, q.quiet = q.halvings-1, 0
	}
}

// stop halves the step and holds.
func (q *squeezer) stop() {
	q.halvings = min(q.halvings+1, mostHalvings)
	q.hold, q.quiet = holdAfterStop, 0
}

// step is the part of max_step in use now.
func (q *squeezer) step() float64 { return 1 / float64(uint(1)<<q.halvings) }

// strain is how much of its targets a cgroup uses up: 1 is the target, more is
// too much. A target of 0 tolerates nothing.
func strain(pressure, cost float64, p *Squeeze) float64 {
	return max(share(pressure, p.PressureTarget), share(cost, p.CostTarget))
}

func share(v, target float64) float64 {
	switch {
	case target > 0:
		return v / target
	case v > 0:
		return 2
	}
	return 0
}

// squeezeBytes is the formula of TMO with the price of refaults beside
// pressure:
//
//	bytes = current x max_step x (1 - max(pressure/pressure_target, cost/cost_target))
//
// Negative means stop. step is max_step, halved as often as that happened.
func squeezeBytes(current, step, strain float64) float64 { return current * step * (1 - strain) }

// The figures of oomd's Senpai with immediate_backoff (Senpai.h).
const (
	senpaiTicks    = 6    // samples from one look to the next
	senpaiPressure = 0.1  // percent of avg10 and avg60 below which it acts
	senpaiProbe    = 0.01 // of what is above the floor
)

// squeezeSenpai is oomd's law. It also wants I/O pressure below the same
// mark, which is not sampled here.
func (q *squeezer) squeezeSenpai(v *view) (bytes float64, rule string) {
	if q.ticks++; q.ticks < senpaiTicks {
		return 0, "senpai-waits"
	}
	q.ticks = 0
	some := v.sample.Pressure.Some
	if !some.Total.Known() {
		return 0, "no-pressure-file"
	}
	if !(some.Avg10 < senpaiPressure && some.Avg60 < senpaiPressure) {
		return 0, "senpai-backs-off"
	}
	return (v.current - v.keep) * senpaiProbe, "squeeze-senpai"
}
