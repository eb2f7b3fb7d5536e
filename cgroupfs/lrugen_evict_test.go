package cgroupfs

import (
	"context"
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

func TestOnlyGenerationsOfAnAgeAreEvicted(t *testing.T) {
	all := nodeList(0, 7, append([][3]int{{600, 100, 300}, {120, 200, 500}}, young...)...)
	for _, tt := range []struct {
		name       string
		older      time.Duration
		bytes      uint64
		swappiness memcg.Swappiness
		want       []string
		kind       error
		text       string
	}{
		{"the youngest that is old enough", time.Minute, 1000 * page, memcg.SwappinessOf(100), []string{"- 20 0 8 100 1000"}, nil, ""},
		{"an age as old as a generation", 2 * time.Minute, 500 * page, memcg.SwappinessOf(100), []string{"- 20 0 8 100 500"}, nil, ""},
		{"only the oldest is old enough", 2*time.Minute + 1, 100 * page, memcg.SwappinessOf(100), []string{"- 20 0 7 100 100"}, nil, ""},
		{"nothing is old enough", 11 * time.Minute, 100 * page, memcg.SwappinessOf(100), nil, memcg.ErrPartial, "no generation is older than 11m0s"},
		{"the two youngest are left alone whatever their age", 5 * time.Second, 2000 * page, memcg.SwappinessOf(100), []string{"- 20 0 8 100 1100"},
			memcg.ErrPartial, "gave less than was asked"},
		{"file only", time.Minute, 2000 * page, memcg.SwappinessOf(0), []string{"- 20 0 8 0 800"}, memcg.ErrPartial, "gave less"},
		{"anon only", time.Minute, 2000 * page, memcg.SwappinessOf(memcg.SwappinessMax), []string{"- 20 0 8 max 300"}, memcg.ErrPartial, "gave less"},
		{"the kernel's own swappiness where none is asked for", time.Minute, 64 * page, memcg.Swappiness{}, []string{"- 20 0 8 60 64"}, nil, ""},
		{"less than a page", time.Minute, page - 1, memcg.Swappiness{}, nil, memcg.ErrInvalid, "less than a page"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newGenerations(t, 4000*page)
			k.list(cgroupEntry(20, "/p", all))
			o := k.run(memcg.Reclaim{Bytes: tt.bytes, OlderThan: tt.older, Swappiness: tt.swappiness})
			if !slices.Equal(k.raws(), tt.want) {
				t.Errorf("commands %q, want %q", k.raws(), tt.want)
			}
			if !errors.Is(o.Err, tt.kind) || (o.Err == nil) != (tt.kind == nil) || tt.kind != nil && !strings.Contains(o.Err.Error(), tt.text) {
				t.Errorf("err = %v", o.Err)
			}
			via := memcg.ViaLRUGen
			if len(tt.want) == 0 {
				via = ""
			}
			if o.Via != via || o.Writes != len(tt.want) || o.Asked != total(pagesOf(k.commands))*page || len(tt.want) > 0 && o.Reclaimed != memcg.Value(o.Asked) {
				t.Errorf("outcome %+v", o)
			}
		})
	}
}

func pagesOf(commands []command) (pages []uint64) {
	for _, c := range commands {
		pages = append(pages, c.pages)
	}
	return pages
}

func TestListsGiveInProportionToWhatTheyHave(t *testing.T) {
	old := func(seq, anon, file int) [][3]int { return append([][3]int{{600, anon, file}}, young...) }
	k := newGenerations(t, 10000*page, "sys/fs/cgroup/p/x y/memory.current", "9000000000\n", "sys/fs/cgroup/p/empty/memory.current", "0\n", "sys/fs/cgroup/other/memory.current", "1\n")
	k.list(
		cgroupEntry(20, "/p", nodeList(0, 3, old(3, 1000, 0)...), nodeList(8, 5, old(5, 0, 3000)...), nodeList(252, 5, young...)),
		cgroupEntry(21, "/p/x y", nodeList(0, 9, old(9, 500, 1500)...)),
		cgroupEntry(22, "/other", nodeList(0, 1, old(1, 50000, 50000)...)))
	o := k.run(memcg.Reclaim{Bytes: 1200 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(100)})
	if want := []string{"- 20 8 5 100 600", "- 21 0 9 100 400", "- 20 0 3 100 200"}; o.Err != nil || !slices.Equal(k.raws(), want) {
		t.Errorf("commands %q, want %q; %v", k.raws(), want, o.Err)
	}
	if k.readings != 1 {
		t.Errorf("the listing was read %d times", k.readings)
	}
}

