package controller

import (
	"errors"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/workingset"
)

const (
	// agingsPerAge is how often a list is aged within the age from which
	// memory counts as cold. The kernel keeps four generations and never
	// evicts from the two youngest: with two agings in that time, what was not
	// used for it is in the third.
	agingsPerAge = 2
	// agingSpan is how many times the mean time that evicted pages stay out
	// must pass between two agings: while pages come back, four generations
	// must span the interval at which they are used, or hot and cold look
	// alike. A third of it in each leaves one generation for what is colder.
	agingSpan = 1.0 / 3
	// agingMost is the longest time between two agings, 10 minutes: past that
	// the kernel's own aging tells as much.
	agingMost = 10 * time.Minute
	// agingShare is the part of one CPU's time that aging may take over all
	// cgroups, 1 %: it walks the page tables of every process of a cgroup.
	agingShare = 0.01
	// agingBurst is how long of that may have been saved up: enough for the
	// first agings of a cgroup that comes near its limit, which cannot wait for
	// seconds, even where one takes 0.2 s. In no minute does aging then take
	// more than 2 %.
	agingBurst = time.Minute
	// mostlyAnon is the swappiness from which a request wants anon. The kernel
	// takes file instead where all anon is in the two youngest generations.
	mostlyAnon = 150
	// agingPatience is how long a request waits for its aging to be paid for;
	// the host's other cgroups may have spent more than that.
	agingPatience = time.Second
	// agingsFirst is how many agings bring what nobody uses from the youngest
	// generation to one that can be evicted, and merge the file that 6.12 would
	// take first into it.
	agingsFirst = 3
	// agingEarly is the pause between these where nothing waits for them yet.
	agingEarly = time.Second
)

// ager paces aging over all cgroups.
type ager struct {
	wants  []memcg.ID // cgroups that want aging in this tick
	resume time.Time  // aging is paid for from then on; never while one is under way
	paid   time.Time  // until when the agings so far use the share up
}

// WantsAges reports whether a policy can use the ages of a cgroup's memory.
func (c *Core) WantsAges(id memcg.ID) bool {
	cg, ok := c.cgroups[id]
	return ok && !c.noAges && cg.law.Law == workingset.Memagent && cg.law.Squeeze.IdleAge > 0
}

// see remembers of a cgroup's generations what later steps need; none means
// that its ages are not known now. Kernels before 6.16 give anon alone only from
// the oldest generation that holds anything, and file that was read once is in
// that one too: where anon was not to be had, it alone counts.
func (cg *cgroup) see(gens []memcg.Generation) {
	cg.ages, cg.evictableAnon = len(gens) > 0, 0
	if !cg.ages {
		return
	}
	cg.youngest = gens[0].Age
	older := false // on the same list, one holds something
	for i, g := range gens {
		cg.youngest = min(cg.youngest, g.Age)
		if i > 0 && (g.Node != gens[i-1].Node || g.Seq <= gens[i-1].Seq) {
			older = false
		}
		if g.Evictable && !(cg.oldestAlone && older) {
			cg.evictableAnon += g.AnonPages
		}
		older = older || g.AnonPages+g.FilePages > 0
	}
}

// ageFirst hands out aging in place of a request that wants anon where the
// kernel has none that it would evict: it would take file, which such a request
// is there to spare. Where there is hardly any file, the kernel ages as it
// likes. A few agings settle it, or there is no cold anon.
func (c *Core) ageFirst(now time.Time, host *memcg.HostSample, cg *cgroup, r *telemetry.Record) bool {
	v, ok := r.Swappiness.Get()
	if !ok || v < mostlyAnon || r.OlderThan > 0 || r.Draw != nil || !cg.ages || cg.agings >= agingsFirst ||
		cg.evictableAnon*host.PageSize >= r.Want || cg.file < r.Want {
		return false
	}
	switch wait := c.ager.resume.Sub(now); {
	case c.ager.resume != never && wait <= 0:
		cg.agings++
		c.age(cg.id)
	case !cg.moves:
		r.Swappiness = memcg.SwappinessOf(0) // anon catches up when it has aged
		return false
	case c.ager.resume == never:
		cg.wakeAt = now.Add(wakeLeast)
	case wait <= agingPatience:
		cg.wakeAt = c.ager.resume
	default:
		return false
	}
	r.Held = "what is not used must show first: aging"
	return true
}

