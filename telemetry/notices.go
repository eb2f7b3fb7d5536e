package telemetry

import (
	"sync"

	"github.com/rs/zerolog"
)

// maxNotices bounds the memory of what has been said. A host has a handful of
// distinct troubles of its own and at most a few for each watched cgroup.
const maxNotices = 4096

// Notices logs things that are worth saying once: a file that may not be
// opened, a feature this kernel lacks. The same key is logged once until it is
// cleared; repeats are counted and told when it clears. Safe for use by
// several goroutines.
type Notices struct {
	Logger zerolog.Logger

	mu     sync.Mutex
	said   map[string]uint64 // key -> repeats after the first
	capped bool
}

// Warn logs err under key, unless the key has been said and not cleared since.
func (n *Notices) Warn(key string, err error, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if count, ok := n.said[key]; ok {
		n.said[key] = count + 1
		return
	}
	if len(n.said) >= maxNotices {
		if !n.capped {
			n.capped = true
			n.Logger.Warn().Int("notices", maxNotices).Msg("too many different notices; further ones are not logged until some clear")
		}
		return
	}
	if n.said == nil {
		n.said = make(map[string]uint64)
	}
	n.said[key] = 0
	e := n.Logger.Warn().Str("notice", key)
	if err != nil {
		e = e.Err(err)
	}
	e.Msg(text)
}

// Clear tells that the trouble named by key is over. It logs only when the
// trouble had been said.
func (n *Notices) Clear(key, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	count, ok := n.said[key]
	if !ok {
		return
	}
	delete(n.said, key)
	n.capped = false
	n.Logger.Info().Str("notice", key).Uint64("repeats", count).Msg(text)
}

// Forget drops a key without a word: what it was about no longer exists.
func (n *Notices) Forget(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.said, key)
}
