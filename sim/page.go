package sim

// page is one page of some workload, resident or out. Pages are named by their
// index in arena.pages; 0 is no page.
type page struct {
	next, prev uint32 // neighbours on its list while resident; next is towards the tail
	owner      uint32 // number of the cgroup it is charged to, also in swap
	by         uint32 // number of the cgroup whose reclaim evicted it
	shadow     uint64 // nonresident age of by on node at the eviction
	touched    uint32 // last touch, milliseconds of the virtual clock
	node       uint16 // index of the node it is or last was on
	flags      flags
}

type flags uint16

const (
	resident   flags = 1 << iota // on exactly one list
	out                          // evicted, remembered by a shadow; anon is in swap
	file                         // else anon
	active                       // on an active list
	young                        // accessed bit of the page table
	referenced                   // PG_referenced
	workingset                   // PG_workingset: was active once
	exec                         // mapped executable: kept active while in use
	locked                       // unevictable
	orphan                       // nobody will come back for it
)

// kindOf says which pair of lists a page belongs to.
func (p *page) kind() int {
	if p.flags&file != 0 {
		return fileKind
	}
	return anonKind
}

// Kinds of memory, and the order of everything that is kept for both.
const (
	anonKind = iota
	fileKind
	numKinds
)

// lru names one list of a cgroup on a node.
type lru int

const (
	inactiveAnon lru = iota
	activeAnon
	inactiveFile
	activeFile
	unevictable
	numLists
)

var listNames = [numLists]string{"inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"}

func inactiveOf(kind int) lru { return lru(2 * kind) }
func activeOf(kind int) lru   { return lru(2*kind + 1) }

// on returns the list that the page's flags put it on.
func (p *page) on() lru {
	switch {
	case p.flags&locked != 0:
		return unevictable
	case p.flags&active != 0:
		return activeOf(p.kind())
	}
	return inactiveOf(p.kind())
}

// list is one LRU list: new at the head, scanned from the tail.
type list struct {
	head, tail uint32
	n          uint64
}

// arena holds all pages of a host.
type arena struct {
	pages []page
	free  []uint32
}

func newArena() arena { return arena{pages: make([]page, 1)} }

// take returns an unused page.
func (a *arena) take() uint32 {
	if n := len(a.free); n > 0 {
		i := a.free[n-1]
		a.free = a.free[:n-1]
		return i
	}
	a.pages = append(a.pages, page{})
	return uint32(len(a.pages) - 1)
}

// give takes back a page that is neither resident nor out.
func (a *arena) give(i uint32) {
	a.pages[i] = page{}
	a.free = append(a.free, i)
}

func (a *arena) pushHead(l *list, i uint32) {
	p := &a.pages[i]
	p.prev, p.next = 0, l.head
	if l.head != 0 {
		a.pages[l.head].prev = i
	} else {
		l.tail = i
	}
	l.head = i
	l.n++
}

func (a *arena) pushTail(l *list, i uint32) {
	p := &a.pages[i]
	p.next, p.prev = 0, l.tail
	if l.tail != 0 {
		a.pages[l.tail].next = i
	} else {
		l.head = i
	}
	l.tail = i
	l.n++
}

func (a *arena) unlink(l *list, i uint32) {
	p := &a.pages[i]
	if p.prev != 0 {
		a.pages[p.prev].next = p.next
	} else {
		l.head = p.next
	}
	if p.next != 0 {
		a.pages[p.next].prev = p.prev
	} else {
		l.tail = p.prev
	}
	p.next, p.prev = 0, 0
	l.n--
}
