package cgroupfs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// generations is a tree that claims to be a kernel's, with the multi-gen LRU
// on. It reacts to commands on lru_gen: it takes from memory.current of /p,
// below which all its lists are.
type generations struct {
	*faulty
	t       testing.TB
	root    string
	now     time.Time
	current uint64 // of /p, bytes
	steal   uint64 // pages
	// react answers one command; it may change anything.
	react    func(k *generations, c command) error
	commands []command
	readings int
}

// command is one write to lru_gen.
type command struct {
	raw        string
	op         string
	id         uint64
	node       int
	seq        uint64
	swappiness string
	pages      uint64 // what "+" has for force
}

// page is what the tests take a page to be, as the FS does.
var page = uint64(unix.Getpagesize())

func newGenerations(t testing.TB, current uint64, files ...string) *generations {
	files = append(onCgroup2("/agent"), append([]string{
		"sys/fs/cgroup/p/memory.reclaim", "", "sys/fs/cgroup/p/cgroup.events", "populated 1\nfrozen 0\n", "sys/fs/cgroup/p/memory.swap.current", "0\n",
		lruGenEnabled, "0x0007\n", lruGenFile, "", "proc/sys/vm/swappiness", "60\n",
		"proc/meminfo", "MemTotal: 1000000 kB\nSwapTotal: 1000000 kB\nSwapFree: 1000000 kB\n",
	}, files...)...)
	root := fixtureCopy(t, "", files...)
	k := &generations{faulty: withFaults(t, root, nil), t: t, root: root, now: time.Unix(1e9, 0), current: current}
	k.faulty.cgroup2 = true
	k.react = func(k *generations, c command) error { k.take(c.pages); return nil }
	k.publish()
	return k
}

func (k *generations) take(pages uint64) {
	pages = min(pages, k.current/page)
	k.current -= pages * page
	k.steal += pages
	k.publish()
}

func (k *generations) publish() {
	k.set("sys/fs/cgroup/p/memory.current", fmt.Sprintln(k.current))
	k.set("sys/fs/cgroup/p/memory.stat", fmt.Sprintf("pgsteal %d\n", k.steal))
}

func (k *generations) set(file, content string) { writeFile(k.t, k.root, file, content) }

// list sets what lru_gen has; lines are "memcg ..." entries made by list.
func (k *generations) list(entries ...string) { k.set(lruGenFile, strings.Join(entries, "")) }

func (k *generations) pread(fd int, b []byte, offset int64) (int, error) {
	if offset == 0 && k.path(fd, "") == lruGenFile {
		k.readings++
	}
	return k.faulty.pread(fd, b, offset)
}

func (k *generations) open(dir int, name string, flags int, how resolve) (int, error) {
	if flags&unix.O_NONBLOCK != 0 {
		k.t.Errorf("%s is opened without blocking", name)
	}
	return k.faulty.open(dir, name, flags, how)
}

func (k *generations) write(fd int, b []byte) (int, error) {
	if _, err := k.faulty.write(fd, b); err != nil {
		return -1, err
	}
	if k.path(fd, "") != lruGenFile {
		return len(b), nil
	}
	c := command{raw: string(b)}
	if _, err := fmt.Sscanf(c.raw, "%s %d %d %d %s %d", &c.op, &c.id, &c.node, &c.seq, &c.swappiness, &c.pages); err != nil || strings.ContainsAny(c.raw, ",;\n") {
		k.t.Errorf("not one command: %q, %v", b, err)
	}
	k.commands = append(k.commands, c)
	if err := k.react(k, c); err != nil {
		return -1, err
	}
	return len(b), nil
}

func (k *generations) host(opts ...Option) *FS {
	return mustOpen(k.t, k.root, append([]Option{withKernel(k), withClock(func() time.Time { return k.now })}, opts...)...)
}

func (k *generations) run(r memcg.Reclaim) memcg.Outcome {
	k.t.Helper()
	fs := k.host()
	r.Cgroup = idOf(k.t, fs, "/p")
	return fs.Reclaim(k.t.Context(), r)
}

func (k *generations) raws() (all []string) {
	for _, c := range k.commands {
		all = append(all, c.raw)
	}
	return all
}

// node is one list of an entry: generations of {age in s, anon, file}, numbered
// from seq on.
func nodeList(node, seq int, gens ...[3]int) string {
	s := fmt.Sprintf(" node %5d\n", node)
	for i, g := range gens {
		s += fmt.Sprintf(" %10d %10d %10d  %10d \n", seq+i, g[0]*1000, g[1], g[2])
	}
	return s
}

func cgroupEntry(id uint64, path string, lists ...string) string {
	return fmt.Sprintf("memcg %5d %s\n%s", id, path, strings.Join(lists, ""))
}

// young are two generations that the kernel never evicts.
var young = [][3]int{{10, 50, 50}, {0, 50, 50}}
