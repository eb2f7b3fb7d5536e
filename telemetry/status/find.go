package status

import (
	"cmp"
	"slices"
	"strings"

	"github.com/memagent/memagent/telemetry"
)

// maxNear is how many names are suggested.
const maxNear = 5

// payload is the cgroup that crun makes for a container's processes, below the
// container's own, which is the one that people know.
const payload = "/container"

// find returns the cgroup that name means: its path, its path with the usual
// mount before it, the name of its container, or the end of the path of one
// cgroup only, with or without that of a container's processes behind it. Among
// equals the living one counts, then the one that went last. Without one it is nil.
func (b *Board) find(want string) *history {
	var ends []*history
	for _, h := range b.cgroups {
		switch {
		case h.id.Path == want:
			return h
		case strings.HasSuffix(h.id.Path, want), strings.HasSuffix(strings.TrimSuffix(h.id.Path, payload), want), h.latest.name != "" && "/"+h.latest.name == want:
			ends = append(ends, h)
		}
	}
	for i := len(b.gone) - 1; i >= 0; i-- {
		if b.gone[i].id.Path == want {
			return b.gone[i]
		}
	}
	if len(ends) == 1 && want != "/" {
		return ends[0]
	}
	return nil
}

// full returns what the user of a name most likely means by it, as a path.
func full(name string) string {
	return "/" + strings.Trim(strings.TrimPrefix(name, "/sys/fs/cgroup/"), "/")
}

// near returns those of paths that a reader may have meant by a path, the
// likeliest first. It is slow for thousands of paths; no lock is held.
func near(want string, paths []string) []string {
	type candidate struct {
		path string
		off  int
	}
	var list []candidate
	last := base(want)
	for _, path := range paths {
		off := -1
		switch {
		case want == "/":
			off = len(path)
		case strings.HasSuffix(path, want):
			off = 0
		case strings.Contains(strings.ToLower(path), strings.ToLower(last)):
			off = 1
		default:
			if d := letters(last, base(path)); d <= max(2, len(last)/3) {
				off = 1 + d
			}
		}
		if off >= 0 {
			list = append(list, candidate{path, off})
		}
	}
	slices.SortFunc(list, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.off, y.off), cmp.Compare(len(x.path), len(y.path)), strings.Compare(x.path, y.path))
	})
	var names []string
	for _, c := range list[:min(len(list), maxNear)] {
		names = append(names, telemetry.Name(c.path))
	}
	return names
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// letters is how many letters must be changed, added or removed between a and
// b; names that are too long to be a slip of the hand are far apart.
func letters(a, b string) int {
	const longest = 64 // bytes; the cost is quadratic
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0]++
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
