package cgroupfs

import (
	"bytes"
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
)

// lruGenBuffer is what is asked of the kernel in one read, in bytes. It hands
// out whole records up to one page of memory, at most 64 KiB, however much is
// asked for: a larger buffer would not save a read.
const lruGenBuffer = 64 << 10

// lruGenListing is what one reading of lru_gen has of the cgroups of interest.
type lruGenListing struct {
	listed []listedCgroup
	gens   []memcg.Generation
}

// listedCgroup is one "memcg" entry; its generations are gens[first:end].
type listedCgroup struct {
	place      int32 // of its path, as lruGenParser has it
	id         uint64
	first, end int32
}

func (l *lruGenListing) reset() { l.listed, l.gens = l.listed[:0], l.gens[:0] }

// lruGenParser takes in the lines of lru_gen (lru_gen_seq_show in
// mm/vmscan.c). For each cgroup there is
//
//	memcg <id> <path>
//	 node <node>
//	 <generation> <age in ms> <anon pages> <file pages>
//
// with a "node" for each node that has memory and under it two to four
// generations, oldest first. The path is the rest of the line, blanks and all;
// a name cannot hold a newline.
//
// Each read is a walk of its own that goes on by counting entries. When a
// cgroup's last page goes between two reads, entries are passed over, and if a
// read ends within the nodes of one cgroup, the figures of a later one can be
// taken for it. Nothing in the text shows that. Ids never mix, so what it can
// lead to is a generation of the right cgroup that is not as old as it looked.
type lruGenParser struct {
	place map[string]int32 // places of the paths of interest
	to    *lruGenListing

	seen    bool // a "memcg" line
	wanted  bool // the entry is one of interest
	inNode  bool // after a "node" line of the entry
	node    memcg.NodeID
	first   int // in to.gens, of the node's first generation
	hasPage bool
}

// read takes in the open file, through buf, which it returns for the next
// call.
func (p *lruGenParser) read(k kernel, fd int, buf []byte) ([]byte, error) {
	if len(buf) == 0 {
		buf = make([]byte, lruGenBuffer)
	}
	kept, offset := 0, int64(0) // bytes of a line that is not whole yet
	for {
		if kept == len(buf) {
			return buf, fmt.Errorf("a line is longer than %d bytes", len(buf))
		}
		n, err := k.pread(fd, buf[kept:], offset)
		if err != nil {
			return buf, err
		}
		if n == 0 {
			break
		}
		offset += int64(n)
		rest := buf[:kept+n]
		for {
			line, after, whole := cut(rest, '\n')
			if !whole {
				break
			}
			if !p.line(line) {
				return buf, fmt.Errorf("unknown line %q", line)
			}
			rest = after
		}
		kept = copy(buf, rest)
	}
	if kept > 0 {
		return buf, fmt.Errorf("ends within a line: %q", buf[:kept])
	}
	p.endNode()
	return buf, nil
}

// line takes in one line, without its newline; false when it is none of those
// that are known.
func (p *lruGenParser) line(b []byte) bool {
	if id, name, ok := cutLRUGenCgroup(b); ok {
		p.endNode()
		p.seen = true
		var place int32
		if place, p.wanted = p.place[string(name)]; p.wanted {
			n := int32(len(p.to.gens))
			p.to.listed = append(p.to.listed, listedCgroup{place: place, id: id, first: n, end: n})
		}
		return true
	}
	if !p.seen {
		return false
	}
	word, b := nextField(b)
	if string(word) == "node" {
		return p.beginNode(b)
	}
	seq, ok := parseUint(word)
	if !ok || !p.inNode {
		return false
	}
	var v [3]uint64 // age, anon, file
	for i := range v {
		word, b = nextField(b)
		if v[i], ok = parseUint(word); !ok {
			return false
		}
	}
	const mostAge = 1<<32 - 1 // jiffies_to_msecs is unsigned int
	if word, _ = nextField(b); len(word) > 0 || v[0] > mostAge {
		return false
	}
	if n := len(p.to.gens); p.wanted {
		if n > p.first && (seq == 0 || p.to.gens[n-1].Seq != seq-1) {
			return false
		}
		p.hasPage = p.hasPage || v[1] > 0 || v[2] > 0
		p.to.gens = append(p.to.gens, memcg.Generation{Node: p.node, Seq: seq,
			Age: time.Duration(v[0]) * time.Millisecond, AnonPages: v[1], FilePages: v[2]})
	}
	return true
}

func (p *lruGenParser) beginNode(b []byte) bool {
	p.endNode()
	word, b := nextField(b)
	node, ok := parseUint(word)
	if rest, _ := nextField(b); !ok || node > uint64(memcg.MaxNode) || len(rest) > 0 {
		return false
	}
	p.node, p.inNode, p.first, p.hasPage = memcg.NodeID(node), true, len(p.to.gens), false
	return true
}

// endNode closes the list that the lines before were of.
func (p *lruGenParser) endNode() {
	if !p.inNode {
		return
	}
	p.inNode = false
	if !p.wanted {
		return
	}
	if !p.hasPage {
		p.to.gens = p.to.gens[:p.first]
	}
	list := p.to.gens[p.first:]
	for i := range list {
		list[i].Evictable = i+youngest < len(list)
	}
	p.to.listed[len(p.to.listed)-1].end = int32(len(p.to.gens))
}

// youngest is how many generations the kernel never evicts from (MIN_NR_GENS
// in include/linux/mmzone.h).
const youngest = 2

// cutLRUGenCgroup reads one "memcg <id> <path>" line without its newline; ok
// is false for all others.
func cutLRUGenCgroup(line []byte) (id uint64, name []byte, ok bool) {
	rest, found := bytes.CutPrefix(line, []byte("memcg "))
	if !found {
		return 0, nil, false
	}
	number, name, found := cut(bytes.TrimLeft(rest, " "), ' ')
	if !found {
		return 0, nil, false
	}
	id, ok = parseUint(number)
	return id, name, ok
}

// nextField cuts the first field off a line of fields between blanks; it is
// empty at the end.
func nextField(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " ")
	word, rest, _ = cut(b, ' ')
	return word, rest
}
