package recording

import "github.com/memagent/memagent/memcg"

// event names the fields of an event, in the order of Version.
func (c *codec) event(e *Event) {
	c.span(&e.At)
	num(c, &e.Wall)
	num(c, &e.Zone)
	switch e.Kind {
	case Configured:
		str(c, &e.Config.Text)
		str(c, &e.Config.Mode)
		str(c, &e.Config.Self)
		c.flag(&e.Config.Draws)
	case Tracked:
		c.flag(&e.Complete)
		list(c, &e.Cgroups, (*codec).id)
	case HostSeen:
		c.host(&e.Host)
	case Looked:
		c.looked(e)
	case Stepped:
		num(c, &e.Slots)
		str(c, &e.NoKnobs)
		list(c, &e.Draws, num[uint64])
		list(c, &e.Done, (*codec).result)
	case CameBack:
		list(c, &e.Done, (*codec).result)
	case Heard:
		c.id(&e.Cgroup)
	case Described:
		c.id(&e.Cgroup)
		c.who(&e.Who)
	case Rested:
		c.id(&e.Cgroup)
		str(c, &e.Rest.Why)
		c.span(&e.Rest.Until)
		c.span(&e.Rest.Length)
	case ended:
		num(c, &e.Recorded)
	}
}

func (c *codec) looked(e *Event) {
	c.id(&e.Cgroup)
	c.fault(&e.Err)
	c.field(&e.Glance)
	if e.Err != nil || e.Glance.Known() {
		return
	}
	c.sample(&e.Sample)
	c.fault(&e.AgesErr)
	list(c, &e.Ages, (*codec).generation)
	c.fault(&e.ParErr)
	c.mask(&e.Parent)
}

func (c *codec) sample(s *memcg.Sample) {
	c.field(&s.Current)
	c.field(&s.SwapCurrent)
	if c.reading {
		s.Stat.SetAll(memcg.Missing) // keys that the file's program did not know
	}
	for _, k := range c.stats {
		f := memcg.Absent(memcg.Unsupported)
		if k < memcg.NumStats {
			f = s.Stat.Get(k)
		}
		c.field(&f)
		if c.reading && k < memcg.NumStats {
			s.Stat.Set(k, f)
		}
	}
	num(c, &s.NodesState)
	list(c, &s.Nodes, (*codec).node)
	c.pressure(&s.Pressure)
	for _, e := range [...]*memcg.Events{&s.Events, &s.EventsLocal} {
		for _, f := range [...]*memcg.Field{&e.Low, &e.High, &e.Max, &e.OOM, &e.OOMKill} {
			c.field(f)
		}
	}
	for _, f := range [...]*memcg.Field{&s.SwapEvents.High, &s.SwapEvents.Max, &s.SwapEvents.Fail, &s.Populated, &s.Frozen} {
		c.field(f)
	}
	for _, l := range [...]*memcg.Limit{&s.Min, &s.Low, &s.High, &s.Max, &s.SwapMax, &s.SwapRoom} {
		c.limit(l)
	}
	num(c, &s.MemsState)
	c.mask(&s.Mems)
	c.mask(&s.MemsEffective)
}

func (c *codec) node(n *memcg.NodeStats) {
	num(c, &n.ID)
	for k := range c.perNode {
		f := memcg.Absent(memcg.Missing)
		known := memcg.NodeStat(k) < memcg.NumNodeStats
		if known {
			f = n.Get(memcg.NodeStat(k))
		}
		c.field(&f)
		if c.reading && known {
			n.Set(memcg.NodeStat(k), f)
		}
	}
}

func (c *codec) pressure(p *memcg.Pressure) {
	for _, s := range [...]*memcg.Stall{&p.Some, &p.Full} {
		c.field(&s.Total)
		c.real(&s.Avg10)
		c.real(&s.Avg60)
	}
}

func (c *codec) generation(g *memcg.Generation) {
	num(c, &g.Node)
	num(c, &g.Seq)
	c.span(&g.Age)
	num(c, &g.AnonPages)
	num(c, &g.FilePages)
	c.flag(&g.Evictable)
}

func (c *codec) host(h *memcg.HostSample) {
	num(c, &h.PageSize)
	for _, f := range [...]*memcg.Field{&h.MemTotal, &h.MemFree, &h.MemAvailable, &h.SwapTotal, &h.SwapFree, &h.LRUGen, &h.Demotion} {
		c.field(f)
	}
	num(c, &h.Swap)
	c.pressure(&h.Pressure)
	list(c, &h.Nodes, func(c *codec, n *memcg.Node) {
		num(c, &n.ID)
		for _, f := range [...]*memcg.Field{&n.MemTotal, &n.MemFree, &n.InactiveFile, &n.ActiveFile, &n.Reserve} {
			c.field(f)
		}
		c.flag(&n.HasMemory)
		c.flag(&n.HasCPU)
		list(c, &n.Distance, num[int])
	})
}

func (c *codec) result(r *Result) {
	c.reclaim(&r.Reclaim)
	c.flag(&r.Age)
	c.outcome(&r.Outcome)
	c.span(&r.Took)
	c.fault(&r.Err)
	s := &r.Setting
	c.id(&s.Cgroup)
	str(c, &s.Knob)
	str(c, &s.Value)
	str(c, &s.Why)
	str(c, &s.By)
	num(c, &r.Set.Outcome)
	num(c, &r.Set.Owner)
	str(c, &r.Set.Found)
	str(c, &r.Set.Now)
	c.flag(&r.Set.Waits)
	c.span(&r.Set.Until)
	c.flag(&r.Set.InFlight)
	num(c, &r.Undone.How)
	str(c, &r.Undone.Before)
	str(c, &r.Undone.Now)
	c.flag(&r.Undone.InFlight)
}

func (c *codec) who(w *Who) {
	c.flag(&w.Settled)
	for _, s := range [...]*string{&w.ID, &w.Runtime, &w.Inner, &w.PodUID, &w.Namespace, &w.Pod, &w.Name} {
		str(c, s)
	}
	list(c, &w.Annotations, func(c *codec, p *Pair) {
		str(c, &p.Key)
		str(c, &p.Value)
	})
	c.field(&w.Swappiness)
	c.limit(&w.Limit)
	c.limit(&w.Reservation)
	c.mask(&w.Mems)
	list(c, &w.Faults, (*codec).fault)
}

func (c *codec) reclaim(r *memcg.Reclaim) {
	c.id(&r.Cgroup)
	num(c, &r.Bytes)
	c.swappiness(&r.Swappiness)
	c.span(&r.Deadline)
	num(c, &r.Floor)
	c.span(&r.OlderThan)
	c.mask(&r.Nodes)
}

func (c *codec) outcome(o *memcg.Outcome) {
	c.reclaim(&o.Request)
	c.fault(&o.Err)
	num(c, &o.Writes)
	str(c, &o.Via)
	c.fault(&o.Refused)
	c.span(&o.Took)
	num(c, &o.Asked)
	for _, f := range [...]*memcg.Field{&o.Reclaimed, &o.Shrunk, &o.SwapOut, &o.Demoted} {
		c.field(f)
	}
	list(c, &o.Nodes, func(c *codec, n *memcg.NodeOutcome) {
		num(c, &n.Node)
		for _, f := range [...]*memcg.Field{&n.Anon, &n.File, &n.Reclaimed} {
			c.field(f)
		}
	})
}
