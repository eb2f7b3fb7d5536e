package cgroupfs

import "github.com/memagent/memagent/memcg"

// parseStat reads memory.stat (memory_stat_format in mm/memcontrol.c): lines
// "key value", sizes in bytes and counts, in an order and with a set of keys
// that differ by kernel. Keys are looked up by name; unknown keys and lines of
// another shape are passed over. A key that the file, read whole, does not
// have is Unsupported.
func parseStat(b []byte, s *memcg.Stats) {
	s.SetAll(memcg.Unsupported)
	for len(b) > 0 {
		var line []byte
		line, b, _ = cut(b, '\n')
		key, value, ok := cut(line, ' ')
		if !ok {
			continue
		}
		if k, ok := memcg.StatNamed(key); ok {
			s.Set(k, parseField(value))
		}
	}
}

// invalidLine returns the first line of memory.stat whose value cannot be
// read, for a message.
func invalidLine(b []byte) []byte {
	for len(b) > 0 {
		var line []byte
		line, b, _ = cut(b, '\n')
		key, value, ok := cut(line, ' ')
		if _, known := memcg.StatNamed(key); ok && known && !parseField(value).Known() {
			return line
		}
	}
	return nil
}
