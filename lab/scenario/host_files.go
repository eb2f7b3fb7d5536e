package scenario

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// written are folders where others write while a package comes and goes: apt and dpkg keep their books
// and logs, engines their containers.
var written = []string{"/srv", "/tmp", "/etc/cni", "/var/cache/apt", "/var/lib/apt", "/var/lib/containers", "/var/lib/containerd", "/var/lib/dpkg", "/var/log", "/var/tmp"}

// diskFiles lists what is on the disk of root, but for what others write, and all below /run with the
// service's or memagent's name, where nothing may stay either.
func diskFiles() (map[string]bool, error) {
	out := map[string]bool{}
	root, err := os.Lstat("/")
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil // it went meanwhile
			}
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return nil
		}
		switch {
		case slices.Contains(written, path) || d.IsDir() && !sameDevice(fi, root):
			return fs.SkipDir
		}
		out[path] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, filepath.WalkDir("/run", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case path == "/run/memlab":
			return fs.SkipDir
		case strings.Contains(path, "memagent") || strings.Contains(path, hostService+".d"):
			out[path] = true
		}
		return nil
	})
}

func sameDevice(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, too := b.Sys().(*syscall.Stat_t)
	return ok && too && x.Dev == y.Dev
}

// more lists what is in now and was not in before, sorted.
func more(now, before map[string]bool) []string {
	var out []string
	for path := range now {
		if !before[path] {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}
