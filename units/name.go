package units

import (
	"path"
	"strings"
)

// kinds are the types of units that have a cgroup, and their interfaces on D-Bus
// (org.freedesktop.systemd1(5)).
var kinds = map[string]string{
	".service": "Service", ".scope": "Scope", ".slice": "Slice", ".socket": "Socket", ".mount": "Mount", ".swap": "Swap",
}

// unit is one unit by its name.
type unit struct {
	name string
	kind string // of its interface on D-Bus
}

// unitOf returns the unit whose cgroup has that path, if it is one of the system's
// manager: all that is above it are slices. Names that would be taken for a file of
// the cgroup tree have a "_" before them there (systemd's cg_escape).
func unitOf(cgroup string) (u unit, ok bool) {
	dir, base := path.Split(cgroup)
	for above := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if above != "" && path.Ext(above) != ".slice" {
			return unit{}, false
		}
	}
	name := strings.TrimPrefix(base, "_")
	kind, ok := kinds[path.Ext(name)]
	if !ok || len(name) == len(path.Ext(name)) || len(name) > maxName || strings.Trim(name, nameBytes) != "" {
		return unit{}, false
	}
	return unit{name, kind}, true
}

// What a unit's name is made of, and how long it may be (systemd.unit(5)).
const (
	nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@"
	maxName   = 255
)
