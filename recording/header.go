package recording

import (
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
)

// Version is the layout of the frames: it changes with every change of what
// codec.event names, but for keys of memory.stat and of memory.numa_stat.
const Version = 2

// format is what tells a recording from other JSON.
const format = "memagent recording"

// Header is the first line of a recording.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Program string `json:"program"` // that wrote it, with its version
	Host    string `json:"host"`    // what was recorded, in words
	Started int64  `json:"started"` // nanoseconds since 1970
	Zone    int    `json:"zone"`    // seconds east
	// Stats are the keys of memory.stat, in the order of the frames.
	Stats []string `json:"stats"`
	// NodeStats is how many figures there are of each node.
	NodeStats int `json:"node_stats"`
}

// NewHeader returns the header of a recording that begins now.
func NewHeader(program, host string, now time.Time) Header {
	_, zone := now.Zone()
	h := Header{Format: format, Version: Version, Program: program, Host: host, Started: now.UnixNano(), Zone: zone, NodeStats: int(memcg.NumNodeStats)}
	for k := range memcg.NumStats {
		h.Stats = append(h.Stats, k.String())
	}
	return h
}

// Time returns when the recording began.
func (h *Header) Time() time.Time { return time.Unix(0, h.Started).In(time.FixedZone("", h.Zone)) }

// check reports why a recording with this header cannot be read.
func (h *Header) check() error {
	const mostFigures = 4096
	switch {
	case h.Format != format:
		return ErrNotRecording
	case h.Version != Version:
		return fmt.Errorf("%w: its layout is %d and was written by %s, this program reads %d; read it with the one that wrote it", ErrVersion, h.Version, h.Program, Version)
	case len(h.Stats) > mostFigures || h.NodeStats < 0 || h.NodeStats > mostFigures:
		return fmt.Errorf("%w: its header has %d keys and %d figures of a node", ErrNotRecording, len(h.Stats), h.NodeStats)
	}
	return nil
}

// keys returns the keys of the header as this program knows them.
func (h *Header) keys() []memcg.Stat {
	list := make([]memcg.Stat, len(h.Stats))
	for i, name := range h.Stats {
		k, ok := memcg.StatNamed([]byte(name))
		if !ok {
			k = memcg.NumStats
		}
		list[i] = k
	}
	return list
}
