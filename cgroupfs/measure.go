package cgroupfs

import (
	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// measured is what a request is judged by, read before, between and after its
// chunks.
type measured struct {
	current   memcg.Field // memory.current, bytes
	swap      memcg.Field // memory.swap.current, bytes
	steal     memcg.Field // pgsteal, pages
	demoted   memcg.Field // pgdemote_*, pages
	populated memcg.Field // 0 or 1
}

// gauge keeps open what a request measures.
type gauge struct {
	t     *target
	files files
	buf   scratch
}

func newGauge(t *target) *gauge { return &gauge{t: t, buf: scratch{b: make([]byte, scratchSize)}} }

func (g *gauge) close() {
	for f := range g.files {
		g.t.fs.shut(&g.files[f])
	}
}

// file reads one file. A file that the living cgroup lacks has no content and
// no error; ok is false for both.
func (g *gauge) file(f file) (b []byte, ok bool, err error) {
	o := &g.files[f]
	b, err = g.t.fs.readFile(g.t.dir, o, f, &g.buf)
	switch err {
	case nil:
		return b, true, nil
	case errAbsent:
		return nil, false, nil
	case errNoFile:
		if g.t.fs.lives(g.t.id) {
			o.state = absent
			return nil, false, nil
		}
		err = unix.ENOENT
	case errVanished:
		err = unix.ENODEV
	}
	return nil, false, newError("read", g.t.fs.file(g.t.id.Path, fileNames[f]), err)
}

// read measures once. memory.current must be there; the rest may be absent.
func (g *gauge) read() (m measured, err error) {
	unsupported := memcg.Absent(memcg.Unsupported)
	m = measured{current: unsupported, swap: unsupported, steal: unsupported, demoted: unsupported, populated: unsupported}
	b, ok, err := g.file(cgroupEvents)
	if err != nil {
		return m, err
	}
	if ok {
		m.populated, _ = parseCgroupEvents(b)
	}
	if b, ok, err = g.file(memoryCurrent); err != nil {
		return m, err
	}
	if ok {
		m.current = parseValueFile(b)
	}
	if !m.current.Known() {
		return m, &opError{Op: "read", File: g.t.fs.file(g.t.id.Path, fileNames[memoryCurrent]), Kind: memcg.ErrInvalid,
			Hint: "without it a request cannot be bounded"}
	}
	if b, ok, err = g.file(swapCurrent); err != nil {
		return m, err
	}
	if ok {
		m.swap = parseValueFile(b)
	}
	if b, ok, err = g.file(memoryStat); err != nil {
		return m, err
	}
	if ok {
		var s memcg.Stats
		parseStat(b, &s)
		if m.steal = s.Get(memcg.StatSteal); !m.steal.Known() {
			m.steal = memcg.SumKnown(s.Get(memcg.StatStealKswapd), s.Get(memcg.StatStealDirect),
				s.Get(memcg.StatStealKhugepaged), s.Get(memcg.StatStealProactive))
		}
		m.demoted = memcg.SumKnown(s.Get(memcg.StatDemoteKswapd), s.Get(memcg.StatDemoteDirect),
			s.Get(memcg.StatDemoteKhugepaged), s.Get(memcg.StatDemoteProactive))
	}
	return m, nil
}

// taken returns how many bytes are gone since before: the greater of the fall
// of memory.current and the growth of pgsteal. The one misses what the
// workload allocated meanwhile, the other may lag by 64 pages a CPU.
func (m measured) taken(before measured, page uint64) uint64 {
	var b uint64
	if d, ok := before.current.Since(m.current); ok {
		b = d
	}
	if d, ok := m.steal.Since(before.steal); ok && d <= ^uint64(0)/page {
		b = max(b, d*page)
	}
	return b
}

// judge fills the measured part of an outcome.
func judge(o *memcg.Outcome, before, after measured, page uint64) {
	o.Reclaimed = scaled(growth(before.steal, after.steal), page)
	o.Demoted = scaled(growth(before.demoted, after.demoted), page)
	o.Shrunk = rise(after.current, before.current)
	o.SwapOut = rise(before.swap, after.swap)
}

// growth is a counter's delta. One that went back, as after a reset, has none.
func growth(before, after memcg.Field) memcg.Field {
	if d, ok := after.Since(before); ok {
		return memcg.Value(d)
	}
	return whyNot(before, after)
}

// rise is how much a gauge rose, 0 when it fell.
func rise(before, after memcg.Field) memcg.Field {
	d, ok := after.Change(before)
	if !ok {
		return whyNot(before, after)
	}
	return memcg.Value(uint64(max(d, 0)))
}

func whyNot(before, after memcg.Field) memcg.Field {
	for _, f := range []memcg.Field{before, after} {
		if !f.Known() {
			return memcg.Absent(f.State())
		}
	}
	return memcg.Absent(memcg.Invalid)
}

func scaled(pages memcg.Field, page uint64) memcg.Field {
	p, ok := pages.Get()
	if !ok {
		return pages
	}
	if p > ^uint64(0)/page {
		return memcg.Absent(memcg.Invalid)
	}
	return memcg.Value(p * page)
}
