package cgroupfs

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// discoverWithoutProc looks at the usual place, for a host mounted without its
// proc and for recorded trees.
func (fs *FS) discoverWithoutProc() {
	fs.layout.Mode = ModeNone
	fs.self.why = "no proc below " + fs.root
	v, ok := fs.look(mount{root: "/", point: usualMount, fstype: "cgroup2"})
	if !ok {
		return
	}
	if v.fixture && !v.listed && !fs.looksLikeCgroups(v.dir) {
		_ = fs.k.close(v.dir)
		return
	}
	fs.layout.Mode = ModeUnified
	fs.use(v)
	fs.findSelf()
}

// looksLikeCgroups reports whether a directory of plain files holds a cgroup2
// tree: files of controllers in it or in one of its subdirectories. The
// directories of a v1 tree are controllers, which hold cgroups and no such
// files when recorded.
func (fs *FS) looksLikeCgroups(dir int) bool {
	files, dirs, err := fs.list(dir, ".")
	if err != nil {
		return false
	}
	if slices.ContainsFunc(files, isControllerFile) {
		return true
	}
	for _, name := range dirs {
		files, _, err := fs.list(dir, name)
		if err == nil && slices.ContainsFunc(files, isControllerFile) {
			return true
		}
	}
	return false
}

func isControllerFile(name string) bool {
	return strings.HasPrefix(name, "memory.") || strings.HasPrefix(name, "cpuset.") || strings.HasPrefix(name, "cgroup.")
}

// list returns the names in a directory, those of subdirectories apart.
func (fs *FS) list(dir int, name string) (files, dirs []string, err error) {
	fd, err := fs.k.open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, beneath)
	if err != nil {
		return nil, nil, err
	}
	defer fs.k.close(fd)
	buf := make([]byte, 32<<10)
	for {
		n, err := fs.k.readDirents(fd, buf)
		if err != nil || n == 0 {
			return files, dirs, err
		}
		for b := buf[:n]; len(b) > 0; {
			var e dirent
			if e, b, err = nextDirent(b); err != nil {
				return files, dirs, err
			}
			switch name := string(e.name); {
			case name == "." || name == "..":
			case e.kind == unix.DT_DIR:
				dirs = append(dirs, name)
			default:
				files = append(files, name)
			}
		}
	}
}
