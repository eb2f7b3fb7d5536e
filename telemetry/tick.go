package telemetry

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Tick is what one round of the loop was like, told when it is over.
type Tick struct {
	Began time.Time
	Took  time.Duration
	// Interval is the time between two regular ticks from now on.
	Interval time.Duration
	Mode     Mode
	// Early tells that it was a look at one or a few cgroups between two
	// ticks, and not the regular round over all.
	Early    bool
	Watched  int // cgroups that a policy matches
	InFlight int // requests to the kernel that have not come back
	// Err is why nothing was decided: the host could not be read.
	Err error
	// Host is what the host has, as far as it could be read.
	Host *memcg.HostSample
}

// Ticks takes what each tick was like. It is called from the loop's goroutine
// after the records of the tick, must not block, and must not keep the Tick or
// what it points to.
type Ticks interface {
	Ticked(t *Tick)
}

// TickList hands every tick to each of several, in order.
type TickList []Ticks

// Ticked passes t on.
func (l TickList) Ticked(t *Tick) {
	for _, one := range l {
		one.Ticked(t)
	}
}
