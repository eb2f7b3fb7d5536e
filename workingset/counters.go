package workingset

import "github.com/memagent/memagent/memcg"

// The two page types, as an index.
const (
	anon = iota
	file
	types
)

// counters are the counters of one sample, kept until the next so that there
// is something to subtract. The zero value has none.
type counters struct {
	refault, activate [types]memcg.Field
	pgactivate        memcg.Field
	steal, scan       memcg.Field // all of reclaim
	ownSteal, ownScan memcg.Field // *_proactive, 6.15
	demoted           memcg.Field // counted in steal, but still in memory
	swapOut           memcg.Field // pages written to swap, 6.13
	swapUsed          memcg.Field // memory.swap.current, a gauge
	current, anonSize memcg.Field // gauges
	some, full        memcg.Field // microseconds of stall
	high, max         memcg.Field // memory.events
}

func countersOf(s *memcg.Sample) counters {
	st := &s.Stat
	c := counters{
		pgactivate: st.Get(memcg.StatPgactivate),
		ownSteal:   st.Get(memcg.StatStealProactive),
		ownScan:    st.Get(memcg.StatScanProactive),
		demoted: memcg.SumKnown(st.Get(memcg.StatDemoteKswapd), st.Get(memcg.StatDemoteDirect),
			st.Get(memcg.StatDemoteKhugepaged), st.Get(memcg.StatDemoteProactive)),
		swapUsed: s.SwapCurrent,
		current:  s.Current,
		anonSize: st.Get(memcg.StatAnon),
		some:     s.Pressure.Some.Total,
		full:     s.Pressure.Full.Total,
		high:     firstKnown(s.EventsLocal.High, s.Events.High),
		max:      firstKnown(s.EventsLocal.Max, s.Events.Max),
	}
	c.refault[anon], c.refault[file] = st.Get(memcg.StatRefaultAnon), st.Get(memcg.StatRefaultFile)
	c.activate[anon], c.activate[file] = st.Get(memcg.StatActivateAnon), st.Get(memcg.StatActivateFile)
	c.steal = firstKnown(st.Get(memcg.StatSteal), memcg.Sum(st.Get(memcg.StatStealKswapd), st.Get(memcg.StatStealDirect)))
	c.scan = firstKnown(st.Get(memcg.StatScan), memcg.Sum(st.Get(memcg.StatScanKswapd), st.Get(memcg.StatScanDirect)))
	if st.Get(memcg.StatPswpout).Known() {
		c.swapOut = swappedOut(st)
	}
	return c
}

// swappedOut is how many anon pages left for swap: written to a device, kept
// compressed, or all zeroes and so not written at all. A compressed page that
// is later written back to the device is counted by both of the first two.
func swappedOut(st *memcg.Stats) memcg.Field {
	sum := memcg.SumKnown(st.Get(memcg.StatPswpout), st.Get(memcg.StatZswpout), st.Get(memcg.StatZeroSwapout))
	v, ok := sum.Get()
	if !ok {
		return sum
	}
	return memcg.Value(less(v, known(st.Get(memcg.StatZswpwb))))
}

func firstKnown(a, b memcg.Field) memcg.Field {
	if a.Known() {
		return a
	}
	return b
}

// deltas are what happened between two samples. Unknown figures are counters
// that one of the two samples lacks.
type deltas struct {
	seconds           float64
	evict             [types]float64 // pages, the agent's own included
	refault, activate [types]float64 // pages
	clock             float64        // evictions + activations
	kernel            Figure         // evictions the agent did not ask for, pages
	kernelAnon        Figure         // of these, anon
	stolen            float64        // pages reclaim took, demoted ones included
	kernelScan        Figure         // pages
	current, anonSize float64        // growth in bytes, may be negative
	some, full        Figure         // microseconds
	highRises         bool
	maxRises          bool
}

