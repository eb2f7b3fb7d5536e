package cgroupfs

import (
	"errors"
	"sort"
	"sync"

	"github.com/memagent/memagent/memcg"
)

// Note is something an operator should hear of once and not with every
// sample: a file that may not be read, or that holds what cannot be read. One
// note stands for all cgroups of the host with the same trouble.
type Note struct {
	File  string // name of the file, "memory.high"
	Kind  error  // memcg.ErrDenied, memcg.ErrInvalid, or nil for any other error
	First string // the cgroup where it came up first
	Err   error  // the error there
	Count uint64 // readings it was met in so far
}

// noteKey bounds the notes by construction: files times kinds.
type noteKey struct {
	file file
	kind error
}

type notes struct {
	hear func(Note)
	mu   sync.Mutex
	seen map[noteKey]*Note
}

// add records one trouble. It is called for troubles only, so it may allocate
// the first time.
func (n *notes) add(f file, cgroup string, err error) {
	key := noteKey{file: f}
	for _, kind := range []error{memcg.ErrDenied, memcg.ErrInvalid} {
		if errors.Is(err, kind) {
			key.kind = kind
		}
	}
	n.mu.Lock()
	if known := n.seen[key]; known != nil {
		known.Count++
		n.mu.Unlock()
		return
	}
	note := Note{File: fileNames[f], Kind: key.kind, First: cgroup, Err: err, Count: 1}
	if n.seen == nil {
		n.seen = map[noteKey]*Note{}
	}
	first := note
	n.seen[key] = &first
	n.mu.Unlock()
	if n.hear != nil {
		n.hear(note)
	}
}

// Notes returns what came up since Open, sorted by file.
func (fs *FS) Notes() []Note {
	fs.notes.mu.Lock()
	defer fs.notes.mu.Unlock()
	all := make([]Note, 0, len(fs.notes.seen))
	for _, n := range fs.notes.seen {
		all = append(all, *n)
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].File != all[j].File {
			return all[i].File < all[j].File
		}
		return all[i].First < all[j].First
	})
	return all
}
