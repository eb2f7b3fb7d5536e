package workingset

import "time"

// Generations is what the multi-gen LRU tells of a cgroup and its descendants
// (the lru_gen file): one entry for each generation on each node. Readers may
// reuse it.
type Generations struct {
	List []Generation
}

// Generation is one generation of one lruvec.
type Generation struct {
	// Age is the time since the generation was created: what is in it has not
	// been found in use for about so long.
	Age time.Duration
	// AnonPages and FilePages are the base pages in it.
	AnonPages, FilePages uint64
	// Evictable is false for the two youngest generations, which the kernel
	// never evicts from.
	Evictable bool
}

// olderThan returns the pages of evictable generations at least that old.
func (g *Generations) olderThan(age time.Duration) (anon, file uint64) {
	for _, gen := range g.List {
		if gen.Evictable && gen.Age >= age {
			anon += gen.AnonPages
			file += gen.FilePages
		}
	}
	return anon, file
}
