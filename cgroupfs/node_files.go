package cgroupfs

import (
	"bytes"
	"math"
	"strconv"

	"github.com/memagent/memagent/memcg"
)

// parseNodeMeminfo reads nodeN/meminfo into the sizes of n. Lines look like
//
//	Node 0 MemTotal:       129844224 kB
//
// (node_read_meminfo in drivers/base/node.c). The unit is always KiB. A key
// that is not printed leaves its field Unsupported, a value that is not a
// size makes it Invalid, and lines of another shape are passed over.
func parseNodeMeminfo(b []byte, n *memcg.Node) {
	none := memcg.Absent(memcg.Unsupported)
	n.MemTotal, n.MemFree, n.InactiveFile, n.ActiveFile = none, none, none, none
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 4 || string(f[0]) != "Node" {
			continue
		}
		var to *memcg.Field
		switch string(f[2]) {
		case "MemTotal:":
			to = &n.MemTotal
		case "MemFree:":
			to = &n.MemFree
		case "Inactive(file):":
			to = &n.InactiveFile
		case "Active(file):":
			to = &n.ActiveFile
		default:
			continue
		}
		*to = kibibytes(f[3])
	}
}

// kibibytes returns the size in bytes of a decimal number of KiB.
func kibibytes(b []byte) memcg.Field {
	v, ok := parseUint(b)
	if !ok || v > math.MaxInt64/1024 {
		return memcg.Absent(memcg.Invalid)
	}
	return memcg.Value(v * 1024)
}

// parseDistance appends one row of the distance table, nodeN/distance, to
// dst. The kernel prints one column for each online node in ascending id, and
// no ids: ok is false when the row does not have exactly columns of them, for
// then nobody can tell which column is whose.
func parseDistance(b []byte, columns int, dst []int) (row []int, ok bool) {
	row = dst
	for f := range bytes.FieldsSeq(b) {
		d, err := strconv.ParseUint(string(f), 10, 16)
		if err != nil {
			return dst, false
		}
		row = append(row, int(d))
	}
	if len(row)-len(dst) != columns {
		return dst, false
	}
	return row, true
}