func TestSmallRequestsGoToTheLargestListsInWholeBatches(t *testing.T) {
	var entries, files []string
	for i := range 50 {
		path := fmt.Sprintf("/p/c%02d", i)
		files = append(files, "sys/fs/cgroup"+path+"/memory.current", "9000000000\n")
		entries = append(entries, cgroupEntry(uint64(100+i), path, nodeList(0, 1, append([][3]int{{600, 0, 1000 + i}}, young...)...)))
	}
	k := newGenerations(t, 100000*page, files...)
	k.list(entries...)
	o := k.run(memcg.Reclaim{Bytes: 150 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(0)})
	if want := []string{"- 149 0 1 0 64", "- 148 0 1 0 64", "- 147 0 1 0 22"}; o.Err != nil || !slices.Equal(k.raws(), want) {
		t.Errorf("commands %q, want %q; %v", k.raws(), want, o.Err)
	}
}

func TestEvictionIsCutIntoChunksByTime(t *testing.T) {
	k := newGenerations(t, 4096*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{600, 0, 1 << 20}}, young...)...)))
	k.react = func(k *generations, c command) error {
		k.take(c.pages)
		k.now = k.now.Add(time.Duration(c.pages*page) * time.Second / (40 * mib)) // 2 MiB in 50 ms
		return nil
	}
	if o := k.run(memcg.Reclaim{Bytes: 20 * mib, OlderThan: time.Minute, Deadline: time.Hour}); o.Err != nil {
		t.Fatal(o.Err)
	}
	if got := pagesOf(k.commands); len(got) != 7 || got[0] != 8*mib/page || got[1] != 2*mib/page || total(got) != 20*mib/page {
		t.Errorf("chunks of %v pages", got)
	}
}

func TestCommandsThatFreeNothingDoNotGrow(t *testing.T) {
	k := newGenerations(t, 1024*mib)
	k.list(cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{600, 0, 1 << 20}}, young...)...)))
	k.react = func(*generations, command) error { return nil }
	o := k.run(memcg.Reclaim{Bytes: 32 * mib, OlderThan: time.Minute})
	if want := []uint64{8 * mib / page, 8 * mib / page, 8 * mib / page, 8 * mib / page}; !slices.Equal(pagesOf(k.commands), want) || !errors.Is(o.Err, memcg.ErrPartial) {
		t.Errorf("chunks %v, want %v; %v", pagesOf(k.commands), want, o.Err)
	}
	if o.Asked != 32*mib || o.Reclaimed != memcg.Value(0) {
		t.Errorf("outcome %+v", o)
	}
}

