package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memagent/memagent/memcg"
)

// twoNodes is /proc/zoneinfo of a guest with 6.12, shortened by the counters,
// the lists of each CPU, and zones without pages but one.
const twoNodes = `Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 4416
  pages free     3840
        boost    0
        min      151
        low      188
        high     225
        promo    262
        spanned  4095
        present  3998
        managed  3840
        cma      0
        protection: (0, 450, 450, 450, 450)
      nr_free_pages 3840
  pagesets
    cpu: 0
              count:    0
              high:     0
              batch:    1
  node_unreclaimable:  0
  start_pfn:           1
Node 0, zone    DMA32
  pages free     91811
        boost    0
        min      4551
        low      5688
        high     6825
        promo    7962
        spanned  126976
        present  126976
        managed  115336
        cma      0
        protection: (0, 0, 0, 0, 0)
      nr_free_pages 91811
  node_unreclaimable:  0
Node 0, zone  Movable
  pages free     0
        boost    0
        min      32
        low      32
        high     32
        promo    32
        spanned  0
        present  0
        managed  0
        cma      0
        protection: (0, 0, 0, 0, 0)
Node 8, zone   Normal
  per-node stats
      nr_inactive_anon 0
  pages free     389000
        boost    0
        min      15464
        low      19330
        high     23196
        promo    27062
        spanned  393216
        present  393216
        managed  389932
        cma      0
        protection: (0, 0, 0, 0, 0)
`

// What the kernel keeps is the high watermark of every zone and what it protects
// there: 225 + 450 and 6825 pages on node 0, 23196 on node 8.
func TestWhatTheKernelKeepsFreeOnANodeIsTheSumOverItsZones(t *testing.T) {
	pages := func(n uint64) memcg.Field { return memcg.Value(n * uint64(unix.Getpagesize())) }
	for _, c := range []struct {
		name        string
		text        string
		zero, eight memcg.Field
	}{
		{"as it is", twoNodes, pages(7500), pages(23196)},
		{"no more than a zone has", strings.Replace(twoNodes, "(0, 450, 450, 450, 450)", "(0, 450, 9000, 9000, 450)", 1), pages(3840 + 6825), pages(23196)},
		{"a kernel that protects nothing", strings.ReplaceAll(twoNodes, "protection:", "no"), pages(225 + 6825), pages(23196)},
		{"a watermark that is not there", strings.Replace(twoNodes, "        high     23196\n", "", 1), pages(7500), memcg.Absent(memcg.Invalid)},
		{"a node that is not listed", twoNodes[:strings.Index(twoNodes, "Node 8")], pages(7500), memcg.Absent(memcg.Unsupported)},
		{"nothing at all", "", memcg.Absent(memcg.Unsupported), memcg.Absent(memcg.Unsupported)},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes, err := hostOf(t, "c10/possible-0-8", "proc/zoneinfo", c.text).Nodes(nil)
			if err != nil || len(nodes) != 2 {
				t.Fatalf("%v, %v", nodes, err)
			}
			if nodes[0].Reserve != c.zero || nodes[1].Reserve != c.eight {
				t.Errorf("reserves %v and %v, want %v and %v", nodes[0].Reserve, nodes[1].Reserve, c.zero, c.eight)
			}
		})
	}
}

func TestZoneinfoIsReadOnceAMinute(t *testing.T) {
	dir := fixtureCopy(t, "c10/possible-0-8", "sys/fs/cgroup/cgroup.controllers", "memory\n", "proc/zoneinfo", twoNodes)
	now := time.Unix(1000, 0)
	fs, err := Open(dir, withClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	reserve := func() memcg.Field {
		nodes, err := fs.Nodes(nil)
		if err != nil || len(nodes) != 2 {
			t.Fatal(nodes, err)
		}
		return nodes[1].Reserve
	}
	before := reserve()
	if err := os.WriteFile(filepath.Join(dir, "proc/zoneinfo"), []byte(strings.Replace(twoNodes, "23196", "99999", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	now = now.Add(59 * time.Second)
	if got := reserve(); got != before {
		t.Errorf("within a minute: %v, want %v", got, before)
	}
	now = now.Add(time.Second)
	if got := reserve(); got == before {
		t.Errorf("after a minute: still %v", got)
	}
}

func TestAZoneinfoThatCannotBeReadCostsTheReservesAlone(t *testing.T) {
	dir := fixtureCopy(t, "c10/possible-0-8", "sys/fs/cgroup/cgroup.controllers", "memory\n")
	if err := os.MkdirAll(filepath.Join(dir, "proc/zoneinfo"), 0o755); err != nil {
		t.Fatal(err)
	}
	fs := openHost(t, dir)
	nodes, err := fs.Nodes(nil)
	if !errors.Is(err, unix.EISDIR) || !strings.Contains(err.Error(), "proc/zoneinfo") {
		t.Errorf("error %v", err)
	}
	if len(nodes) != 2 || nodes[0].Reserve != (memcg.Field{}) || !nodes[0].MemFree.Known() {
		t.Errorf("nodes %v", nodes)
	}
	if _, err := fs.Nodes(nil); err != nil {
		t.Errorf("it is not asked again at once: %v", err)
	}
}
