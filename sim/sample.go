package sim

import (
	"github.com/memagent/memagent/memcg"
)

// Sample reads one cgroup.
func (h *Host) Sample(id memcg.ID, s *memcg.Sample) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.fault(OpSample, id.Path)
	if f.fails() {
		return f.error("sample " + id.Path)
	}
	c, err := h.find("sample", id)
	if err != nil {
		return err
	}
	nodes := s.Nodes[:0]
	*s = memcg.Sample{
		Current: bytesOf(c.usage),
		Min:     memcg.LimitOf(c.limits.Min), Low: memcg.LimitOf(c.limits.Low),
		High: shown(c.limits.High), Max: shown(c.limits.Max),
		Pressure: h.pressure(c), Events: shownEvents(&c.events), EventsLocal: shownEvents(&c.local),
		Populated: memcg.Value(min(uint64(c.procs), 1)), Frozen: memcg.Value(0),
		MemsState: memcg.Present, Mems: c.limits.Mems, MemsEffective: c.allowed,
	}
	if h.cfg.NoCpuset {
		s.MemsState, s.Mems, s.MemsEffective = memcg.Unsupported, memcg.NodeMask{}, memcg.NodeMask{}
	}
	h.sampleSwap(c, s)
	h.sampleStat(c, &s.Stat)
	s.Nodes, s.NodesState = h.sampleNodes(c, nodes)
	return nil
}

func (h *Host) sampleSwap(c *cgroup, s *memcg.Sample) {
	s.SwapMax = shown(c.limits.SwapMax)
	if s.SwapMax.State() != memcg.Present {
		none := memcg.Absent(s.SwapMax.State())
		s.SwapCurrent, s.SwapRoom = none, memcg.NoLimitFile(s.SwapMax.State())
		s.SwapEvents = memcg.SwapEvents{High: none, Max: none, Fail: none}
		return
	}
	s.SwapCurrent = bytesOf(c.swap)
	s.SwapRoom = memcg.Unlimited()
	if room := c.swapRoom(); room < unlimited {
		s.SwapRoom = memcg.LimitOf(room * PageSize)
	}
	s.SwapEvents = memcg.SwapEvents{
		High: memcg.Value(0), Max: memcg.Value(c.swapEvents[swapMax]), Fail: memcg.Value(c.swapEvents[swapFail]),
	}
}

func (h *Host) sampleStat(c *cgroup, s *memcg.Stats) {
	for k := range memcg.NumStats {
		if !h.kernel.keys[k] || c.hidden[k] {
			s.Set(k, memcg.Absent(memcg.Unsupported))
			continue
		}
		s.Set(k, memcg.Value(h.stat(c, k)-c.offset[k]))
	}
}

// stat returns one key of memory.stat, as it would be without a reset. Keys of
// what is not simulated are zero.
func (h *Host) stat(c *cgroup, k memcg.Stat) uint64 {
	zswap := h.swapClass == memcg.SwapZswap
	switch k {
	case memcg.StatAnon:
		return (c.listed(inactiveAnon) + c.listed(activeAnon) + c.listed(unevictable)) * PageSize
	case memcg.StatFile:
		return (c.listed(inactiveFile) + c.listed(activeFile)) * PageSize
	case memcg.StatInactiveAnon:
		return c.listed(inactiveAnon) * PageSize
	case memcg.StatActiveAnon:
		return c.listed(activeAnon) * PageSize
	case memcg.StatInactiveFile:
		return c.listed(inactiveFile) * PageSize
	case memcg.StatActiveFile:
		return c.listed(activeFile) * PageSize
	case memcg.StatUnevictable:
		return c.listed(unevictable) * PageSize
	case memcg.StatZswapped:
		if zswap {
			return c.swap * PageSize
		}
	case memcg.StatRefault:
		return c.sum(cRefaultAnon) + c.sum(cRefaultFile)
	case memcg.StatActivate:
		return c.sum(cActivateAnon) + c.sum(cActivateFile)
	case memcg.StatScan:
		return c.sum(cScanKswapd) + c.sum(cScanDirect) + c.sum(cScanProactive)
	case memcg.StatSteal:
		return c.sum(cStealKswapd) + c.sum(cStealDirect) + c.sum(cStealProactive)
	case memcg.StatScanDirect:
		return c.sum(cScanDirect) + h.unlessApart(c.sum(cScanProactive))
	case memcg.StatStealDirect:
		return c.sum(cStealDirect) + h.unlessApart(c.sum(cStealProactive))
	case memcg.StatPswpin, memcg.StatPswpout:
		if !zswap {
			return c.sum(counterOf[k])
		}
	case memcg.StatZswpin, memcg.StatZswpout:
		if zswap {
			return c.sum(counterOf[k])
		}
	default:
		if n, ok := counterOf[k]; ok {
			return c.sum(n)
		}
	}
	return 0
}

func (h *Host) unlessApart(proactive uint64) uint64 {
	if h.kernel.Proactive {
		return 0
	}
	return proactive
}

