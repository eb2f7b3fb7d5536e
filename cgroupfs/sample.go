package cgroupfs

import (
	"strconv"

	"github.com/memagent/memagent/memcg"
)

// reading is one sample under way.
type reading struct {
	fs    *FS
	c     *cgroup
	buf   *scratch
	alive bool  // proved during this sample
	gone  bool  // proved during this sample
	err   error // of a vital file
}

// Sample reads all memory files of one cgroup into s; what s held is gone. It
// allocates nothing once the cgroup's files are open.
//
// The error is memcg.ErrGone when the cgroup is no longer there, and s is then
// all Missing, never zero. It Is memcg.ErrDenied, and names the file, when
// memory.current or memory.stat may not be read; other fields of s are filled
// all the same. Trouble with any other file leaves its fields Missing and is
// told once by Notes.
//
// A file that a living cgroup does not have makes its fields Unsupported. It
// is not looked for again for 60 samples of this cgroup.
func (fs *FS) Sample(id memcg.ID, s *memcg.Sample) error {
	nodes := s.Nodes[:0]
	*s = memcg.Sample{Nodes: nodes}
	c, err := fs.acquire(id)
	if err != nil {
		return err
	}
	defer fs.done(c)
	buf := fs.scratch.get()
	defer fs.scratch.put(buf)

	c.retry()
	r := reading{fs: fs, c: c, buf: buf}
	r.memory(s)
	r.limits(s)
	r.swap(s)
	r.cpuset(s)
	if r.gone {
		*s = memcg.Sample{Nodes: nodes}
		fs.drop(c)
		return &opError{Op: "read", File: fs.file(id.Path, ""), Kind: memcg.ErrGone}
	}
	return r.err
}

// file reads one file. ok is false when it has no content to parse, and why
// says what its fields are then.
func (r *reading) file(f file) (b []byte, why memcg.State, ok bool) {
	if r.gone {
		return nil, memcg.Missing, false
	}
	o := &r.c.files[f]
	b, err := r.fs.readFile(r.c.dir, o, f, r.buf)
	switch err {
	case nil:
		return b, memcg.Present, true
	case errAbsent:
		return nil, memcg.Unsupported, false
	case errNoFile:
		return nil, r.lacks(o), false
	case errVanished:
		// Pressure accounting of a living cgroup can be switched off
		// (cgroup.pressure). Any other open file is removed with its cgroup or
		// its controller; where that was the controller, the next sample finds
		// the same cgroup anew, without the files.
		if f == memoryPressure {
			return nil, r.lacks(o), false
		}
		r.gone = true
		return nil, memcg.Missing, false
	}
	wrapped := newError("read", r.fs.file(r.c.id.Path, fileNames[f]), err)
	if !f.vital() {
		r.fs.notes.add(f, r.c.id.Path, wrapped)
	} else if r.err == nil {
		r.err = wrapped
	}
	return nil, memcg.Missing, false
}

// lacks finds out what a file that could not be found means. Every file of a
// removed cgroup is missing, so the path is looked up again, once a sample.
func (r *reading) lacks(o *openFile) memcg.State {
	if !r.alive {
		if !r.fs.lives(r.c.id) {
			r.gone = true
			return memcg.Missing
		}
		r.alive = true
	}
	o.state = absent
	return memcg.Unsupported
}

// value reads a file of one number.
func (r *reading) value(f file) memcg.Field {
	b, why, ok := r.file(f)
	if !ok {
		return memcg.Absent(why)
	}
	v := parseValueFile(b)
	if !v.Known() {
		r.odd(f, b)
	}
	return v
}

// limit reads a limit file.
func (r *reading) limit(f file) memcg.Limit {
	b, why, ok := r.file(f)
	if !ok {
		return memcg.NoLimitFile(why)
	}
	l := parseLimitFile(b)
	if l.State() != memcg.Present {
		r.odd(f, b)
	}
	return l
}

// odd notes content that cannot be read.
func (r *reading) odd(f file, b []byte) {
	const show = 64 // bytes of it
	r.fs.notes.add(f, r.c.id.Path, &opError{
		Op: "read", File: r.fs.file(r.c.id.Path, fileNames[f]), Kind: memcg.ErrInvalid,
		Hint: strconv.Quote(string(b[:min(len(b), show)])),
	})
}

func (r *reading) memory(s *memcg.Sample) {
	was := r.c.files[memoryCurrent].state
	s.Current = r.value(memoryCurrent)
	if was == notTried && s.Current.Known() {
		r.c.tryAgain() // the memory controller is there: so may be its other files
	}
	if b, why, ok := r.file(memoryStat); ok {
		parseStat(b, &s.Stat)
		if !s.Stat.Valid() {
			r.odd(memoryStat, invalidLine(b))
		}
	} else {
		s.Stat.SetAll(why)
	}
	if b, why, ok := r.file(memoryNumaStat); ok {
		if s.Nodes, s.NodesState = parseNumaStat(b, s.Nodes); s.NodesState != memcg.Present {
			r.odd(memoryNumaStat, b)
		}
	} else {
		s.NodesState = why
	}
	if b, why, ok := r.file(memoryPressure); ok {
		s.Pressure = parsePSI(b)
	} else {
		s.Pressure = noPressure(why)
	}
	if b, why, ok := r.file(memoryEvents); ok {
		s.Events = parseEvents(b)
	} else {
		s.Events = noEvents(why)
	}
	if b, why, ok := r.file(memoryEventsLocal); ok {
		s.EventsLocal = parseEvents(b)
	} else {
		s.EventsLocal = noEvents(why)
	}
	if b, why, ok := r.file(cgroupEvents); ok {
		s.Populated, s.Frozen = parseCgroupEvents(b)
	} else {
		s.Populated, s.Frozen = memcg.Absent(why), memcg.Absent(why)
	}
}

func (r *reading) limits(s *memcg.Sample) {
	s.Min = r.limit(memoryMin)
	s.Low = r.limit(memoryLow)
	s.High = r.limit(memoryHigh)
	s.Max = r.limit(memoryMax)
}

func (r *reading) swap(s *memcg.Sample) {
	s.SwapCurrent = r.value(swapCurrent)
	s.SwapMax = r.limit(swapMax)
	if b, why, ok := r.file(swapEvents); ok {
		s.SwapEvents = parseSwapEvents(b)
	} else {
		s.SwapEvents = noSwapEvents(why)
	}
	if r.gone {
		return
	}
	s.SwapRoom = r.fs.swapRoom(r.c, s.SwapMax.Room(s.SwapCurrent), r.buf)
}

// cpuset reads the nodes. The effective set is what counts: an empty
// cpuset.mems is normal and means inherit (case c46), and the root has none.
func (r *reading) cpuset(s *memcg.Sample) {
	b, why, ok := r.file(cpusetMemsEffective)
	if !ok {
		s.MemsState = why
		return
	}
	if s.MemsEffective, ok = parseNodesFile(b); !ok || s.MemsEffective.Empty() {
		r.odd(cpusetMemsEffective, b)
		s.MemsState = memcg.Invalid
		return
	}
	s.MemsState = memcg.Present
	b, why, ok = r.file(cpusetMems)
	switch {
	case ok:
		if s.Mems, ok = parseNodesFile(b); !ok {
			r.odd(cpusetMems, b)
			s.MemsState = memcg.Invalid
		}
	case why != memcg.Unsupported:
		s.MemsState = why
	}
	if s.MemsState != memcg.Present {
		s.Mems, s.MemsEffective = memcg.NodeMask{}, memcg.NodeMask{}
	}
}
