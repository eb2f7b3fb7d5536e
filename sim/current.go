package sim

import "github.com/memagent/memagent/memcg"

// Current returns what the cgroup and all below it have charged, in bytes.
func (h *Host) Current(id memcg.ID) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.fault(OpSample, id.Path); f.fails() {
		return 0, f.error("read memory.current of " + id.Path)
	}
	c, err := h.find("read memory.current of", id)
	if err != nil {
		return 0, err
	}
	return c.usage * PageSize, nil
}
