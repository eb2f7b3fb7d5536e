package cgroupfs

import "github.com/memagent/memagent/memcg"

// numaKey tells where the value of a key of memory.numa_stat goes. Several
// keys that share a slot are added up.
type numaKey struct {
	stat memcg.NodeStat
	sum  bool
}

// numaKeys are looked up by the kernel's name. Only the four actors of pgscan,
// pgsteal and pgdemote are added up: a breakdown of the same pages by type, as
// /proc/vmstat has it, would count them twice.
var numaKeys = map[string]numaKey{
	"anon":                    {stat: memcg.NodeAnon},
	"file":                    {stat: memcg.NodeFile},
	"inactive_anon":           {stat: memcg.NodeInactiveAnon},
	"active_anon":             {stat: memcg.NodeActiveAnon},
	"inactive_file":           {stat: memcg.NodeInactiveFile},
	"active_file":             {stat: memcg.NodeActiveFile},
	"unevictable":             {stat: memcg.NodeUnevictable},
	"file_dirty":              {stat: memcg.NodeFileDirty},
	"file_writeback":          {stat: memcg.NodeFileWriteback},
	"workingset_refault_anon": {stat: memcg.NodeRefaultAnon},
	"workingset_refault_file": {stat: memcg.NodeRefaultFile},
	"pgscan_kswapd":           {stat: memcg.NodeScan, sum: true},
	"pgscan_direct":           {stat: memcg.NodeScan, sum: true},
	"pgscan_khugepaged":       {stat: memcg.NodeScan, sum: true},
	"pgscan_proactive":        {stat: memcg.NodeScan, sum: true},
	"pgsteal_kswapd":          {stat: memcg.NodeSteal, sum: true},
	"pgsteal_direct":          {stat: memcg.NodeSteal, sum: true},
	"pgsteal_khugepaged":      {stat: memcg.NodeSteal, sum: true},
	"pgsteal_proactive":       {stat: memcg.NodeSteal, sum: true},
	"pgdemote_kswapd":         {stat: memcg.NodeDemote, sum: true},
	"pgdemote_direct":         {stat: memcg.NodeDemote, sum: true},
	"pgdemote_khugepaged":     {stat: memcg.NodeDemote, sum: true},
	"pgdemote_proactive":      {stat: memcg.NodeDemote, sum: true},
}

// parseNumaStat reads memory.numa_stat (memory_numa_stat_show in
// mm/memcontrol.c): lines "key N0=value N8=value". Ids are ids, up to 1023,
// not places in a row. It appends one entry a node to nodes[:0], in ascending
// id; keys that are not printed are Unsupported.
//
// Cgroup v1 has a file of the same name in pages, "key=total N0=value". It
// must not be read by this rule: the state is Invalid and there are no nodes.
func parseNumaStat(b []byte, nodes []memcg.NodeStats) ([]memcg.NodeStats, memcg.State) {
	nodes = nodes[:0]
	for len(b) > 0 {
		var line []byte
		line, b, _ = cut(b, '\n')
		key, columns, ok := cut(line, ' ')
		if _, _, v1 := cut(key, '='); v1 {
			return nodes[:0], memcg.Invalid
		}
		to, known := numaKeys[string(key)]
		if !ok || !known {
			continue
		}
		for column := 0; len(columns) > 0; column++ {
			var word []byte
			word, columns, _ = cut(columns, ' ')
			id, value, ok := parseNodeColumn(word)
			if !ok {
				continue
			}
			var at int
			if at, nodes = nodeAt(nodes, id, column); to.sum {
				value = addTo(nodes[at].Get(to.stat), value)
			}
			nodes[at].Set(to.stat, value)
		}
	}
	return nodes, memcg.Present
}

// parseNodeColumn reads "N12=345".
func parseNodeColumn(word []byte) (id memcg.NodeID, value memcg.Field, ok bool) {
	name, digits, ok := cut(word, '=')
	if !ok || len(name) < 2 || name[0] != 'N' {
		return 0, memcg.Field{}, false
	}
	n, ok := parseUint(name[1:])
	if !ok || n > uint64(memcg.MaxNode) {
		return 0, memcg.Field{}, false
	}
	return memcg.NodeID(n), parseField(digits), true
}

// nodeAt returns the place of a node, which it makes when there is none. Every
// line lists the same nodes, so the column is nearly always the place.
func nodeAt(nodes []memcg.NodeStats, id memcg.NodeID, column int) (int, []memcg.NodeStats) {
	if column < len(nodes) && nodes[column].ID == id {
		return column, nodes
	}
	at := len(nodes)
	for at > 0 && nodes[at-1].ID >= id {
		at--
	}
	if at < len(nodes) && nodes[at].ID == id {
		return at, nodes
	}
	nodes = append(nodes, memcg.NodeStats{})
	copy(nodes[at+1:], nodes[at:])
	nodes[at] = memcg.NodeStats{ID: id}
	nodes[at].SetAll(memcg.Unsupported)
	return at, nodes
}

// addTo adds a part to a sum of which the first part is Unsupported. One
// invalid part makes the sum invalid.
func addTo(sum, part memcg.Field) memcg.Field {
	if sum.State() == memcg.Unsupported {
		return part
	}
	return memcg.Sum(sum, part)
}
