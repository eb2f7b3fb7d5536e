package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/lab/counters"
	"github.com/memagent/memagent/lab/disk"
	"github.com/memagent/memagent/lab/guest"
	"github.com/memagent/memagent/lab/result"
)

// The memoryqos scenario: somebody else (the kubelet, a service manager) has set a memory.high, and
// cache grows up to it. The kernel stops threads there; an agent that keeps headroom below it spares
// them that, without a say in the value.
const (
	qosHigh   = 180 * mib
	qosHot    = 64 * mib               // bytes of anon, re-touched all the time
	qosEvery  = 500 * time.Millisecond // from one touch to the next
	qosFile   = 350 * mib
	qosLoops  = 10
	qosShort  = 5
	qosCgroup = "/pod"
	qosReads  = 20 * time.Millisecond // between two looks at memory.high

	qosEvents = 0.02 // of off's memory.events high
	qosStall  = 0.10 // of off's pressure
	qosPass   = 1.10 // of off's pass time
)

var memoryQoS = Scenario{
	Name:     "memoryqos",
	About:    "cache grows to a foreign memory.high: no throttling, and the value is left alone",
	Law:      "memagent",
	Topology: oneNode,
	Files:    []disk.File{{Name: "file", Size: qosFile}},
	Within:   func(short bool) time.Duration { return time.Duration(qosPasses(short))*idlePass + 2*setUpWithin },
	Run:      runMemoryQoS,
	Checks:   checkMemoryQoS,
}

func qosPasses(short bool) int {
	return form(short, qosShort, qosLoops)
}

func qosConfig(law string) string {
	return fmt.Sprintf(`mode: enforce
interval: 1s
policies:
  - name: qos
    match:
      - path: %s
    law: %s
    swappiness: 0
    squeeze: off
    headroom: 8%%
`, qosCgroup, law)
}

func runMemoryQoS(ctx context.Context, g *guest.Guest) (result.Run, error) {
	var run result.Run
	pod, err := guest.NewCgroup(qosCgroup)
	if err != nil {
		return run, err
	}
	if err := pod.Set("memory.high", fmt.Sprint(qosHigh)); err != nil {
		return run, err
	}
	hot, err := pod.Settle(setUpWithin, "anon", "--size", fmt.Sprint(qosHot), "--every", qosEvery.String())
	if err != nil {
		return run, err
	}
	if err := guest.DropCaches(); err != nil {
		return run, err
	}
	high := keepReading(pod, "memory.high", qosReads)
	defer high.stop()
	agent, err := accompany(ctx, g, qosConfig(law(g, "memagent")), pod)
	if err != nil {
		return run, err
	}
	defer agent.end()
	before, err := events(pod)
	if err != nil {
		return run, err
	}
	loops := qosPasses(g.Spec.Short)
	reader, err := pod.Settle(setUpWithin, "file", "--path", guest.DataDir+"/file", "--loops", fmt.Sprint(loops), "--linger")
	if err != nil {
		return run, err
	}
	w, err := follow(ctx, pod, idleSample, func(counters.Snapshot) (bool, error) {
		return reader.Count() == loops, agent.alive(hot, reader)
	})
	if err != nil {
		return run, err
	}
	after, err := events(pod)
	if err != nil {
		return run, err
	}
	w.fill(&run)
	w.passes(&run, reader, 0)
	if err := agent.finish(&run, w.start, pod); err != nil {
		return run, err
	}
	values, reads, err := high.stop()
	if err != nil {
		return run, err
	}
	for i, v := range values[1:] {
		run.Differences = append(run.Differences, fmt.Sprintf("memory.high was %s and became %s", values[i], v))
	}
	run.Facts["high_events"] = float64(after["high"] - before["high"])
	run.Facts["high_changes"] = float64(len(values) - 1)
	run.Facts["high_reads"] = float64(reads)
	g.Logf("%.0f events at memory.high, %d ms of pressure, %d passes of %.0f ms in the median; memory.high read %d times, changed %d times",
		run.Facts["high_events"], run.Counters.PSISomeUS/1000, len(run.PassMS), result.Median(run.PassMS), reads, len(values)-1)
	return run, nil
}

// events reads a cgroup's memory.events.
func events(c guest.Cgroup) (counters.Flat, error) {
	text, err := c.Get("memory.events")
	return counters.ParseFlat(text), err
}

// reading reads a file over and over.
type reading struct {
	quit, done chan struct{}
	values     []string // each that differs from the one before
	reads      int
	err        error
}

func keepReading(c guest.Cgroup, file string, every time.Duration) *reading {
	r := &reading{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			v, err := c.Get(file)
			if err != nil {
				r.err = err
				return
			}
			r.reads++
			if n := len(r.values); n == 0 || r.values[n-1] != v {
				r.values = append(r.values, v)
			}
			select {
			case <-r.quit:
				return
			case <-tick.C:
			}
		}
	}()
	return r
}

// stop ends the reading and returns the values in order, of which there is at least one unless
// there is an error. It may be called again.
func (r *reading) stop() (values []string, reads int, err error) {
	select {
	case <-r.quit:
	default:
		close(r.quit)
	}
	<-r.done
	return r.values, r.reads, r.err
}

func checkMemoryQoS(runs []result.Run) []result.Check {
	stall := func(r result.Run) float64 { return float64(r.Counters.PSISomeUS) / 1e3 }
	// The first pass reads into empty memory.
	pass := func(r result.Run) float64 { return result.Median(r.PassMS[min(1, len(r.PassMS)):]) }
	return []result.Check{
		share("throttling", runs, fact("high_events"), qosEvents, "events at memory.high"),
		share("pressure", runs, stall, qosStall, "ms"),
		most("memory.high changed", runs, fact("high_changes"), 0, "times"),
		share("pass time", runs, pass, qosPass, "ms"),
	}
}
