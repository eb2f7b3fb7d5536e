package cgroupfs

import (
	"strconv"

	"github.com/memagent/memagent/memcg"
)

// appendEvict appends `- <id> <node> <generation> <swappiness> <pages>`, which
// evicts generations up to one from one list, oldest first (run_eviction in
// mm/vmscan.c).
func appendEvict(b []byte, v *lruvec, swappiness int, pages uint64) []byte {
	b = append(b, "- "...)
	b = strconv.AppendUint(b, v.id, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(v.node), 10)
	b = append(b, ' ')
	b = strconv.AppendUint(b, v.seq, 10)
	b = append(b, ' ')
	b = append(b, memcg.SwappinessOf(swappiness).String()...)
	b = append(b, ' ')
	return strconv.AppendUint(b, pages, 10)
}

// writeLRUGen is one write(2) of one command: a line of several stops at the
// first that fails and does not tell which.
func (fs *FS) writeLRUGen(fd int, command []byte) error {
	fs.writes.Add(1)
	_, err := fs.k.write(fd, command)
	if err == nil {
		return nil
	}
	e := fs.hostFileError("write", lruGenFile, err)
	e.Hint = strconv.Quote(string(command))
	return e
}

// appendAge appends `+ <id> <node> <youngest generation> <swappiness> <force>`
// (run_aging in mm/vmscan.c). The swappiness is 1 even where nothing can be
// swapped: with 0, anon is left behind in a generation whose number is due to
// be used again, and cold pages turn up among the youngest (inc_min_seq). Force
// walks page tables where the kernel would think it too much work.
func appendAge(b []byte, v *lruvec) []byte {
	b = append(b, "+ "...)
	b = strconv.AppendUint(b, v.id, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(v.node), 10)
	b = append(b, ' ')
	b = strconv.AppendUint(b, v.seq, 10)
	return append(b, " 1 1"...)
}
