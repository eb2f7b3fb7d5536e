package numapolicy

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// fillReach is how many intervals ahead a node that fills up is taken for full.
// One goes by until it is looked at again, and in the next the write of
// cpuset.mems has to be carried out, which moves memory at some hundred MiB a
// second; the third is for a program that grows faster than it did. More steers
// away from nodes that would never have been full; less is too late, and what is
// too late is swapped.
const fillReach = 3

// growth is how fast a node fills with what only swap could free again: all
// that is neither free nor page cache.
type growth struct {
	used   memcg.Field // bytes, in the last reading
	before float64     // bytes a second, over the last interval
	rate   float64     // bytes a second, the lower of the last two: one burst is no trend
}

// look takes in one reading. Where it does not tell, or is the first, the node
// does not grow as far as anybody knows.
func (g *growth) look(node *memcg.Node, elapsed time.Duration) {
	last := g.used
	g.used = usedOf(node)
	d, ok := g.used.Change(last)
	if !ok || elapsed <= 0 {
		g.before, g.rate = 0, 0
		return
	}
	latest := max(float64(d), 0) / elapsed.Seconds()
	g.before, g.rate = latest, min(latest, g.before)
}

// in returns by how many bytes a node will have grown.
func (g *growth) in(d time.Duration) uint64 { return uint64(g.rate * d.Seconds()) }

// usedOf returns how many bytes of a node are neither free nor page cache;
// absent where one of these is.
func usedOf(node *memcg.Node) memcg.Field {
	rest := memcg.Sum(node.MemFree, node.InactiveFile, node.ActiveFile)
	total, sized := node.MemTotal.Get()
	v, ok := rest.Get()
	switch {
	case !ok:
		return memcg.Absent(rest.State())
	case !sized:
		return memcg.Absent(node.MemTotal.State())
	}
	return memcg.Value(total - min(v, total))
}

// marks works out by what free memory the node is short. The least is where the
// kernel begins: the larger of the operator's low mark and of what the kernel
// keeps. The low mark is as far above that as the node fills up until it is
// looked at again, or kswapd, which swaps, would be first; the high mark is above
// the low one by what the operator's are apart.
func (l *level) marks(node *memcg.Node, m Marks, elapsed time.Duration) {
	l.least = uint64(m.Low * float64(l.total))
	apart := uint64(m.High*float64(l.total)) - l.least
	if reserve, ok := node.Reserve.Get(); ok {
		l.least = max(l.least, min(reserve, l.total))
	}
	l.low = addSaturated(l.least, l.growth.in(elapsed))
	l.high = addSaturated(l.low, apart)
}

// lasting reports whether a node that is not short has room well above its high mark:
// by as much as the marks are apart, and by what it fills by in the time for which no
// other change may follow.
func (l *level) lasting() bool {
	if l.short {
		return false
	}
	above := max(l.high-l.low, l.growth.in(memsInterval))
	return addSaturated(l.free, l.cache) >= addSaturated(l.high, above)
}

// full reports whether a node that fills up will be at its least, with its cache
// gone, before so much time has passed.
func (l *level) full(within time.Duration) bool {
	grown := l.growth.in(within)
	return grown > 0 && addSaturated(l.free, l.cache) < addSaturated(l.least, grown)
}