// ages returns what an observation tells of ages, nil if nothing. That a host
// tells none is said once; it is normal.
func (c *Core) ages(ob Observation) *workingset.Generations {
	switch {
	case errors.Is(ob.AgesErr, memcg.ErrGone):
		return nil
	case ob.AgesErr != nil:
		c.notify.Warn("ages", ob.AgesErr, "the age of memory is not known; squeezing in steps instead")
		return nil
	case len(ob.Ages) == 0:
		return nil
	}
	c.gens.List = ob.Ages
	return &c.gens
}

// considerAging notes that a cgroup should be aged, so that what is not used
// shows. Cgroups that are only observed are not: aging is a write.
func (c *Core) considerAging(now time.Time, host *memcg.HostSample, cg *cgroup, s *workingset.Signals, r *telemetry.Record) {
	ripens := cg.ripens(host.PageSize)
	if r.Mode != telemetry.Enforce || cg.held != "" || !cg.law.Squeeze.On && !ripens || r.Want > 0 || now.Before(c.ager.resume) {
		return
	}
	if _, busy := c.inFlight[cg.id]; busy {
		return
	}
	every := cg.law.Squeeze.IdleAge / agingsPerAge
	for _, side := range []*workingset.Side{&s.Anon, &s.File} {
		out, known := side.TimeOut.Get()
		if rate, ok := side.Refaults.Get(); known && ok && rate > 0 {
			every = max(every, time.Duration(min(out*agingSpan, agingMost.Seconds())*float64(time.Second)))
		}
	}
	if ripens {
		every = agingEarly
	}
	if cg.youngest >= min(every, agingMost) {
		c.ager.wants = append(c.ager.wants, cg.id)
	}
}

// ripens reports whether a cgroup is to give mostly anon at its limit and has too
// little that the kernel would evict: it is aged before it gets there, since
// then there is no time to.
func (cg *cgroup) ripens(page uint64) bool {
	v, _ := cg.hold.Swappiness.Get()
	free := cg.hold.Limit - cg.hold.Above
	if v < mostlyAnon || cg.hold.Above == 0 || !cg.ages || cg.evictableAnon*page >= free || cg.file < free {
		cg.early = 0
		return false
	}
	return cg.early < agingsFirst
}

// handOutAging gives workers that are left over to aging, one cgroup at a time.
func (c *Core) handOutAging(slots int) {
	if slots <= 0 || len(c.ager.wants) == 0 || c.ager.resume == never {
		return
	}
	c.age(c.ager.wants[int(c.tick%uint64(len(c.ager.wants)))])
}

// age hands out the aging of one cgroup; the next waits until its cost is known.
func (c *Core) age(id memcg.ID) {
	if cg, ok := c.cgroups[id]; ok {
		cg.early++
	}
	c.inFlight[id] = 0
	c.ager.resume = never
	c.requests = append(c.requests, Request{Reclaim: memcg.Reclaim{Cgroup: id}, Age: true})
}

// never is a time that does not come.
var never = time.Unix(1<<62, 0)

// aged books the cost of an aging: a hundred times the CPU time that it took
// passes before the next, whichever cgroup it is for, but for what was saved up.
func (c *Core) aged(now time.Time, d Result) {
	id := d.Reclaim.Cgroup
	delete(c.inFlight, id)
	if saved := now.Add(-agingBurst); c.ager.paid.Before(saved) {
		c.ager.paid = saved
	}
	c.ager.paid = c.ager.paid.Add(time.Duration(float64(d.Took) / agingShare))
	c.ager.resume = c.ager.paid
	if d.Err == nil || errors.Is(d.Err, memcg.ErrGone) || errors.Is(d.Err, memcg.ErrPartial) {
		return
	}
	if errors.Is(d.Err, memcg.ErrUnsupported) || errors.Is(d.Err, memcg.ErrDenied) {
		c.noAges = true
	}
	c.notify.Warn("aging", d.Err, "memory cannot be aged here")
}