func TestEvictionKeepsClearOfProtectionAndSwap(t *testing.T) {
	big := nodeList(0, 1, append([][3]int{{600, 1000, 1000}}, young...)...)
	number := func(pages uint64) string { return fmt.Sprintln(pages * page) }
	for _, tt := range []struct {
		name       string
		files      []string
		swappiness int
		floor      uint64 // pages
		want       []string
		text       string // of the error, "": none is wanted
	}{
		{"nothing binds", nil, 100, 0, []string{"- 21 0 1 100 1500"}, ""},
		{"the floor", nil, 100, 9900, []string{"- 21 0 1 100 100"}, "down to the floor"},
		{"memory.min of a child", []string{"p/x/memory.min", number(8800)}, 100, 0, []string{"- 21 0 1 100 200"}, "protected by memory.min"},
		{"memory.low of a child", []string{"p/x/memory.low", number(8700), "p/x/memory.min", number(10)}, 100, 0, []string{"- 21 0 1 100 300"}, "protected by memory.min"},
		{"all of a child is protected", []string{"p/x/memory.low", "max\n"}, 100, 0, nil, "protected by memory.min"},
		{"the request's own memory.min is its floor's business", []string{"p/memory.min", "max\n"}, 100, 0, []string{"- 21 0 1 100 1500"}, ""},
		{"no swap at all", []string{"../../../proc/meminfo", "MemTotal: 1000000 kB\nSwapFree: 0 kB\n"}, 100, 0, []string{"- 21 0 1 0 1000"}, "no room"},
		{"swap nearly full", []string{"../../../proc/meminfo", "MemTotal: 1000000 kB\nSwapFree: 252 kB\n"}, 100, 0, []string{"- 21 0 1 0 1000"}, "no room"},
		{"little room in swap", []string{"../../../proc/meminfo", fmt.Sprintf("MemTotal: 1000000 kB\nSwapFree: %d kB\n", 300*page/1024)}, 100, 0,
			[]string{"- 21 0 1 100 300", "- 21 0 1 100 300", "- 21 0 1 100 300", "- 21 0 1 100 300", "- 21 0 1 100 300"}, ""},
		{"free swap is not known", []string{"../../../proc/meminfo", "MemTotal: 1000000 kB\n"}, 100, 0, []string{"- 21 0 1 0 1000"}, "no room"},
		{"the child may not swap", []string{"p/x/memory.swap.max", "0\n", "p/x/memory.swap.current", "0\n"}, 100, 0, []string{"- 21 0 1 0 1000"}, "no room"},
		{"its parent may not swap more", []string{"p/memory.swap.max", number(500), "p/memory.swap.current", number(450)}, 100, 0, []string{"- 21 0 1 0 1000"}, "no room"},
		{"a limit of swap whose use is not known", []string{"p/x/memory.swap.max", number(500)}, 100, 0, []string{"- 21 0 1 0 1000"}, "no room"},
		{"anon only and no room: file is not taken instead", []string{"p/x/memory.swap.max", "0\n", "p/x/memory.swap.current", "0\n"}, memcg.SwappinessMax, 0, nil, "swap has no room"},
		{"file only needs no swap", []string{"p/x/memory.swap.max", "0\n", "p/x/memory.swap.current", "0\n"}, 0, 0, []string{"- 21 0 1 0 1000"}, "gave less"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newGenerations(t, 10000*page, "sys/fs/cgroup/p/x/memory.current", number(9000))
			for i := 0; i < len(tt.files); i += 2 {
				k.set("sys/fs/cgroup/"+tt.files[i], tt.files[i+1])
			}
			k.list(cgroupEntry(20, "/p", nodeList(0, 1, young...)), cgroupEntry(21, "/p/x", big))
			child := uint64(9000)
			k.react = func(k *generations, c command) error {
				k.take(c.pages)
				child -= c.pages
				k.set("sys/fs/cgroup/p/x/memory.current", number(child))
				return nil
			}
			o := k.run(memcg.Reclaim{Bytes: 1500 * page, OlderThan: time.Minute, Swappiness: memcg.SwappinessOf(tt.swappiness), Floor: tt.floor * page})
			if !slices.Equal(k.raws(), tt.want) {
				t.Errorf("commands %q, want %q", k.raws(), tt.want)
			}
			if tt.text == "" && o.Err != nil || tt.text != "" && (!errors.Is(o.Err, memcg.ErrPartial) || !strings.Contains(o.Err.Error(), tt.text)) {
				t.Errorf("err = %v, want %q", o.Err, tt.text)
			}
		})
	}
}

func TestEvictionStopsWhereItMust(t *testing.T) {
	list := cgroupEntry(20, "/p", nodeList(0, 1, append([][3]int{{600, 0, 1 << 20}}, young...)...))
	for _, tt := range []struct {
		name  string
		react func(k *generations)
		kind  error
		text  string
	}{
		{"out of time", func(k *generations) { k.now = k.now.Add(time.Minute) }, memcg.ErrPartial, "out of time"},
		{"c37 nobody is left", func(k *generations) { k.set("sys/fs/cgroup/p/cgroup.events", "populated 0\n") }, memcg.ErrPartial, "nobody is left"},
		{"c37 replaced", func(k *generations) {
			if err := os.Rename(filepath.Join(k.root, "sys/fs/cgroup/p"), filepath.Join(k.root, "old")); err != nil {
				k.t.Fatal(err)
			}
			k.set("sys/fs/cgroup/p/memory.current", "1\n")
		}, memcg.ErrGone, "gone"},
		{"memory.current is gone", func(k *generations) {
			k.faults = []fault{{op: "read", path: "sys/fs/cgroup/p/memory.current", errno: unix.ENODEV}}
		}, memcg.ErrGone, "memory.current"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newGenerations(t, 1024*mib)
			k.list(list)
			k.react = func(k *generations, c command) error { k.take(c.pages); tt.react(k); return nil }
			o := k.run(memcg.Reclaim{Bytes: 100 * mib, OlderThan: time.Minute})
			if len(k.commands) != 1 || !errors.Is(o.Err, tt.kind) || !strings.Contains(o.Err.Error(), tt.text) {
				t.Errorf("commands %q, err %v", k.raws(), o.Err)
			}
		})
	}
	t.Run("its context", func(t *testing.T) {
		k := newGenerations(t, 1024*mib)
		k.list(list)
		ctx, cancel := context.WithCancel(t.Context())
		k.react = func(k *generations, c command) error { k.take(c.pages); cancel(); return nil }
		fs := k.host()
		o := fs.Reclaim(ctx, memcg.Reclaim{Cgroup: idOf(t, fs, "/p"), Bytes: 100 * mib, OlderThan: time.Minute})
		if len(k.commands) != 1 || !errors.Is(o.Err, context.Canceled) || !errors.Is(o.Err, memcg.ErrPartial) {
			t.Errorf("commands %q, err %v", k.raws(), o.Err)
		}
	})
	t.Run("enough is gone whatever was asked", func(t *testing.T) {
		k := newGenerations(t, 1024*mib)
		k.list(list)
		k.react = func(k *generations, c command) error { k.take(100 * mib / page); return nil }
		if o := k.run(memcg.Reclaim{Bytes: 100 * mib, OlderThan: time.Minute}); len(k.commands) != 1 || o.Err != nil {
			t.Errorf("commands %q, err %v", k.raws(), o.Err)
		}
	})
}

