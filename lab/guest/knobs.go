package guest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Knobs are the values of kernel files that can be written, by path.
type Knobs map[string]string

// knobRoots are where the kernel keeps what decides about memory. Files below them that are both
// readable and writable are knobs.
var knobRoots = []string{CgroupRoot, "/proc/sys/vm", "/sys/kernel/mm"}

// notKnobs are writable files whose content changes by itself, or whose content is not a setting:
// lists of processes, and pressure and peak files, where writing registers a reader.
func notKnob(path string) bool {
	switch base := filepath.Base(path); base {
	case "cgroup.procs", "cgroup.threads", "memory.peak", "memory.swap.peak", "stat_refresh":
		return true
	default:
		return strings.HasSuffix(base, ".pressure")
	}
}

// ReadKnobs reads all knobs. Files the kernel refuses to show are left out.
func ReadKnobs() (Knobs, error) {
	k := Knobs{}
	for _, root := range knobRoots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("listing knobs: %w", err)
			}
			if !d.Type().IsRegular() || notKnob(path) {
				return nil
			}
			fi, err := d.Info()
			if err != nil || fi.Mode().Perm()&0o600 != 0o600 {
				return nil
			}
			if raw, err := os.ReadFile(path); err == nil {
				k[path] = string(raw)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Since says which knobs are not what they were, one sentence each.
func (k Knobs) Since(before Knobs) []string {
	var out []string
	for path, old := range before {
		now, ok := k[path]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("%s is gone, it was %q", path, old))
		case now != old:
			out = append(out, fmt.Sprintf("%s was %q and is %q", path, old, now))
		}
	}
	for path, now := range k {
		if _, ok := before[path]; !ok {
			out = append(out, fmt.Sprintf("%s is new, with %q", path, now))
		}
	}
	sort.Strings(out)
	return out
}
