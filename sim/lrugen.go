package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
)

// errNoAges: the simulated kernels run the classic LRU, which has two lists and
// no generations.
var errNoAges = fmt.Errorf("the classic LRU tells no ages: %w", memcg.ErrUnsupported)

// Generations returns memcg.ErrUnsupported: there is no multi-gen LRU here.
func (h *Host) Generations(id memcg.ID, dst []memcg.Generation) ([]memcg.Generation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.find("generations of", id); err != nil {
		return dst, err
	}
	return dst, fmt.Errorf("sim: generations of %s: %w", id.Path, errNoAges)
}

// Age returns memcg.ErrUnsupported: there is no multi-gen LRU here.
func (h *Host) Age(_ context.Context, id memcg.ID) (took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cfg.ReadOnly {
		return 0, fmt.Errorf("sim: age %s: %w", id.Path, memcg.ErrReadOnly)
	}
	if _, err := h.find("age", id); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("sim: age %s: %w", id.Path, errNoAges)
}
