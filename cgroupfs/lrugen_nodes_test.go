package cgroupfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

// old is one list with an old generation.
func old(path string, id uint64, node, anon, file int) *modelList {
	return &modelList{path, id, node, 3, append([][3]int{{600, anon, file}}, slices.Clone(young)...)}
}

func TestC09OnlyTheNodesOfARequestGive(t *testing.T) {
	for _, tt := range []struct {
		name       string
		older      time.Duration
		swappiness int
		nodes      []memcg.NodeID
		want       []string
	}{
		{"one node", 0, 0, []memcg.NodeID{8}, []string{"- 20 8 3 0 320", "- 21 8 3 0 320"}},
		{"two nodes", 0, 0, []memcg.NodeID{8, 252}, []string{"- 20 252 3 0 320", "- 20 8 3 0 160", "- 21 8 3 0 128"}},
		{"of an age", time.Minute, 0, []memcg.NodeID{8}, []string{"- 20 8 3 0 320", "- 21 8 3 0 320"}},
		{"1 may swap, and 0 is sent", 0, 1, []memcg.NodeID{8}, []string{"- 20 8 3 0 320", "- 21 8 3 0 320"}},
		{"max is anon alone", 0, memcg.SwappinessMax, []memcg.NodeID{8}, []string{"- 20 8 3 max 640"}},
		{"200 is anon first", 0, 200, []memcg.NodeID{8}, []string{"- 20 8 3 max 640"}},
		{"both", 0, 100, []memcg.NodeID{252}, []string{"- 20 252 3 100 640"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newModel(t, true, old("/p", 20, 0, 5000, 5000), old("/p", 20, 8, 1000, 1000), old("/p", 20, 252, 0, 2000),
				old("/p/x y", 21, 0, 0, 5000), old("/p/x y", 21, 8, 0, 1000), old("/q", 22, 8, 5000, 5000))
			o := k.runOn(memcg.Reclaim{Bytes: 640 * page, OlderThan: tt.older, Swappiness: memcg.SwappinessOf(tt.swappiness)}, tt.nodes...)
			if o.Err != nil || o.Refused != nil || o.Via != memcg.ViaLRUGen || !slices.Equal(k.raws(), tt.want) {
				t.Errorf("commands %q, want %q; %v", k.raws(), tt.want, o.Err)
			}
			var gone uint64
			for _, n := range o.Nodes {
				anon, _ := n.Anon.Get()
				file, _ := n.File.Get()
				if !o.Request.Nodes.Has(n.Node) && anon+file > 0 || n.Reclaimed.State() != memcg.Unsupported {
					t.Errorf("node %d: %+v", n.Node, n)
				}
				gone += anon + file
			}
			if len(o.Nodes) != 3 || gone != 640*page {
				t.Errorf("%d bytes are gone by node: %+v", gone, o.Nodes)
			}
		})
	}
}

func Test200TakesFileWhereAnonIsNotEnough(t *testing.T) {
	list := func(node, anon, file int) *modelList {
		return &modelList{"/p", 20, node, 3, [][3]int{{600, anon, file}, {}, {}}}
	}
	k := newModel(t, true, list(0, 0, 4096), list(8, 640, 640))
	o := k.runOn(memcg.Reclaim{Bytes: 960 * page, Swappiness: memcg.SwappinessOf(200)}, 0, 8)
	if want := []string{"- 20 8 3 max 640", "- 20 0 3 200 276"}; !slices.Equal(k.raws(), want) || o.Err != nil || o.Shrunk != memcg.Value(960*page) {
		t.Errorf("commands %q, want %q; %+v", k.raws(), want, o)
	}
}

