package sim

// Remove kills what runs in a cgroup and below, and removes it all. What is
// left in the cache is charged to the parent. Removing one that does not
// exist is misuse.
func (h *Host) Remove(p string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.known("remove", p); c != nil {
		if c.parent == nil {
			h.misuse("remove /: the root stays")
			return
		}
		h.remove(c)
	}
}

func (h *Host) remove(c *cgroup) {
	for len(c.kids) > 0 {
		h.remove(c.kids[len(c.kids)-1])
	}
	for len(c.jobs) > 0 {
		h.end(c.jobs[0])
	}
	up := c.parent
	for n := range c.vecs {
		for l := range c.vecs[n].lists {
			from, to := &c.vecs[n].lists[l], &up.vecs[n].lists[l]
			for from.n > 0 {
				i := from.head
				h.arena.unlink(from, i)
				h.arena.pushTail(to, i)
				h.arena.pages[i].owner = up.number
			}
		}
	}
	for i, k := range up.kids {
		if k == c {
			up.kids = append(up.kids[:i], up.kids[i+1:]...)
			break
		}
	}
	c.dead = true
	h.groups[c.number] = nil
	delete(h.byPath, c.id.Path)
	h.signal()
}
