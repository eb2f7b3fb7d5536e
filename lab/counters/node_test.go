package counters

import "testing"

func TestParseNodeMeminfo(t *testing.T) {
	for _, tc := range []struct {
		name, text  string
		total, free uint64
		ok          bool
	}{
		{"a node's lines, in bytes", "Node 1 MemTotal:         1024 kB\nNode 1 MemFree:             4 kB\nNode 1 HugePages_Total:     0\n", 1 << 20, 4 << 10, true},
		{"a node without memory has zeroes", "Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB\n", 0, 0, true},
		{"what is missing is not zero", "Node 1 MemTotal: 1024 kB\n", 0, 0, false},
		{"what is no number is missing", "Node 1 MemTotal: 1024 kB\nNode 1 MemFree: few kB\n", 0, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			total, free, err := ParseNodeMeminfo(tc.text)
			if total != tc.total || free != tc.free || (err == nil) != tc.ok {
				t.Errorf("got %d, %d, %v", total, free, err)
			}
		})
	}
}