func TestListsAreAgedWhereTooLittleCanBeEvicted(t *testing.T) {
	fresh := func(node int, gens ...[3]int) *modelList { return &modelList{"/p", 20, node, 3, gens} }
	for _, tt := range []struct {
		name  string
		older time.Duration
		pages uint64
		list  *modelList
		want  []string
		kind  error
		text  string
	}{
		{"all is in the youngest", 0, 640, fresh(8, [3]int{10, 0, 0}, [3]int{5, 0, 1280}),
			[]string{"+ 20 8 4 1 1", "+ 20 8 5 1 1", "- 20 8 4 0 640"}, nil, ""},
		{"it is in the youngest but one", 0, 640, fresh(8, [3]int{10, 0, 1280}, [3]int{5, 0, 0}),
			[]string{"+ 20 8 4 1 1", "- 20 8 3 0 640"}, nil, ""},
		{"there is enough that is old", 0, 640, fresh(8, [3]int{10, 0, 640}, [3]int{5, 0, 640}, [3]int{0, 0, 640}), []string{"- 20 8 3 0 640"}, nil, ""},
		{"a little is old", 0, 640, fresh(8, [3]int{10, 0, 64}, [3]int{5, 0, 640}, [3]int{0, 0, 0}),
			[]string{"+ 20 8 5 1 1", "- 20 8 4 0 640"}, nil, ""},
		{"old, and among the two youngest all the same", time.Minute, 640, fresh(8, [3]int{90, 0, 640}, [3]int{0, 0, 640}),
			[]string{"+ 20 8 4 1 1", "- 20 8 3 0 640"}, nil, ""},
		{"nothing comes of age by aging", time.Minute, 640, fresh(8, [3]int{30, 0, 640}, [3]int{0, 0, 640}), nil, memcg.ErrPartial, "no generation is older"},
		{"there is not so much", 0, 640, fresh(8, [3]int{10, 0, 64}, [3]int{5, 0, 64}),
			[]string{"+ 20 8 4 1 1", "+ 20 8 5 1 1", "- 20 8 4 0 128"}, memcg.ErrPartial, "gave less"},
		{"nothing of the kind", 0, 640, fresh(8, [3]int{10, 640, 0}, [3]int{5, 640, 0}), nil, memcg.ErrPartial, "swappiness of 0 takes"},
		{"nothing on the node", 0, 640, fresh(0, [3]int{10, 0, 640}, [3]int{5, 0, 640}, [3]int{5, 0, 640}), nil, memcg.ErrPartial, "no memory there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newModel(t, true, old("/p", 20, 252, 5000, 5000), tt.list)
			o := k.runOn(memcg.Reclaim{Bytes: tt.pages * page, OlderThan: tt.older, Swappiness: memcg.SwappinessOf(0)}, 8)
			if !slices.Equal(k.raws(), tt.want) || o.Writes != len(tt.want) {
				t.Errorf("commands %q, want %q", k.raws(), tt.want)
			}
			if !errors.Is(o.Err, tt.kind) || (o.Err == nil) != (tt.kind == nil) || tt.kind != nil && !strings.Contains(o.Err.Error(), tt.text) {
				t.Errorf("err = %v, want %q", o.Err, tt.text)
			}
		})
	}
}

// On a kernel that empties the oldest generation first whatever is in it, file
// that is older is brought together with the anon, and then stays.
func TestAnonAloneFromAKernelWithoutMax(t *testing.T) {
	for _, tt := range []struct {
		name string
		gens [][3]int
	}{
		{"anon is the oldest", [][3]int{{90, 2000, 0}, {80, 0, 3000}, {1, 0, 0}, {0, 0, 0}}},
		{"both are of one generation", [][3]int{{90, 2000, 3000}, {80, 0, 0}, {1, 0, 0}, {0, 0, 0}}},
		{"file is older", [][3]int{{90, 0, 3000}, {80, 2000, 0}, {1, 0, 0}, {0, 0, 0}}},
		{"most anon is younger", [][3]int{{90, 5, 3000}, {80, 1995, 0}, {1, 0, 0}, {0, 0, 0}}},
	} {
		for _, swappiness := range []int{200, memcg.SwappinessMax} {
			t.Run(fmt.Sprint(tt.name, ", ", swappiness), func(t *testing.T) {
				k := newModel(t, false, &modelList{"/p", 20, 8, 3, slices.Clone(tt.gens)})
				o := k.runOn(memcg.Reclaim{Bytes: 1280 * page, Swappiness: memcg.SwappinessOf(swappiness)}, 8)
				if anon, file := k.all[0].left(); o.Err != nil || anon != 720 || file != 3000 {
					t.Errorf("%d anon and %d file are left after %q: %v", anon, file, k.raws(), o.Err)
				}
			})
		}
	}
}

