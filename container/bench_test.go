package container

import (
	"fmt"
	"os"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// BenchmarkALookup is the price of a container that is new, spec and all.
func BenchmarkALookup(b *testing.B) {
	dir := b.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/containerd")); err != nil {
		b.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	id := memcg.ID{Path: podDir + "/cri-containerd-" + hash("c0") + ".scope"}
	for b.Loop() {
		id.Inode++
		if _, settled := c.Describe(id); !settled {
			b.Fatal("not found")
		}
		delete(c.known, id)
	}
}

// BenchmarkARound is the price of a round over 10,000 cgroups that are settled.
func BenchmarkARound(b *testing.B) {
	c, err := Open("testdata/containerd")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ids := make([]memcg.ID, 10_000)
	for i := range ids {
		ids[i] = memcg.ID{Path: fmt.Sprintf("/docker/%064x", i), Inode: uint64(i)}
		for range MaxTries {
			c.Describe(ids[i])
		}
	}
	for b.Loop() {
		c.Round(ids, true)
		for _, id := range ids {
			c.Describe(id)
		}
	}
}
