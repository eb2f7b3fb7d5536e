package sim

import (
	"time"
)

// Kind is what the pages of a region are.
type Kind int

const (
	// Anon is private memory: reclaim has to swap it out.
	Anon Kind = iota
	// File is a file that is read with read(2): two reads make a page active.
	File
	// Mapped is a file mapped into memory: references are seen by the scan.
	Mapped
	// Text is a mapped executable: pages in use stay active.
	Text
	// Locked is private memory under mlock(2): never reclaimed.
	Locked
	numRegionKinds
)

var kindNames = [numRegionKinds]string{"anon", "file", "mapped", "text", "locked"}

// String returns the kind in one lower-case word.
func (k Kind) String() string {
	if k >= 0 && k < numRegionKinds {
		return kindNames[k]
	}
	return "kind(?)"
}

var kindFlags = [numRegionKinds]flags{File: file, Mapped: file, Text: file | exec, Locked: locked}

// region is some memory of a job, page by page.
type region struct {
	kind  Kind
	pages []uint32 // 0: never touched, or freed
}

// touch is one access of j to a page. It returns how long it takes beyond the
// access itself; false when the job was killed over it.
func (h *Host) touch(j *Job, r *region, at int) (time.Duration, bool) {
	j.stats.Touches++
	j.work = j.gap
	if r.pages[at] == 0 {
		r.pages[at] = h.arena.take()
		h.arena.pages[r.pages[at]].flags = kindFlags[r.kind]
	}
	i := r.pages[at]
	p := &h.arena.pages[i]
	p.touched = uint32(h.now.Milliseconds())
	if p.flags&resident != 0 {
		h.reference(i, r.kind)
		return 0, true
	}
	j.wait = 0
	n, ok := h.place(j)
	if !ok || !h.charge(j) {
		return j.wait, false
	}
	p = &h.arena.pages[i]
	h.faultIn(j, i, n)
	h.reference(i, r.kind)
	if r.kind == Anon && h.kernel.NewAnonActive && p.flags&active == 0 {
		h.activateQuietly(i)
	}
	h.overHigh(j)
	return j.wait, !j.ended
}

// faultIn makes a page resident on a node and counts what that was: a new
// page, a file read for the first time, or a page that had been out.
func (h *Host) faultIn(j *Job, i uint32, n int) {
	p := &h.arena.pages[i]
	kind := p.kind()
	c := j.group
	c.add(n, cFault, 1)
	switch {
	case p.flags&out != 0:
		price := h.filePrice
		if kind == anonKind {
			price = h.swapPrice
			h.unswap(p)
			c.add(n, cSwapin, 1)
		}
		c.add(n, cMajfault, 1)
		h.refault(p, c, n)
		j.stats.Refaults++
		if h.worksOnCPU(kind) {
			j.work += price
		}
		h.stall(j, price)
	case kind == fileKind:
		c.add(n, cMajfault, 1)
		j.blocked(h.filePrice) // waiting for a first read is not pressure
	}
	h.enlist(i, c, n)
}

// reference notes an access to a resident page.
func (h *Host) reference(i uint32, kind Kind) {
	p := &h.arena.pages[i]
	switch {
	case kind != File:
		p.flags |= young
	case p.flags&(active|referenced) == referenced:
		p.flags &^= referenced
		h.activate(i)
	default:
		p.flags |= referenced
	}
}

// activateQuietly moves a page to the active list without any of the counters:
// it is where the page starts.
func (h *Host) activateQuietly(i uint32) {
	p := &h.arena.pages[i]
	c, n := h.groups[p.owner], int(p.node)
	h.unlist(i)
	p.flags |= active
	h.enlist(i, c, n)
}
