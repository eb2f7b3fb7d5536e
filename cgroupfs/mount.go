package cgroupfs

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// usualMount is where cgroup2 is on every distribution, looked at when no
// mountinfo can be read.
const usualMount = "/sys/fs/cgroup"

// discover fills the layout, opens the cgroup2 mount and finds the agent's own
// cgroup.
func (fs *FS) discover() error {
	mounts, err := fs.readMounts()
	switch {
	case errors.Is(err, memcg.ErrUnsupported): // no proc here
		fs.discoverWithoutProc()
	case err != nil:
		return err
	default:
		fs.discoverFrom(mounts)
	}
	if fs.mountDir < 0 || fs.layout.MemoryOn != OnV2 {
		return &NoMemoryController{Root: fs.root, Layout: fs.layout}
	}
	return nil
}

// readMounts reads the mount table whose mount points are paths below root.
//
// For "/" that is the agent's own. For another root it is that of the host's
// first process: "proc/self" below a mounted host /proc is still the agent,
// so its table speaks of the agent's namespace, where the host's mounts carry
// the root as a prefix, or are missing when they came later and propagation
// is off. Process 1 sees exactly the paths that follow the root. Where its
// table cannot be read (hidepid, a recorded tree), the agent's own is taken
// with the prefix cut off.
func (fs *FS) readMounts() ([]mount, error) {
	if fs.root != "/" {
		b, _, err := readFileAt(fs.k, fs.rootDir, "proc/1/mountinfo", nil)
		if err == nil {
			return parseMountinfo(b), nil
		}
	}
	b, _, err := readFileAt(fs.k, fs.rootDir, "proc/self/mountinfo", nil)
	if err != nil {
		return nil, err
	}
	mounts := parseMountinfo(b)
	if fs.root == "/" {
		return mounts, nil
	}
	for i, m := range mounts {
		if p, ok := strings.CutPrefix(m.point, fs.root); ok && (p == "" || p[0] == '/') {
			mounts[i].point = "/" + strings.TrimPrefix(p, "/")
		}
	}
	return mounts, nil
}

// view is one cgroup2 mount that can be reached.
type view struct {
	mount
	dir         int // descriptor
	controllers []string
	listed      bool // cgroup.controllers could be read
	whole       bool // shows the root of the hierarchy
	fixture     bool
}

// has reports whether a controller is available in the view. A recorded tree
// without cgroup.controllers is taken to have memory: it was recorded for it.
func (v view) has(controller string) bool {
	if !v.listed {
		return v.fixture && controller == "memory"
	}
	return slices.Contains(v.controllers, controller)
}

func (fs *FS) discoverFrom(mounts []mount) {
	v1 := map[string]bool{}
	var v2 []mount
	for _, m := range mounts {
		switch m.fstype {
		case "cgroup":
			// Controllers are among the options of a v1 filesystem; "name="
			// marks a hierarchy that has none.
			for o := range strings.SplitSeq(m.super, ",") {
				if o != "rw" && o != "ro" && o != "xattr" && o != "noprefix" && o != "clone_children" && !strings.Contains(o, "=") {
					v1[o] = true
				}
			}
		case "cgroup2":
			v2 = append(v2, m)
		}
	}
	var best *view
	for _, m := range v2 {
		if covered(m, mounts) {
			continue
		}
		v, ok := fs.look(m)
		if ok && v.fixture && hidden(m, mounts) {
			_ = fs.k.close(v.dir)
			ok = false
		}
		if !ok {
			fs.layout.Hidden = append(fs.layout.Hidden, m.point)
			continue
		}
		switch {
		case best == nil:
			best = &v
		case better(v, *best):
			_ = fs.k.close(best.dir)
			best = &v
		default:
			_ = fs.k.close(v.dir)
		}
	}
	switch {
	case len(v2) > 0 && len(v1) > 0:
		fs.layout.Mode = ModeHybrid
	case len(v2) > 0:
		fs.layout.Mode = ModeUnified
	case len(v1) > 0:
		fs.layout.Mode = ModeV1
	default:
		fs.layout.Mode = ModeNone
	}
	if best != nil {
		fs.use(*best)
	}
	if fs.layout.MemoryOn == Nowhere && v1["memory"] {
		fs.layout.MemoryOn = OnV1
	}
	if fs.layout.CpusetOn == Nowhere && v1["cpuset"] {
		fs.layout.CpusetOn = OnV1
	}
	fs.findSelf()
	fs.layout.Unmounted = len(v2) == 0 && fs.self.listed
}

// better reports whether a serves better than b: memory first, then the whole
// hierarchy, then being writable. Otherwise the earlier mount stays.
func better(a, b view) bool {
	if a.has("memory") != b.has("memory") {
		return a.has("memory")
	}
	if a.whole != b.whole {
		return a.whole
	}
	return !a.readOnly() && b.readOnly()
}

// use makes v the mount of the FS.
func (fs *FS) use(v view) {
	fs.mountDir = v.dir
	fs.layout.Mount = v.point
	fs.layout.Controllers = v.controllers
	fs.layout.Namespaced = !v.whole
	fs.layout.Fixture = v.fixture
	fs.layout.ReadOnlyMount = v.readOnly()
	fs.self.mountRoot = v.root
	if v.has("memory") {
		fs.layout.MemoryOn = OnV2
	}
	if v.has("cpuset") {
		fs.layout.CpusetOn = OnV2
	}
}

// look opens a cgroup2 mount and sees what it offers; ok is false when its
// mount point leads elsewhere.
func (fs *FS) look(m mount) (v view, ok bool) {
	dir, err := fs.k.open(fs.rootDir, strings.TrimPrefix(m.point, "/"), unix.O_PATH|unix.O_DIRECTORY, inRoot)
	if err != nil {
		return view{}, false
	}
	v = view{mount: m, dir: dir}
	magic, err := fs.k.magic(dir)
	if err != nil {
		_ = fs.k.close(dir)
		return view{}, false
	}
	if v.fixture = magic != unix.CGROUP2_SUPER_MAGIC; v.fixture && fs.onKernel() {
		_ = fs.k.close(dir) // something else was mounted over it
		return view{}, false
	}
	if b, _, err := readFileAt(fs.k, dir, "cgroup.controllers", nil); err == nil {
		v.listed = true
		v.controllers = strings.Fields(string(b))
	}
	v.whole = fs.isHierarchyRoot(v)
	return v, true
}

// onKernel reports whether proc below the root is a kernel's: then the mount
// table speaks of real mounts, and a recorded tree cannot be meant.
func (fs *FS) onKernel() bool {
	dir, err := fs.k.open(fs.rootDir, "proc", unix.O_PATH|unix.O_DIRECTORY, inRoot)
	if err != nil {
		return false
	}
	defer fs.k.close(dir)
	magic, err := fs.k.magic(dir)
	return err == nil && magic == unix.PROC_SUPER_MAGIC
}

// isHierarchyRoot reports whether a mount shows the root of the hierarchy.
// The mount table alone cannot tell: it prints "/" for the root of the
// reader's cgroup namespace, and "/.." for what lies above it. The root cgroup
// is the only one without cgroup.type.
func (fs *FS) isHierarchyRoot(v view) bool {
	if v.root != "/" && strings.Trim(v.root, "/.") != "" {
		return false
	}
	fd, err := fs.k.open(v.dir, "cgroup.type", unix.O_PATH, beneath)
	if err != nil {
		return true
	}
	_ = fs.k.close(fd)
	return false
}
