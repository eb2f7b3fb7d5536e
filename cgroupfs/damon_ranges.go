package cgroupfs

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// memoryDir is where sysfs keeps the blocks that physical memory is plugged in
// by.
const memoryDir = "sys/devices/system/memory"

// span is a range of physical addresses, in bytes.
type span struct{ start, end uint64 }

// physicalMemory returns where the memory of some nodes is, in ascending
// ranges, from the memory blocks that sysfs lists under each node. A block that
// two nodes share is left out: nothing tells which part of it is whose, and a
// request for a node must take from no other. memcg.ErrUnsupported: the kernel
// lists no blocks (it needs CONFIG_MEMORY_HOTPLUG), or these nodes have none of
// their own.
func (fs *FS) physicalMemory(of memcg.NodeMask) ([]span, error) {
	const sizeFile = memoryDir + "/block_size_bytes"
	b, err := fs.readHostFile(sizeFile)
	if err != nil {
		return nil, err
	}
	size, err := strconv.ParseUint(oneLine(b), 16, 64)
	if err != nil || size == 0 {
		return nil, &opError{Op: "read", File: path.Join(fs.root, sizeFile), Kind: memcg.ErrInvalid, Hint: "not a size: " + oneLine(b)}
	}
	online, err := fs.nodeList("online")
	if err != nil {
		return nil, err
	}
	owners := map[uint64]memcg.NodeMask{}
	for id := range online.All {
		names, err := fs.listHostDir(nodeFile(id, ""))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if n, ok := memoryBlock(name); ok && n < ^uint64(0)/size {
				m := owners[n]
				m.Add(id)
				owners[n] = m
			}
		}
	}
	var spans []span
	for n, m := range owners {
		if m.Without(of).Empty() {
			spans = append(spans, span{n * size, (n + 1) * size})
		}
	}
	if len(spans) == 0 {
		return nil, &opError{Op: "use", File: path.Join(fs.root, nodeDir), Kind: memcg.ErrUnsupported,
			Hint: "it does not tell which physical memory is on nodes " + of.String()}
	}
	return joined(spans), nil
}

// memoryBlock reads "memory12"; ok is false for "memory_failure" and others.
func memoryBlock(name string) (n uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, "memory")
	if !ok {
		return 0, false
	}
	return parseUint([]byte(digits))
}

// joined sorts ranges and puts together those that meet.
func joined(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].end == s.start {
			out[n-1].end = s.end
			continue
		}
		out = append(out, s)
	}
	return out
}

// window returns at most size bytes of the ranges, from at on or from the first
// address after it that is in one; beyond the last it begins anew.
func window(spans []span, at, size uint64) span {
	for _, s := range spans {
		if at < s.end {
			w := span{start: max(at, s.start)}
			w.end = min(s.end, w.start+size)
			return w
		}
	}
	return span{spans[0].start, min(spans[0].end, spans[0].start+size)}
}
