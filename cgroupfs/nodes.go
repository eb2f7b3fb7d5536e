package cgroupfs

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// nodeDir is where sysfs keeps the NUMA nodes, below the host's root. A kernel
// without CONFIG_NUMA has no such directory (case c06).
const nodeDir = "sys/devices/system/node"

// nodeFile names a file of one node's directory below the host's root.
func nodeFile(id memcg.NodeID, file string) string {
	return path.Join(nodeDir, "node"+strconv.Itoa(int(id)), file)
}

// nodeList reads one of the lists of nodes: online, has_memory, has_cpu.
func (fs *FS) nodeList(name string) (memcg.NodeMask, error) {
	file := path.Join(nodeDir, name)
	b, err := fs.readHostFile(file)
	if err != nil {
		return memcg.NodeMask{}, err
	}
	m, err := memcg.ParseNodeMask(string(b))
	if err != nil {
		return memcg.NodeMask{}, fs.hostFileError("read", file, err)
	}
	return m, nil
}

// Nodes appends the online NUMA nodes to dst in ascending id, from
// /sys/devices/system/node. It goes by the list of online nodes and nothing
// else: possible ids may be many more, ids may have gaps and run to 1023
// (cases c09, c10).
//
// memcg.ErrUnsupported: the kernel has no NUMA nodes. With any other error the
// list holds what could be read; fields that could not be are Missing, and a
// node whose place in has_memory is not known does not count as having memory.
func (fs *FS) Nodes(dst []memcg.Node) ([]memcg.Node, error) {
	online, err := fs.nodeList("online")
	if err != nil {
		return dst, err
	}
	var errs []error
	hasMemory, err := fs.nodeList("has_memory")
	errs = append(errs, err)
	hasCPU, err := fs.nodeList("has_cpu")
	errs = append(errs, err)

	columns := online.Len()
	reserves, err := fs.reserves(online)
	errs = append(errs, unlessUnsupported(err))
	for id := range online.All {
		var n *memcg.Node
		dst, n = extend(dst)
		*n = memcg.Node{ID: id, HasMemory: hasMemory.Has(id), HasCPU: hasCPU.Has(id), Distance: n.Distance[:0]}
		n.Reserve = reserves.of(id)
		errs = append(errs, fs.readNode(n, columns))
	}
	return dst, errors.Join(errs...)
}

// readNode fills in what the directory of one node says.
func (fs *FS) readNode(n *memcg.Node, columns int) error {
	var errs []error
	switch b, err := fs.readHostFile(nodeFile(n.ID, "meminfo")); {
	case err == nil:
		parseNodeMeminfo(b, n)
	case errors.Is(err, memcg.ErrUnsupported):
		parseNodeMeminfo(nil, n)
	default:
		errs = append(errs, err)
	}
	switch b, err := fs.readHostFile(nodeFile(n.ID, "distance")); {
	case err == nil:
		row, ok := parseDistance(b, columns, n.Distance)
		if !ok {
			err = fs.hostFileError("read", nodeFile(n.ID, "distance"),
				errors.New(strconv.Quote(strings.TrimSpace(string(b)))+" does not have one column for each of "+
					strconv.Itoa(columns)+" online nodes"))
		}
		n.Distance = row
		errs = append(errs, err)
	case !errors.Is(err, memcg.ErrUnsupported):
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// extend makes room for one more node and returns it as an earlier reading
// left it, so that its distance row can be reused.
func extend(dst []memcg.Node) ([]memcg.Node, *memcg.Node) {
	dst = slices.Grow(dst, 1)
	dst = dst[:len(dst)+1]
	return dst, &dst[len(dst)-1]
}
