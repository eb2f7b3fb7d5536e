package cgroupfs

import (
	"testing"

	"github.com/memagent/memagent/memcg"
)

// BenchmarkHostSample is what a tick pays once, however many cgroups there are.
func BenchmarkHostSample(b *testing.B) {
	host, err := Open("testdata/full")
	if err != nil {
		b.Fatal(err)
	}
	defer host.Close()
	var h memcg.HostSample
	b.ReportAllocs()
	for b.Loop() {
		if err := host.HostSample(&h); err != nil {
			b.Fatal(err)
		}
	}
}
