package cgroupfs

import (
	"path"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// ancestor is a cgroup above sampled ones, kept for its swap limit. A cgroup
// cannot be removed or replaced while one below it lives, so its path is
// enough to know it by.
type ancestor struct {
	path  string
	up    *ancestor // nil for the mount's top
	users int       // cgroups and ancestors that point here

	dir      int // -1 until opened, or where it cannot be
	max, now openFile

	tick uint64      // of room
	room memcg.Limit // the least of this and all above it
}

// swapRoom returns how much anon the swap limits of a cgroup and of all above
// it let out (case c52). own is the cgroup's own room. A limit that is not
// known makes the result unknown: an understatement of what binds would look
// exact.
func (fs *FS) swapRoom(c *cgroup, own memcg.Limit, buf *scratch) memcg.Limit {
	if own.State() != memcg.Present || c.id.Path == "/" {
		return own
	}
	fs.swapMu.Lock()
	defer fs.swapMu.Unlock()
	if !c.linked {
		c.above, c.linked = fs.link(path.Dir(c.id.Path)), true
	}
	return tighter(own, fs.roomOf(c.above, buf))
}

// roomOf returns the room of an ancestor and all above it, read once a tick.
func (fs *FS) roomOf(a *ancestor, buf *scratch) memcg.Limit {
	tick := fs.tick.Load()
	if tick != 0 && a.tick == tick {
		return a.room
	}
	a.tick, a.room = tick, fs.ownRoom(a, buf)
	if a.up != nil {
		a.room = tighter(a.room, fs.roomOf(a.up, buf))
	}
	return a.room
}

// ownRoom reads the limit of one ancestor. The root of the hierarchy has none
// and does not bind; neither does the top of a mount that shows no limit.
func (fs *FS) ownRoom(a *ancestor, buf *scratch) memcg.Limit {
	if a.dir < 0 {
		name, ok := relative(a.path)
		if !ok {
			return memcg.NoLimitFile(memcg.Missing)
		}
		dir, err := fs.k.open(fs.mountDir, name, unix.O_PATH|unix.O_DIRECTORY, beneath)
		if err != nil {
			return memcg.NoLimitFile(memcg.Missing)
		}
		a.dir = dir
		fs.folders.Add(-1)
	}
	if fs.tick.Load()%recheck == 0 {
		a.max.tryAgain()
		a.now.tryAgain()
	}
	b, err := fs.readFile(a.dir, &a.max, swapMax, buf)
	if err != nil {
		return fs.noRoom(a, &a.max, swapMax, err)
	}
	limit := parseLimitFile(b)
	if _, finite := limit.Bytes(); !finite {
		return limit
	}
	if b, err = fs.readFile(a.dir, &a.now, swapCurrent, buf); err != nil {
		return fs.noRoom(a, &a.now, swapCurrent, err)
	}
	return limit.Room(parseValueFile(b))
}

func (fs *FS) noRoom(a *ancestor, o *openFile, f file, err error) memcg.Limit {
	switch {
	case err == errAbsent || err == errNoFile:
		o.state = absent
		if a.up == nil {
			return memcg.Unlimited()
		}
		return memcg.NoLimitFile(memcg.Unsupported)
	case err == errVanished:
		return memcg.NoLimitFile(memcg.Missing)
	}
	fs.notes.add(f, a.path, newError("read", fs.file(a.path, fileNames[f]), err))
	return memcg.NoLimitFile(memcg.Missing)
}

// tighter is Limit.Min for limits that must all be known.
func tighter(a, b memcg.Limit) memcg.Limit {
	if a.State() != memcg.Present {
		return a
	}
	if b.State() != memcg.Present {
		return b
	}
	return a.Min(b)
}

// link returns the ancestor of a path, made when it is new, with one user more.
func (fs *FS) link(p string) *ancestor {
	a := fs.ancestors[p]
	if a == nil {
		a = &ancestor{path: p, dir: -1}
		if p != "/" {
			a.up = fs.link(path.Dir(p))
		}
		fs.ancestors[p] = a
	}
	a.users++
	return a
}

// unlink lets go of the ancestors of a cgroup, and closes those that no other
// cgroup is below.
func (fs *FS) unlink(c *cgroup) {
	fs.swapMu.Lock()
	defer fs.swapMu.Unlock()
	for a := c.above; a != nil; a = a.up {
		if a.users--; a.users > 0 {
			break
		}
		delete(fs.ancestors, a.path)
		fs.shut(&a.max)
		fs.shut(&a.now)
		if a.dir >= 0 {
			fs.closeDir(&a.dir)
		}
	}
	c.above, c.linked = nil, false
}
