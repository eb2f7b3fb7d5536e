package cgroupfs

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// modelKernel is a kernel whose lru_gen does what 6.12 and 7.3 were seen to do: it
// evicts whole batches from the oldest generation, and ages.
type modelKernel struct {
	*generations
	max  bool // it knows max, and takes anon and file apart, as 7.3
	all  []*modelList
	lock func(c command) // called before each command
}

// modelList is one list: generations of {age in s, anon, file}, numbered from
// seq on.
type modelList struct {
	path      string
	id        uint64
	node, seq int
	gens      [][3]int
}

func newModel(t testing.TB, max bool, all ...*modelList) *modelKernel {
	var files []string
	for _, l := range all {
		if l.path != "/p" {
			files = append(files, "sys/fs/cgroup"+l.path+"/memory.current", "9000000000\n")
		}
	}
	k := &modelKernel{generations: newGenerations(t, 1, files...), max: max, all: all}
	k.react = func(_ *generations, c command) error { return k.do(c) }
	k.show()
	return k
}

// show writes what files show of the lists.
func (k *modelKernel) show() {
	var entries []string
	var pages [2]uint64
	byNode := map[int][2]uint64{}
	for i, l := range k.all {
		if i == 0 || k.all[i-1].path != l.path {
			entries = append(entries, cgroupEntry(l.id, l.path))
		}
		entries = append(entries, nodeList(l.node, l.seq, l.gens...))
		if l.path != "/p" && !isAbove("/p", l.path) {
			continue
		}
		sum := byNode[l.node]
		for _, g := range l.gens {
			for kind := range sum {
				sum[kind] += uint64(g[1+kind])
				pages[kind] += uint64(g[1+kind])
			}
		}
		byNode[l.node] = sum
	}
	k.list(entries...)
	lines := [2]string{"anon", "file"}
	for _, node := range []int{0, 8, 252} {
		for kind := range lines {
			lines[kind] += fmt.Sprintf(" N%d=%d", node, byNode[node][kind]*page)
		}
	}
	k.current = (pages[0] + pages[1]) * page
	k.publish()
	k.set("sys/fs/cgroup/p/memory.numa_stat", lines[0]+"\n"+lines[1]+"\n")
}

func (k *modelKernel) do(c command) error {
	if k.lock != nil {
		k.lock(c)
	}
	i := slices.IndexFunc(k.all, func(l *modelList) bool { return l.id == c.id && l.node == c.node })
	if i < 0 {
		return unix.EINVAL
	}
	l := k.all[i]
	defer k.show()
	last := l.seq + len(l.gens) - 1
	if c.op == "+" {
		if int(c.seq) == last {
			l.age()
		}
		return nil
	}
	if c.swappiness == "max" && !k.max || int(c.seq)+youngest > last {
		return unix.EINVAL
	}
	for freed := 0; freed < int(c.pages); {
		n := l.batch(int(c.seq), c.swappiness, k.max)
		if n == 0 {
			return nil
		}
		freed += n
		k.steal += uint64(n)
	}
	return nil
}

// age makes a new generation; with four there already the oldest is merged into
// the next.
func (l *modelList) age() {
	if len(l.gens) == 4 {
		l.gens[1][1] += l.gens[0][1]
		l.gens[1][2] += l.gens[0][2]
		l.gens, l.seq = l.gens[1:], l.seq+1
	}
	l.gens = append(l.gens, [3]int{})
}

// batch takes at most one batch of one kind and returns how many pages.
func (l *modelList) batch(seq int, swappiness string, apart bool) int {
	take := func(g, kind int) int {
		n := min(l.gens[g][1+kind], evictBatch)
		l.gens[g][1+kind] -= n
		return n
	}
	first := 1 // file
	if swappiness == "200" || swappiness == "max" {
		first = 0
	}
	for _, kind := range []int{first, 1 - first} {
		if swappiness == "0" && kind == 0 || swappiness == "max" && kind == 1 {
			continue
		}
		for g := range l.gens {
			if l.seq+g > seq {
				break
			}
			if n := take(g, kind); n > 0 {
				return n
			}
			if !apart && swappiness != "0" && l.gens[g][2-kind] > 0 {
				break // the oldest generation goes first
			}
		}
	}
	return 0
}

// runOn reclaims from /p.
func (k *modelKernel) runOn(r memcg.Reclaim, nodes ...memcg.NodeID) memcg.Outcome {
	r.Nodes = memcg.NodesOf(nodes...)
	return k.run(r)
}

// left returns what a list has left, in pages.
func (l *modelList) left() (anon, file int) {
	for _, g := range l.gens {
		anon, file = anon+g[1], file+g[2]
	}
	return anon, file
}
