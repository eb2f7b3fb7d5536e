package cgroupfs

import (
	"bytes"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// selfPath is the agent's own cgroup.
type selfPath struct {
	path      string // below the mount that is used
	literal   string // the same with the kernel's mark of a removed cgroup left on
	known     bool
	listed    bool   // /proc/self/cgroup has a line for cgroup v2
	why       string // it is not known
	mountRoot string // directory of the hierarchy that is mounted
}

// Self returns the agent's own cgroup below the mount; ok is false when it is
// not known, or lies outside of what the mount shows.
func (fs *FS) Self() (cgroup string, ok bool) { return fs.self.path, fs.self.known }

// Owns reports whether a cgroup is the agent's own or an ancestor of it: no
// request is ever made for those.
func (fs *FS) Owns(cgroup string) bool {
	if !fs.self.known {
		return false
	}
	for _, own := range []string{fs.self.path, fs.self.literal} {
		if own == cgroup || isAbove(cgroup, own) {
			return true
		}
	}
	return false
}

// findSelf finds the agent's own cgroup. "proc/self" below any root that has
// the host's proc is the agent, so no other process needs to be known.
//
// In a cgroup namespace of its own the agent reads a path relative to that
// namespace, while the host's mount shows the names above it; and where mounts
// are stacked the table may speak of another one. So on a kernel the path
// counts only if the cgroup lists the agent's process, and else the process is
// looked for in the whole tree, once.
func (fs *FS) findSelf() {
	b, _, err := readFileAt(fs.k, fs.rootDir, "proc/self/cgroup", nil)
	if err != nil {
		fs.self.why = err.Error()
		return
	}
	own, removed, ok := parseProcCgroup(b)
	if !ok {
		fs.self.why = "proc/self/cgroup has no line for cgroup v2"
		return
	}
	fs.self.listed = true
	literal := own
	if removed {
		literal += removedMark
	}
	below, ok := belowMount(own, fs.self.mountRoot)
	switch {
	case fs.mountDir < 0:
		fs.self.why = "cgroup2 is not mounted"
	case ok && (fs.layout.Fixture || fs.holdsUs(below)):
		fs.self.path, fs.self.known = below, true
		fs.self.literal, _ = belowMount(literal, fs.self.mountRoot)
	case !fs.layout.Fixture && fs.searchSelf("/"):
	default:
		fs.self.why = "proc/self/cgroup says " + quoteName(literal) + ", and no cgroup below " +
			fs.file("", "") + " lists the agent's process"
	}
}

// holdsUs reports whether a cgroup lists the agent's process. The kernel
// prints process ids as the reader's own namespace has them.
func (fs *FS) holdsUs(cgroup string) bool {
	dir, _, err := fs.openDir(cgroup)
	if err != nil {
		return false
	}
	defer fs.k.close(dir)
	// A threaded cgroup refuses cgroup.procs with EOPNOTSUPP; the main
	// thread has the number of the process.
	for _, file := range []string{"cgroup.procs", "cgroup.threads"} {
		b, _, err := readFileAt(fs.k, dir, file, nil)
		if err != nil {
			continue
		}
		for pid := range bytes.FieldsSeq(b) {
			if string(pid) == strconv.Itoa(unix.Getpid()) {
				return true
			}
		}
	}
	return false
}

// searchSelf looks for the agent's process in a cgroup and all below it.
func (fs *FS) searchSelf(cgroup string) bool {
	if fs.holdsUs(cgroup) {
		fs.self.path, fs.self.literal, fs.self.known = cgroup, cgroup, true
		return true
	}
	name, ok := relative(cgroup)
	if !ok {
		return false
	}
	_, dirs, err := fs.list(fs.mountDir, name)
	if err != nil {
		return false
	}
	for _, d := range dirs {
		if fs.searchSelf(path.Join(cgroup, d)) {
			return true
		}
	}
	return false
}

// belowMount turns a path of /proc/PID/cgroup into one below the mount whose
// root the mount table gives. Both are relative to the cgroup namespace of the
// reader, whose names above it nobody tells: from there on it is not ok.
func belowMount(own, mountRoot string) (string, bool) {
	switch {
	case own == "/.." || strings.HasPrefix(own, "/../"),
		mountRoot == "/.." || strings.HasPrefix(mountRoot, "/../"):
		return "", false
	case mountRoot == "/" || mountRoot == "":
		return own, true
	case own == mountRoot:
		return "/", true
	}
	below, ok := strings.CutPrefix(own, mountRoot+"/")
	return "/" + below, ok
}

// removedMark is what the kernel appends to the path of a removed cgroup
// (cgroup_show in kernel/cgroup/cgroup.c). A name may also end in it, so who
// cares about the difference must look at both.
const removedMark = " (deleted)"

// parseProcCgroup returns the cgroup v2 path of /proc/PID/cgroup. Lines are
// "id:controllers:path"; the path may hold colons, so only the first two
// separate (case c19). ok is false without a "0::" line.
func parseProcCgroup(b []byte) (cgroup string, removed, ok bool) {
	for line := range bytes.Lines(b) {
		p, found := bytes.CutPrefix(line, []byte("0::"))
		if !found {
			continue
		}
		cgroup, removed = strings.CutSuffix(strings.TrimSuffix(string(p), "\n"), removedMark)
		return cgroup, removed, strings.HasPrefix(cgroup, "/")
	}
	return "", false, false
}
