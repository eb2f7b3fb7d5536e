package cgroupfs

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/procfs"

	"github.com/memagent/memagent/memcg"
)

// reservesRest is how long what /proc/zoneinfo tells of reserves is good for.
// Watermarks change when somebody sets min_free_kbytes or watermark_scale_factor
// and when memory comes or goes; the file also has every CPU's lists of pages in
// every zone, hundreds of KiB on a large machine.
const reservesRest = time.Minute

// reserves is what the kernel keeps free on each node.
type reserves struct {
	read   time.Time // zero: never
	online memcg.NodeMask
	bytes  map[memcg.NodeID]memcg.Field
	absent memcg.Field // what a node that is not in bytes has
}

func (r *reserves) of(id memcg.NodeID) memcg.Field {
	if f, ok := r.bytes[id]; ok {
		return f
	}
	return r.absent
}

// reserves reads /proc/zoneinfo, again only after a while or when other nodes
// are online. A file that cannot be read is not asked for more often either.
func (fs *FS) reserves(online memcg.NodeMask) (*reserves, error) {
	r := &fs.zones
	now := fs.now()
	if !r.read.IsZero() && r.online == online && now.Sub(r.read) < reservesRest {
		return r, nil
	}
	const file = "proc/zoneinfo"
	*r = reserves{read: now, online: online, absent: memcg.Absent(memcg.Unsupported)}
	proc, err := procfs.NewFS(filepath.Join(fs.root, "proc"))
	if err != nil {
		return r, fs.hostFileError("open", file, err)
	}
	zones, err := proc.Zoneinfo()
	if err != nil {
		if e := fs.hostFileError("read", file, err); e.Kind != memcg.ErrUnsupported {
			r.absent = memcg.Field{}
			return r, e
		}
		return r, nil
	}
	r.bytes = reservesOf(zones, fs.pageSize)
	return r, nil
}

// reservesOf sums up what the kernel keeps free on each node, in bytes, as
// calculate_totalreserve_pages in mm/page_alloc.c does: of each zone its high
// watermark and the most that it protects from allocations that could be made
// in a higher zone, but no more than there is. One figure that is missing or
// negative leaves its node without.
func reservesOf(zones []procfs.Zoneinfo, page uint64) map[memcg.NodeID]memcg.Field {
	m := map[memcg.NodeID]memcg.Field{}
	for i := range zones {
		id, err := strconv.ParseUint(zones[i].Node, 10, 10)
		if err != nil {
			continue
		}
		node := memcg.NodeID(id)
		kept := reserveOf(&zones[i])
		if sum, ok := m[node]; ok {
			kept = memcg.Sum(sum, kept)
		}
		m[node] = kept
	}
	for id, pages := range m {
		m[id] = scaled(pages, page)
	}
	return m
}

// reserveOf is what the kernel keeps free in one zone, in pages. A zone without
// pages, of which little is printed, keeps none.
func reserveOf(z *procfs.Zoneinfo) memcg.Field {
	if z.Managed == nil && z.High == nil || z.Managed != nil && *z.Managed == 0 {
		return memcg.Value(0)
	}
	if z.Managed == nil || z.High == nil || *z.Managed < 0 || *z.High < 0 {
		return memcg.Absent(memcg.Invalid)
	}
	var most int64
	for _, p := range z.Protection {
		if p != nil {
			most = max(most, *p)
		}
	}
	return memcg.Value(uint64(min(most, *z.Managed-min(*z.High, *z.Managed)) + min(*z.High, *z.Managed)))
}