var counterOf = map[memcg.Stat]counter{
	memcg.StatRefaultAnon: cRefaultAnon, memcg.StatRefaultFile: cRefaultFile,
	memcg.StatActivateAnon: cActivateAnon, memcg.StatActivateFile: cActivateFile,
	memcg.StatRestoreAnon: cRestoreAnon, memcg.StatRestoreFile: cRestoreFile,
	memcg.StatScanKswapd: cScanKswapd, memcg.StatStealKswapd: cStealKswapd,
	memcg.StatScanProactive: cScanProactive, memcg.StatStealProactive: cStealProactive,
	memcg.StatRefill: cRefill, memcg.StatPgactivate: cPgactivate, memcg.StatPgdeactivate: cPgdeactivate,
	memcg.StatFault: cFault, memcg.StatMajfault: cMajfault,
	memcg.StatPswpin: cSwapin, memcg.StatPswpout: cSwapout,
	memcg.StatZswpin: cSwapin, memcg.StatZswpout: cSwapout,
}

func (h *Host) sampleNodes(c *cgroup, dst []memcg.NodeStats) ([]memcg.NodeStats, memcg.State) {
	if h.cfg.NoNUMAStat {
		return dst, memcg.Unsupported
	}
	for i := range h.nodes {
		if h.nodes[i].total == 0 {
			continue
		}
		dst = append(dst, memcg.NodeStats{ID: h.nodes[i].id})
		h.sampleNode(&c.vecs[i], &dst[len(dst)-1])
	}
	return dst, memcg.Present
}

func (h *Host) sampleNode(v *vec, s *memcg.NodeStats) {
	s.SetAll(memcg.Unsupported)
	set := func(k memcg.NodeStat, n uint64) { s.Set(k, memcg.Value(n)) }
	set(memcg.NodeAnon, (v.size[inactiveAnon]+v.size[activeAnon]+v.size[unevictable])*PageSize)
	set(memcg.NodeFile, (v.size[inactiveFile]+v.size[activeFile])*PageSize)
	set(memcg.NodeInactiveAnon, v.size[inactiveAnon]*PageSize)
	set(memcg.NodeActiveAnon, v.size[activeAnon]*PageSize)
	set(memcg.NodeInactiveFile, v.size[inactiveFile]*PageSize)
	set(memcg.NodeActiveFile, v.size[activeFile]*PageSize)
	set(memcg.NodeUnevictable, v.size[unevictable]*PageSize)
	set(memcg.NodeFileDirty, 0)
	set(memcg.NodeFileWriteback, 0)
	if h.kernel.DetectAnon {
		set(memcg.NodeRefaultAnon, v.count[cRefaultAnon])
		set(memcg.NodeRefaultFile, v.count[cRefaultFile])
	}
	if h.kernel.NodeScan {
		set(memcg.NodeScan, v.count[cScanKswapd]+v.count[cScanDirect]+v.count[cScanProactive])
		set(memcg.NodeSteal, v.count[cStealKswapd]+v.count[cStealDirect]+v.count[cStealProactive])
	}
	if h.kernel.Prints(memcg.StatDemoteDirect) {
		set(memcg.NodeDemote, 0)
	}
}

// HostSample reads the host.
func (h *Host) HostSample(s *memcg.HostSample) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.fault(OpHostSample, ""); f.fails() {
		return f.error("sample host")
	}
	nodes := s.Nodes[:0]
	var total, free, low, high uint64
	root := h.root()
	for i := range h.nodes {
		n := &h.nodes[i]
		total, free, low, high = total+n.total, free+n.free, low+n.low, high+n.high
		v := &root.vecs[i]
		nodes = append(nodes, memcg.Node{
			ID: n.id, MemTotal: bytesOf(n.total), MemFree: bytesOf(n.free),
			InactiveFile: bytesOf(v.size[inactiveFile]), ActiveFile: bytesOf(v.size[activeFile]), Reserve: bytesOf(n.high),
			HasMemory: n.total > 0, HasCPU: !n.noCPU, Distance: n.distance,
		})
	}
	cache := root.listed(inactiveFile) + root.listed(activeFile)
	available := free - min(free, low) + cache - min(cache/2, low)
	*s = memcg.HostSample{
		PageSize: PageSize, MemTotal: bytesOf(total), MemFree: bytesOf(free), MemAvailable: bytesOf(available),
		SwapTotal: bytesOf(h.swapTotal), SwapFree: bytesOf(h.swapTotal - h.swapUsed), Swap: h.swapClass,
		LRUGen: memcg.Absent(memcg.Unsupported), Demotion: memcg.Absent(memcg.Unsupported), Pressure: h.pressure(root), Nodes: nodes,
	}
	return nil
}

func shownEvents(e *[numEvents]uint64) memcg.Events {
	return memcg.Events{
		Low: memcg.Value(e[eventLow]), High: memcg.Value(e[eventHigh]), Max: memcg.Value(e[eventMax]),
		OOM: memcg.Value(e[eventOOM]), OOMKill: memcg.Value(e[eventOOMKill]),
	}
}

func bytesOf(pages uint64) memcg.Field { return memcg.Value(pages * PageSize) }
