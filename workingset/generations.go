package workingset

import (
	"time"

	"github.com/memagent/memagent/memcg"
)

// Generation is one generation of pages on one list of the multi-gen LRU.
type Generation = memcg.Generation

// Generations is what the multi-gen LRU tells of a cgroup and its descendants
// (the lru_gen file): one entry for each generation on each list. Readers may
// reuse it.
type Generations struct {
	List []Generation
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
