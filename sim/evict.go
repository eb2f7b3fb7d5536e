package sim

// fate is what becomes of a page at the tail of an inactive list.
type fate int

const (
	evicted fate = iota
	kept         // another round on the inactive list
	activated
)

// judge looks at the references of a page and takes note of them.
func (h *Host) judge(p *page) fate {
	wasYoung, wasReferenced := p.flags&young != 0, p.flags&referenced != 0
	p.flags &^= young | referenced
	if !wasYoung {
		return evicted
	}
	p.flags |= referenced
	switch {
	case wasReferenced,
		p.flags&(file|exec) == file|exec,
		p.flags&file == 0 && h.kernel.NewAnonActive:
		return activated
	}
	return kept
}

// inactive scans nr pages from the tail of an inactive list and returns how
// many it freed.
func (s *scan) inactive(c *cgroup, n, kind int, nr uint64) (freed uint64) {
	h := s.h
	l := &c.vecs[n].lists[inactiveOf(kind)]
	scanned := min(nr, l.n)
	var written uint64
	for range scanned {
		i := l.tail
		p := &h.arena.pages[i]
		what := h.judge(p)
		if what == evicted && kind == anonKind && !h.canSwap(c) {
			what = activated
			c.noteSwap(swapFail)
			if c.swapRoom() == 0 {
				c.noteSwap(swapMax)
			}
		}
		switch what {
		case kept:
			h.arena.unlink(l, i)
			h.arena.pushHead(l, i)
		case activated:
			h.activate(i)
		case evicted:
			h.evict(i, s.target)
			freed++
			if kind == anonKind {
				written++
			}
		}
	}
	s.scanned += scanned
	s.written += written
	c.add(n, cScanKswapd+counter(s.by), scanned)
	c.add(n, cStealKswapd+counter(s.by), freed)
	h.noteCost(c, n, kind, written, scanned-freed)
	return freed
}

// deactivate moves nr pages from the tail of an active list to the inactive
// one, whether they are in use or not: who is will be found out there. Only
// program text that is in use stays.
func (s *scan) deactivate(c *cgroup, n, kind int, nr uint64) {
	h := s.h
	v := &c.vecs[n]
	from, to := &v.lists[activeOf(kind)], &v.lists[inactiveOf(kind)]
	scanned := min(nr, from.n)
	var rotated uint64
	for range scanned {
		i := from.tail
		p := &h.arena.pages[i]
		inUse := p.flags&young != 0
		p.flags &^= young
		h.arena.unlink(from, i)
		if inUse && p.flags&(file|exec) == file|exec {
			h.arena.pushHead(from, i)
			c.aged(n, 1)
			h.traceAge(kind)
			rotated++
			continue
		}
		p.flags = p.flags&^active | workingset
		h.arena.pushHead(to, i)
	}
	moved := scanned - rotated
	c.resize(n, activeOf(kind), -int(moved))
	c.resize(n, inactiveOf(kind), int(moved))
	s.scanned += scanned
	c.add(n, cRefill, scanned)
	c.add(n, cPgdeactivate, moved)
	h.noteCost(c, n, kind, 0, rotated)
}

// activate moves a page from an inactive list to the active one.
func (h *Host) activate(i uint32) {
	p := &h.arena.pages[i]
	c, n, kind := h.groups[p.owner], int(p.node), p.kind()
	v := &c.vecs[n]
	h.arena.unlink(&v.lists[inactiveOf(kind)], i)
	p.flags |= active
	h.arena.pushHead(&v.lists[activeOf(kind)], i)
	c.resize(n, inactiveOf(kind), -1)
	c.resize(n, activeOf(kind), 1)
	c.add(n, cPgactivate, 1)
	if h.detects(kind) {
		c.aged(n, 1)
		h.traceAge(kind)
	}
}

// evict takes a page out of memory on behalf of a target, and leaves a shadow.
func (h *Host) evict(i uint32, target *cgroup) {
	p := &h.arena.pages[i]
	kind := p.kind()
	c := h.groups[p.owner]
	h.unlist(i)
	p.by, p.shadow = target.number, target.vecs[p.node].age
	if h.detects(kind) {
		target.aged(int(p.node), 1)
	}
	p.flags = p.flags&(file|exec|workingset|orphan) | out
	if kind == anonKind {
		h.swapUsed++
		for g := c; g != nil; g = g.parent {
			g.swap++
		}
		c.add(int(p.node), cSwapout, 1)
	}
	if h.trace != nil {
		h.trace(traced{what: tracedEvict, kind: kind, page: p})
	}
	if p.flags&orphan != 0 {
		h.arena.give(i)
	}
}

// enlist puts a page that has been charged to c on the list that its flags
// name.
func (h *Host) enlist(i uint32, c *cgroup, n int) {
	p := &h.arena.pages[i]
	p.owner, p.node = c.number, uint16(n)
	p.flags |= resident
	l := p.on()
	h.arena.pushHead(&c.vecs[n].lists[l], i)
	c.resize(n, l, 1)
	h.nodes[n].free--
	for ; c != nil; c = c.parent {
		c.usage++
	}
}

// unlist takes a resident page off its list and its charge off its cgroup.
func (h *Host) unlist(i uint32) {
	p := &h.arena.pages[i]
	c, n, l := h.groups[p.owner], int(p.node), p.on()
	h.arena.unlink(&c.vecs[n].lists[l], i)
	c.resize(n, l, -1)
	h.nodes[n].free++
	p.flags &^= resident
	for ; c != nil; c = c.parent {
		c.usage--
	}
}

// drop forgets a page wherever it is: its process unmapped it or its file is
// gone.
func (h *Host) drop(i uint32) {
	p := &h.arena.pages[i]
	switch {
	case p.flags&resident != 0:
		h.unlist(i)
	case p.flags&(out|file) == out:
		h.unswap(p)
	}
	h.arena.give(i)
}

// unswap frees the slot of a page in swap.
func (h *Host) unswap(p *page) {
	h.swapUsed--
	for g := h.groups[p.owner]; g != nil; g = g.parent {
		g.swap--
	}
}