func TestARequestForNodesGoesRoundUntilEnoughIsGone(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{600, 0, 1 << 16}}, young...)...)))
	k.react = func(k *generations, c command) error { k.take(c.pages / 2); return nil }
	o := k.run(memcg.Reclaim{Bytes: 2000 * page, Swappiness: memcg.SwappinessOf(0), Nodes: memcg.NodesOf(0)})
	if want := []uint64{2000, 1000, 500, 250}; !slices.Equal(pagesOf(k.commands), want) || !errors.Is(o.Err, memcg.ErrPartial) || o.Reclaimed != memcg.Value(1875*page) || o.Asked != 2000*page {
		t.Errorf("asked %v, want %v; %+v", pagesOf(k.commands), want, o)
	}
}

func TestANodeThatGoesOfflineCostsTheOthersNothing(t *testing.T) {
	k := newModel(t, true, old("/p", 20, 0, 0, 5000), old("/p", 20, 8, 0, 1280))
	k.lock = func(c command) {
		k.lock, k.all = nil, k.all[1:] // node 0, which is written to
		k.show()
	}
	o := k.runOn(memcg.Reclaim{Bytes: 640 * page, Swappiness: memcg.SwappinessOf(0)}, 0, 8)
	if _, file := k.all[0].left(); o.Err != nil || file != 740 {
		t.Errorf("%d are left after %q: %v", file, k.raws(), o.Err)
	}
	k = newModel(t, true, old("/p", 20, 0, 0, 5000), old("/p", 20, 8, 0, 1280))
	k.lock = func(c command) { k.lock, k.all = nil, nil; k.show() }
	o = k.runOn(memcg.Reclaim{Bytes: 640 * page, Swappiness: memcg.SwappinessOf(0)}, 0)
	if len(k.commands) != 1 || !errors.Is(o.Err, memcg.ErrPartial) || !strings.Contains(o.Err.Error(), "no memory there") {
		t.Errorf("commands %q, err %v", k.raws(), o.Err)
	}
}

// What a cgroup that was removed left behind stays listed under its path, with
// an id that may be another's by now.
func TestTheListsOfRemovedCgroupsAreLeftAlone(t *testing.T) {
	for _, tt := range []struct {
		name    string
		removed uint64 // id
		want    []string
	}{
		{"with the id 0", 0, []string{"- 20 8 3 0 640"}},
		{"with an id of its own", 19, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newModel(t, true, old("/p", tt.removed, 8, 0, 5000), old("/q", 22, 8, 0, 5000), old("/p", 20, 8, 0, 1280))
			o := k.runOn(memcg.Reclaim{Bytes: 640 * page, Swappiness: memcg.SwappinessOf(0)}, 8)
			if !slices.Equal(k.raws(), tt.want) || (o.Err == nil) != (tt.want != nil) {
				t.Errorf("commands %q, err %v", k.raws(), o.Err)
			}
		})
	}
}

// Nodes are never dropped: where no way can keep to them nothing is written.
func TestC32NodesAreNeverDropped(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setUp func(k *generations)
		kind  error
		text  string
	}{
		{"the multi-gen LRU is off", func(k *generations) { k.set(lruGenEnabled, "0x0000\n") }, memcg.ErrUnsupported, "switched off"},
		{"debugfs is not mounted", func(k *generations) {
			k.faults = []fault{{op: "open", path: lruGenFile, errno: unix.ENOENT}}
		}, memcg.ErrUnsupported, "mount debugfs"},
		{"locked down", func(k *generations) {
			k.faults = []fault{{op: "open", path: lruGenFile, errno: unix.EPERM}}
			k.set(lockdownFile, "none [integrity] confidentiality\n")
		}, memcg.ErrDenied, "lockdown is integrity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newGenerations(t, 1024*mib)
			k.list(cgroupEntry(20, "/p", oldList(1)))
			tt.setUp(k)
			o := k.run(memcg.Reclaim{Bytes: mib, Nodes: memcg.NodesOf(0, 8)})
			if !errors.Is(o.Err, tt.kind) || !strings.Contains(o.Err.Error(), tt.text) || !strings.Contains(o.Err.Error(), "on nodes 0,8") ||
				!strings.Contains(o.Err.Error(), "through damon") || len(k.writes) != 0 || o.Writes != 0 || o.Via != "" {
				t.Errorf("writes %q, outcome %+v", k.writes, o)
			}
		})
	}
}

