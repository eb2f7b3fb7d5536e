package sim

import (
	"container/heap"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Host is a simulated host. Its methods fall in two: the seam that a
// controller uses, and the hands of a test that make cgroups, start workloads
// and let time pass. All may be called from any goroutine.
type Host struct {
	mu     sync.Mutex
	cfg    Config
	kernel Kernel
	now    time.Duration
	renew  time.Duration // when pressure averages are due next

	arena      arena
	nodes      []node
	everyNode  []int
	withMemory memcg.NodeMask
	groups     []*cgroup // by number; nil once removed
	byPath     map[string]*cgroup
	inodes     uint64
	issued     map[memcg.ID]bool

	swapTotal, swapUsed  uint64
	swapClass            memcg.SwapClass
	swapPrice, filePrice time.Duration
	writePrice           time.Duration
	swappiness           int

	cpus  processors
	queue queue
	jobs  uint64 // started so far

	faults   []*injected
	writes   uint64
	watchers []chan struct{}
	ear      ear

	scratch []*cgroup
	near    []int
	trace   func(traced)
}

// firstInode is the root's; the others follow. The kernel's root is 1.
const firstInode = 1

// New returns a host with nothing but the root cgroup, at time 0. A
// configuration that makes no sense panics.
func New(cfg Config) *Host {
	h := &Host{
		cfg: cfg, kernel: cfg.Kernel, renew: psiPeriod, arena: newArena(),
		byPath: map[string]*cgroup{}, issued: map[memcg.ID]bool{}, inodes: firstInode,
		filePrice: cfg.FilePrice, swapTotal: cfg.Swap.Bytes / PageSize, swapClass: cfg.Swap.Class,
		swapPrice: cfg.Swap.Price, writePrice: cfg.Swap.WritePrice, swappiness: 60,
		cpus: processors{free: make([]time.Duration, max(cfg.CPUs, 0))},
	}
	if cfg.Kernel.Name == "" {
		panic("sim: no kernel: pass one of the Kernel values")
	}
	if len(cfg.Nodes) == 0 {
		panic("sim: no nodes: a host has at least one")
	}
	for i, n := range cfg.Nodes {
		if i > 0 && n.ID <= cfg.Nodes[i-1].ID || n.ID < 0 || n.ID > memcg.MaxNode {
			panic(fmt.Sprintf("sim: node %d: ids must ascend within 0..%d", n.ID, memcg.MaxNode))
		}
		if n.Distance != nil && len(n.Distance) != len(cfg.Nodes) {
			panic(fmt.Sprintf("sim: node %d has %d distances on a host of %d nodes", n.ID, len(n.Distance), len(cfg.Nodes)))
		}
	}
	h.addNodes(cfg.Nodes)
	if h.withMemory.Empty() {
		panic("sim: no node has memory")
	}
	for i := range h.nodes {
		h.everyNode = append(h.everyNode, i)
	}
	switch {
	case h.swapTotal == 0:
		h.swapClass = memcg.SwapNone
	case h.swapClass == memcg.SwapUnknown:
		h.swapClass = memcg.SwapZram
	}
	if h.swapPrice == 0 {
		h.swapPrice = swapPrices[h.swapClass]
	}
	if h.filePrice == 0 {
		h.filePrice = DefaultFilePrice
	}
	if v, ok := cfg.HostSwappiness.Get(); ok {
		h.swappiness = v
	}
	h.addGroup("/", nil, Limits{})
	return h
}

func (h *Host) root() *cgroup { return h.groups[0] }

// misuse reports a call that no correct caller makes.
func (h *Host) misuse(format string, args ...any) error {
	err := fmt.Errorf("sim: "+format, args...)
	if h.cfg.Fail == nil {
		panic(err)
	}
	h.cfg.Fail("%v", err)
	return err
}

func (h *Host) addGroup(p string, parent *cgroup, l Limits) *cgroup {
	c := &cgroup{
		id: memcg.ID{Path: p, Inode: h.inodes}, number: uint32(len(h.groups)), parent: parent, ear: &h.ear,
		limits: l, vecs: make([]vec, len(h.nodes)),
	}
	h.inodes++
	above := h.withMemory
	if parent != nil {
		parent.kids = append(parent.kids, c)
		above = parent.allowed
	}
	c.grant(above)
	h.groups = append(h.groups, c)
	h.byPath[p] = c
	h.issued[c.id] = true
	return c
}

// Cgroup makes a cgroup with some limits, as mkdir(2) does: its parent must
// exist. Making one that exists is misuse.
func (h *Host) Cgroup(p string, l Limits) memcg.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case p != path.Clean(p) || p[0] != '/' || p == "/":
		h.misuse("make %q: not a clean path below /", p)
		return memcg.ID{}
	case h.byPath[p] != nil:
		h.misuse("make %s: it exists", p)
		return memcg.ID{}
	}
	parent := h.byPath[path.Dir(p)]
	if parent == nil {
		h.misuse("make %s: its parent does not exist", p)
		return memcg.ID{}
	}
	c := h.addGroup(p, parent, l)
	h.signal()
	return c.id
}

// SetLimits writes all limits of a cgroup, as another owner would. Usage over
// a lowered memory.high or memory.max is reclaimed at once, in nobody's time.
func (h *Host) SetLimits(p string, l Limits) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known("set limits of", p)
	if c == nil {
		return
	}
	c.limits = l
	above := h.withMemory
	if c.parent != nil {
		above = c.parent.allowed
	}
	c.grant(above)
	bound := min(limitPages(l.High), limitPages(l.Max))
	for vain := 0; c.usage > bound && vain <= maxRetries; {
		if h.shrinkAll(c, max(c.usage-bound, batch), direct).reclaimed == 0 {
			vain++
		}
	}
}

// Start starts a workload in a cgroup. Its pages go to the given nodes in
// turn, or to the first node with memory; where a node is full, to its nearest
// neighbour. Starting in a cgroup that does not exist is misuse.
func (h *Host) Start(p string, w Workload, on ...memcg.NodeID) *Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.known("start a workload in", p)
	if c == nil {
		return nil
	}
	j := &Job{h: h, group: c, name: w.String(), due: h.now, ready: h.now, began: h.now, order: h.jobs, place: -1, threads: 1}
	h.jobs++
	for _, id := range on {
		i, ok := h.nodeIndex(id)
		if !ok {
			h.misuse("start %s on node %d: there is no such node", j.name, id)
			return nil
		}
		j.nodes = append(j.nodes, i)
	}
	if len(on) == 0 {
		j.nodes = []int{h.firstNode(c)}
	}
	rate, err := w.plan(h, j)
	if err != nil {
		h.misuse("start %s: %v", j.name, err)
		return nil
	}
	if rate == 0 {
		rate = DefaultRate
	}
	j.gap = time.Duration(uint64(PageSize*time.Second) / rate)
	c.jobs = append(c.jobs, j)
	for g := c; g != nil; g = g.parent {
		g.procs++
		g.running += j.threads
	}
	heap.Push(&h.queue, j)
	return j
}

func (h *Host) firstNode(c *cgroup) int {
	for i := range h.nodes {
		if c.allowed.Has(h.nodes[i].id) {
			return i
		}
	}
	return 0
}

// known returns a cgroup that the test must have made.
func (h *Host) known(what, p string) *cgroup {
	c := h.byPath[p]
	if c == nil {
		h.misuse("%s %s: there is no such cgroup", what, p)
	}
	return c
}