// The laws of eviction, whatever lists there are and whatever comes of it.
func TestLawsOfEviction(t *testing.T) {
	k := newGenerations(t, 1, "sys/fs/cgroup/p/x/memory.current", "9000000000\n", "sys/fs/cgroup/q/memory.current", "9000000000\n")
	rapid.Check(t, func(rt *rapid.T) {
		k.current = rapid.Uint64Range(0, 1<<18).Draw(rt, "current") * page
		k.commands, k.writes = nil, nil
		k.publish()
		old := rapid.IntRange(1, 100).Draw(rt, "older")
		limit := map[string]uint64{} // pages that may be asked of "id node seq"
		var entries []string
		for i, path := range []string{"/p", "/p/x", "/q"} {
			id := uint64(20 + i)
			var nodes []string
			for _, node := range []int{0, 8, 252}[:rapid.IntRange(1, 3).Draw(rt, "nodes")] {
				seq, n := rapid.IntRange(0, 1000).Draw(rt, "seq"), rapid.IntRange(2, 4).Draw(rt, "generations")
				age, pages := 0, uint64(0)
				gens := make([][3]int, n)
				for g := n - 1; g >= 0; g-- {
					age += rapid.IntRange(0, 80).Draw(rt, "age")
					gens[g] = [3]int{age, rapid.IntRange(0, 5000).Draw(rt, "anon"), rapid.IntRange(0, 5000).Draw(rt, "file")}
				}
				youngestOld := -1
				for g := 0; g < n-2 && gens[g][0] >= old; g++ {
					pages += uint64(gens[g][1] + gens[g][2])
					youngestOld = g
				}
				if youngestOld >= 0 && path != "/q" {
					limit[fmt.Sprint(id, node, seq+youngestOld)] = pages
				}
				nodes = append(nodes, nodeList(node, seq, gens...))
			}
			entries = append(entries, cgroupEntry(id, path, nodes...))
		}
		k.list(entries...)
		r := memcg.Reclaim{Bytes: rapid.Uint64Range(1, 1<<16).Draw(rt, "pages") * page, Floor: rapid.Uint64Range(0, 1<<18).Draw(rt, "floor") * page,
			OlderThan: time.Duration(old) * time.Second, Deadline: time.Minute, Swappiness: memcg.SwappinessOf(rapid.IntRange(1, 199).Draw(rt, "swappiness"))}
		k.react = func(k *generations, c command) error {
			list := fmt.Sprint(c.id, c.node, c.seq)
			if c.op != "-" || c.pages == 0 || c.pages > limit[list] || c.pages*page > mostChunk || k.current < r.Floor+c.pages*page {
				rt.Errorf("%q with %d pages left in it, %d bytes above %d", c.raw, limit[list], k.current, r.Floor)
			}
			limit[list] -= min(limit[list], c.pages)
			k.take(rapid.Uint64Range(0, 2*c.pages).Draw(rt, "taken"))
			if rapid.IntRange(0, 9).Draw(rt, "interrupted") == 0 {
				return unix.EINTR
			}
			return nil
		}
		o := k.run(r)
		if asked := total(pagesOf(k.commands)) * page; asked < o.Asked || o.Asked > r.Bytes || len(k.commands) != o.Writes || o.Writes > 0 && o.Via != memcg.ViaLRUGen {
			rt.Errorf("asked %d of %d, outcome %+v", asked, r.Bytes, o)
		}
	})
}
