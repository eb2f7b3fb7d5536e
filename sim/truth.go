package sim

import "time"

// Truth is what no counter of a kernel tells: figures page by page, for the
// subtree of a cgroup. Sums run since the cgroup was made; see Since.
type Truth struct {
	Anon, File Distances
}

// Distances is the truth about one kind of memory.
type Distances struct {
	Refaults uint64 // pages that came back and whose distance is known
	Sum      uint64 // of their distances, pages
	Recent   uint64 // of them, within reach: distance no longer than what could have made room
}

func (d *Distances) note(distance uint64, recent bool) {
	d.Refaults++
	d.Sum += distance
	if recent {
		d.Recent++
	}
}

// Mean returns the mean refault distance in pages; ok is false when nothing
// came back.
func (d Distances) Mean() (pages float64, ok bool) {
	if d.Refaults == 0 {
		return 0, false
	}
	return float64(d.Sum) / float64(d.Refaults), true
}

// Since returns what came to be since an earlier reading.
func (t Truth) Since(earlier Truth) Truth {
	return Truth{Anon: t.Anon.since(earlier.Anon), File: t.File.since(earlier.File)}
}

func (d Distances) since(e Distances) Distances {
	return Distances{Refaults: d.Refaults - e.Refaults, Sum: d.Sum - e.Sum, Recent: d.Recent - e.Recent}
}

// Truth returns the distances of all refaults of a cgroup. A cgroup that does
// not exist is misuse.
func (h *Host) Truth(path string) Truth {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known("tell the truth about", path)
	if c == nil {
		return Truth{}
	}
	return Truth{Anon: c.truth[anonKind], File: c.truth[fileKind]}
}

// WorkingSet is which pages were touched within some time, in bytes, by where
// they are now. Pages that are out and were touched are the true need: what
// would have to fit in addition.
type WorkingSet struct {
	AnonResident, AnonOut uint64
	FileResident, FileOut uint64
}

// WorkingSet returns what the workloads of a cgroup and below touched within
// the last window. Streams, which come back to nothing, have none.
func (h *Host) WorkingSet(path string, window time.Duration) WorkingSet {
	h.mu.Lock()
	defer h.mu.Unlock()
	var w WorkingSet
	c := h.known("measure the working set of", path)
	if c == nil {
		return w
	}
	since := uint32(max(0, h.now-window).Milliseconds())
	for _, g := range c.subtree(nil) {
		for _, j := range g.jobs {
			for _, r := range j.regions {
				h.workingSet(r, since, &w)
			}
		}
	}
	return w
}

func (h *Host) workingSet(r *region, since uint32, w *WorkingSet) {
	for _, i := range r.pages {
		if i == 0 {
			continue
		}
		p := &h.arena.pages[i]
		if p.touched < since {
			continue
		}
		switch p.flags & (resident | out | file) {
		case resident:
			w.AnonResident += PageSize
		case resident | file:
			w.FileResident += PageSize
		case out:
			w.AnonOut += PageSize
		case out | file:
			w.FileOut += PageSize
		}
	}
}