// anonGrown returns the bytes of anon that are new: what is there now and was not
// before, and what went out, less what came back.
func (d *deltas) anonGrown(page float64) float64 {
	return d.anonSize + (d.evict[anon]-d.refault[anon])*page
}

// since subtracts two samples. ok is false when a counter that every decision
// needs is absent in one of them or went back: such a delta does not exist.
// E_anon comes from the counters of pages written where the kernel has them
// for a cgroup, else from the swap in use: what is out now and was not before,
// plus what came back meanwhile. E_file is the rest of what reclaim took.
func (c *counters) since(old *counters, own Own, classic bool, page float64) (d deltas, ok bool) {
	steal, ok := c.steal.Since(old.steal)
	if !ok {
		return d, false
	}
	for t := range types {
		r, ok := c.refault[t].Since(old.refault[t])
		if !ok {
			return d, false
		}
		// Kernels that count refaults by type count activations too; a side
		// that lacks them only slows the clock.
		a, _ := c.activate[t].Since(old.activate[t])
		d.refault[t], d.activate[t] = float64(r), float64(a)
	}
	grown, ok := c.current.Change(old.current)
	if !ok {
		return d, false
	}
	d.current = float64(grown)
	if a, ok := c.anonSize.Change(old.anonSize); ok {
		d.anonSize = float64(a)
	}
	d.stolen = float64(steal)
	demoted, _ := c.demoted.Since(old.demoted)
	out := float64(less(steal, demoted))
	if d.evict[anon], ok = c.anonOut(old, d.refault[anon], page); !ok {
		return d, false
	}
	d.evict[file] = max(0, out-d.evict[anon])

	d.clock = d.evict[anon] + d.evict[file] + d.activate[anon] + d.activate[file]
	if classic {
		a, _ := c.pgactivate.Since(old.pgactivate)
		d.clock += float64(a)
	}
	c.apartFromOwn(&d, old, own)
	d.some, d.full = stall(c.some, old.some), stall(c.full, old.full)
	n, ok := c.high.Since(old.high)
	d.highRises = ok && n > 0
	n, ok = c.max.Since(old.max)
	d.maxRises = ok && n > 0
	return d, true
}

// anonOut is E_anon.
func (c *counters) anonOut(old *counters, back, page float64) (float64, bool) {
	if n, ok := c.swapOut.Since(old.swapOut); ok {
		return float64(n), true
	}
	if c.swapOut.Known() && old.swapOut.Known() {
		return 0, false
	}
	if grown, ok := c.swapUsed.Change(old.swapUsed); ok {
		return max(0, float64(grown)/page+back), true
	}
	// No swap accounting: nothing of this cgroup can be told to be in swap.
	return back, c.swapUsed.State() == memcg.Unsupported
}

// apartFromOwn tells the kernel's reclaim from the agent's, which is never
// read as pressure (case c02).
func (c *counters) apartFromOwn(d *deltas, old *counters, own Own) {
	if own.Known {
		d.kernelAnon = FigureOf(max(0, d.evict[anon]-float64(own.AnonPages)))
	}
	scan, scanOK := c.scan.Since(old.scan)
	if o, ok := c.ownSteal.Since(old.ownSteal); ok {
		d.kernel = FigureOf(max(0, d.stolen-float64(o)))
		if o, ok := c.ownScan.Since(old.ownScan); ok && scanOK {
			d.kernelScan = FigureOf(float64(less(scan, o)))
		}
		return
	}
	if !own.Known {
		return
	}
	took := float64(own.AnonPages) + float64(own.FilePages)
	d.kernel = FigureOf(max(0, d.stolen-took))
	// What the agent's requests scanned is not known; at least what they took.
	if scanOK {
		d.kernelScan = FigureOf(max(0, float64(scan)-took))
	}
}

func stall(now, old memcg.Field) Figure {
	if us, ok := now.Since(old); ok {
		return FigureOf(float64(us))
	}
	return Figure{}
}
