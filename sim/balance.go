package sim

import "math"

// The balance between anon and file, after get_scan_count and
// prepare_scan_control of mm/vmscan.c.

// inactiveLow reports whether the inactive list of a kind is so short that
// active pages must be moved to it. The bigger the lists, the smaller the
// inactive share that is enough.
func (h *Host) inactiveLow(v *vec, kind int) bool {
	inactive, act := v.size[inactiveOf(kind)], v.size[activeOf(kind)]
	ratio := uint64(1)
	if gib := (inactive + act) * PageSize >> 30; gib > 0 {
		ratio = uint64(math.Sqrt(float64(10 * gib)))
	}
	return inactive*ratio < act
}

// prepare looks at the target on one node before its subtree is scanned.
func (s *scan) prepare(n int) {
	v := &s.target.vecs[n]
	s.cost = v.cost
	for kind := range numKinds {
		activated := v.count[cActivateAnon+counter(kind)]
		s.mayDeactivate[kind] = s.force || activated != v.seen[kind] || s.h.inactiveLow(v, kind)
	}
	s.cacheTrim = v.size[inactiveFile]>>s.priority > 0 && !s.mayDeactivate[fileKind]
	s.fileTiny = false
	if s.global {
		nd := &s.h.nodes[n]
		s.fileTiny = v.size[activeFile]+v.size[inactiveFile]+nd.free <= nd.high &&
			!s.mayDeactivate[anonKind] && v.size[inactiveAnon]>>s.priority > 0
	}
}

// share is what of each kind is to be scanned, as fractions of their sum.
type share struct{ anon, file uint64 }

func (s *scan) share(c *cgroup) share {
	switch {
	case s.swappiness == maxSwappiness: // even where nothing can be swapped: then nothing is done
		if s.h.canSwap(c) {
			return share{anon: 1}
		}
		return share{}
	case !s.h.canSwap(c):
		return share{file: 1}
	case !s.global && s.swappiness == 0:
		return share{file: 1}
	case s.priority == 0 && s.swappiness > 0:
		return share{anon: 1, file: 1}
	case s.fileTiny:
		return share{anon: 1}
	case s.cacheTrim:
		return share{file: 1}
	}
	return fractions(s.cost[anonKind], s.cost[fileKind], uint64(s.swappiness))
}

// equally is what share answers at the last priority: everything.
func (s *scan) equally(c *cgroup) bool {
	return s.priority == 0 && s.swappiness > 0 && s.swappiness != maxSwappiness && s.h.canSwap(c)
}

// fractions weighs swappiness by what either kind has cost. Each keeps at
// least a third whatever the costs are.
func fractions(anonCost, fileCost, swappiness uint64) share {
	total := anonCost + fileCost
	a, f := total+anonCost, total+fileCost
	total = a + f
	return share{
		anon: swappiness * (total + 1) / (a + 1),
		file: (200 - swappiness) * (total + 1) / (f + 1),
	}
}

// counts returns how many pages of each list of c are to be looked at.
func (s *scan) counts(c *cgroup, n int) (nr [4]uint64) {
	sh := s.share(c)
	all := s.equally(c)
	sum := sh.anon + sh.file
	for l := inactiveAnon; l <= activeFile; l++ {
		size := s.unprotected(c, c.vecs[n].lists[l].n) >> s.priority
		part := sh.anon
		if l >= inactiveFile {
			part = sh.file
		}
		switch {
		case all:
			nr[l] = size
		case sum > 0:
			nr[l] = size * part / sum
		}
	}
	return nr
}

// unprotected takes off the share of a list that memory.min or memory.low
// guard. A target's own protection does not count.
func (s *scan) unprotected(c *cgroup, size uint64) uint64 {
	if c == s.target {
		return size
	}
	protected := c.limits.Min / PageSize
	if !s.breakLow {
		protected = max(protected, c.limits.Low/PageSize)
	}
	if protected == 0 {
		return size
	}
	return max(size-size*min(protected, c.usage)/(c.usage+1), min(size, batch))
}
