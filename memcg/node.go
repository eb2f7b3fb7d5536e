package memcg

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// MaxNode is the highest node id that can occur: kernels are built with
// CONFIG_NODES_SHIFT of at most 10, so ids run from 0 to 1023.
const MaxNode NodeID = 1023

// NodeID is the kernel's number of a NUMA node. Ids are names, not indexes:
// hosts exist whose nodes are 0, 8 and 252 to 255.
type NodeID int

// NodeMask is a set of node ids. The zero NodeMask is empty. Masks are
// comparable values.
type NodeMask struct {
	w [(MaxNode + 64) / 64]uint64
}

// NodesOf returns the set of the given ids. Ids outside 0..MaxNode are left
// out.
func NodesOf(ids ...NodeID) NodeMask {
	var m NodeMask
	for _, id := range ids {
		m.Add(id)
	}
	return m
}

// ParseNodeMask reads the kernel's list format, "0-3,8,252-255". An empty
// list is an empty set and not an error; a set that is empty and one that
// cannot be read must not be confused.
func ParseNodeMask(s string) (NodeMask, error) {
	var m NodeMask
	s = strings.TrimSpace(s)
	if s == "" {
		return m, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := parseNode(lo)
		if err != nil {
			return NodeMask{}, fmt.Errorf("node list %q: %w", s, err)
		}
		last := first
		if isRange {
			if last, err = parseNode(hi); err != nil {
				return NodeMask{}, fmt.Errorf("node list %q: %w", s, err)
			}
		}
		if last < first {
			return NodeMask{}, fmt.Errorf("node list %q: range %q runs backwards", s, part)
		}
		for id := first; id <= last; id++ {
			m.Add(id)
		}
	}
	return m, nil
}

func parseNode(s string) (NodeID, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not a node id", s)
	}
	if NodeID(n) > MaxNode {
		return 0, fmt.Errorf("node id %d is above %d", n, MaxNode)
	}
	return NodeID(n), nil
}

// Add puts id into the set. An id outside 0..MaxNode changes nothing.
func (m *NodeMask) Add(id NodeID) {
	if id >= 0 && id <= MaxNode {
		m.w[id/64] |= 1 << (id % 64)
	}
}

// Has reports whether id is in the set.
func (m NodeMask) Has(id NodeID) bool {
	return id >= 0 && id <= MaxNode && m.w[id/64]&(1<<(id%64)) != 0
}

// Empty reports whether no node is in the set.
func (m NodeMask) Empty() bool { return m == NodeMask{} }

// Len returns the number of nodes in the set.
func (m NodeMask) Len() int {
	n := 0
	for _, w := range m.w {
		n += bits.OnesCount64(w)
	}
	return n
}

// And returns the nodes that are in both sets.
func (m NodeMask) And(o NodeMask) NodeMask {
	for i := range m.w {
		m.w[i] &= o.w[i]
	}
	return m
}

// Without returns the nodes of m that are not in o.
func (m NodeMask) Without(o NodeMask) NodeMask {
	for i := range m.w {
		m.w[i] &^= o.w[i]
	}
	return m
}

// All yields the ids in ascending order.
func (m NodeMask) All(yield func(NodeID) bool) {
	for i, w := range m.w {
		for ; w != 0; w &= w - 1 {
			if !yield(NodeID(i*64 + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

// String returns the set in the kernel's list format, "0-3,8"; "" when empty.
func (m NodeMask) String() string {
	var b []byte
	first, last := NodeID(-1), NodeID(-1)
	flush := func() {
		if first < 0 {
			return
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(first), 10)
		if last > first {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(last), 10)
		}
	}
	for id := range m.All {
		if first >= 0 && id == last+1 {
			last = id
			continue
		}
		flush()
		first, last = id, id
	}
	flush()
	return string(b)
}