// The laws of a request for nodes, on either kernel: what is on other nodes and
// in other cgroups stays, the wrong kind stays, no more than a batch is taken
// beyond what was asked for, and all of it is taken where it is there.
func TestLawsOfARequestForNodes(t *testing.T) {
	nodes := []int{0, 8, 252}
	k := newModel(t, true, old("/p", 20, 0, 0, 0), old("/p/x", 21, 0, 0, 0), old("/q", 22, 0, 0, 0))
	rapid.Check(t, func(rt *rapid.T) {
		var all []*modelList
		for i, path := range []string{"/p", "/p/x", "/q"} {
			for _, node := range nodes {
				l := &modelList{path: path, id: uint64(20 + i), node: node, seq: rapid.IntRange(0, 1000).Draw(rt, "seq")}
				for range rapid.IntRange(2, 4).Draw(rt, "generations") {
					l.gens = append(l.gens, [3]int{60, rapid.IntRange(0, 3000).Draw(rt, "anon"), rapid.IntRange(0, 3000).Draw(rt, "file")})
				}
				all = append(all, l)
			}
		}
		k.all, k.max, k.commands, k.writes = all, rapid.Bool().Draw(rt, "max"), nil, nil
		k.show()
		swappiness := rapid.SampledFrom([]int{0, 1, 60, 100, 199, 200, memcg.SwappinessMax}).Draw(rt, "swappiness")
		on := memcg.NodesOf(memcg.NodeID(nodes[rapid.IntRange(0, 2).Draw(rt, "node")]), memcg.NodeID(nodes[rapid.IntRange(0, 2).Draw(rt, "node")]))
		var before [][2]int
		for _, l := range all {
			anon, file := l.left()
			before = append(before, [2]int{anon, file})
		}
		want := rapid.IntRange(evictBatch, 3000).Draw(rt, "pages")
		o := k.run(memcg.Reclaim{Bytes: uint64(want) * page, Swappiness: memcg.SwappinessOf(swappiness), Nodes: on, Deadline: time.Minute})
		gone := 0
		for i, l := range all {
			anon, file := l.left()
			anon, file = before[i][0]-anon, before[i][1]-file
			gone += anon + file
			switch {
			case l.path == "/q" || !on.Has(memcg.NodeID(l.node)):
				if anon+file != 0 {
					rt.Errorf("%s on node %d gave %d and %d", l.path, l.node, anon, file)
				}
			case swappiness <= 1 && anon != 0, swappiness == memcg.SwappinessMax && file > evictBatch:
				rt.Errorf("%s on node %d gave %d and %d with swappiness %d", l.path, l.node, anon, file, swappiness)
			}
		}
		if o.Asked > uint64(want)*page {
			rt.Errorf("%d bytes were asked for of %d: %q", o.Asked, uint64(want)*page, k.raws())
		}
		if gone >= want+evictBatch || o.Err == nil && gone < want {
			rt.Errorf("%d pages are gone of %d asked for: %v, %q", gone, want, o.Err, k.raws())
		}
		if !errors.Is(o.Err, memcg.ErrPartial) && o.Err != nil {
			rt.Errorf("err = %v", o.Err)
		}
	})
}

// Ids are recycled on kernels before 7.0: a cgroup that was replaced since the
// listing was read is neither evicted from nor aged by the id that it had.
func TestAnIDThatMayBeAnothersIsNotUsedForNodes(t *testing.T) {
	k := newModel(t, true, old("/p", 20, 8, 0, 64), old("/p/x", 21, 8, 0, 5000))
	fs := k.host()
	fs.BeginTick()
	if _, err := fs.Generations(idOf(t, fs, "/p"), nil); err != nil {
		t.Fatal(err)
	}
	x := filepath.Join(k.root, "sys/fs/cgroup/p/x")
	if err := os.Rename(x, filepath.Join(k.root, "old")); err != nil {
		t.Fatal(err)
	}
	k.set("sys/fs/cgroup/p/x/memory.current", "9000000000\n")
	o := fs.Reclaim(t.Context(), memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 4096 * page, Swappiness: memcg.SwappinessOf(0), Nodes: memcg.NodesOf(8)})
	if len(k.commands) == 0 || k.commands[0].raw != "- 20 8 3 0 64" || k.readings < 2 && len(k.commands) > 1 {
		t.Errorf("commands %q after %d readings, outcome %+v", k.raws(), k.readings, o)
	}
}
