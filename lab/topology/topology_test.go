package topology

import (
	"strings"
	"testing"
)

func TestEveryTopologyIsValidAndNamedAsItsFile(t *testing.T) {
	for _, n := range Names() {
		top, err := Load(n)
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if top.Name != n || top.About == "" {
			t.Errorf("%s: name %q, about %q", n, top.Name, top.About)
		}
	}
}

func TestQuadIsFourNodesOf512MiBWithACPUEach(t *testing.T) {
	top, err := Load(Default)
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Nodes) != 4 || top.CPUs() != 4 || top.Memory() != 2<<30 {
		t.Errorf("%d nodes, %d CPUs, %d bytes", len(top.Nodes), top.CPUs(), top.Memory())
	}
}

func TestTieredIsSlowerWithoutCPUs(t *testing.T) {
	top, err := Load("tiered")
	if err != nil {
		t.Fatal(err)
	}
	fast, slow := top.Nodes[0], top.Nodes[1]
	if !top.Tiered() || len(slow.CPUs) != 0 || slow.LatencyNS <= fast.LatencyNS || slow.BytesPerSecond() >= fast.BytesPerSecond() {
		t.Errorf("fast %+v, slow %+v", fast, slow)
	}
	if quad, err := Load(Default); err != nil || quad.Tiered() {
		t.Errorf("quad is tiered: %t, %v", quad.Tiered(), err)
	}
}

func TestLoadNamesTheTopologiesThereAre(t *testing.T) {
	_, err := Load("octo")
	if err == nil || !strings.Contains(err.Error(), "quad") {
		t.Errorf("got %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ name, raw, want string }{
		{"a machine without a name", `{"nodes":[{"id":0,"memory":"1GiB","cpus":[0]}]}`, "no name"},
		{"a machine without nodes", `{"name":"x"}`, "no nodes"},
		{"a key nobody knows", `{"name":"x","knodes":[]}`, "knodes"},
		{"a node that is nothing", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]},{"id":1}]}`, "neither memory nor a CPU"},
		{"a node that is there twice", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]},{"id":0,"memory":"1GiB"}]}`, "twice"},
		{"a CPU on two nodes", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]},{"id":1,"memory":"1GiB","cpus":[0]}]}`, "another node"},
		{"a gap in the CPUs", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0,2]}]}`, "without a gap"},
		{"no CPU at all", `{"name":"x","nodes":[{"id":0,"memory":"1GiB"}]}`, "no node has a CPU"},
		{"no memory at all", `{"name":"x","nodes":[{"id":0,"cpus":[0]}]}`, "no node has memory"},
		{"a size that is no size", `{"name":"x","nodes":[{"id":0,"memory":"much","cpus":[0]}]}`, "much"},
		{"a size that is not whole MiB", `{"name":"x","nodes":[{"id":0,"memory":"1000","cpus":[0]}]}`, "whole MiB"},
		{"an id QEMU has no room for", `{"name":"x","nodes":[{"id":128,"memory":"1GiB","cpus":[0]}]}`, "0..127"},
		{"too few rows of distances", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]},{"id":1,"memory":"1GiB"}],"distances":[[10,20]]}`, "1 rows for 2 nodes"},
		{"too few columns of distances", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]},{"id":1,"memory":"1GiB"}],"distances":[[10,20],[20]]}`, "1 columns"},
		{"a latency below nothing", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"latency_ns":-1}]}`, "negative"},
		{"a latency without a bandwidth", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"latency_ns":100}]}`, "together"},
		{"a bandwidth without a latency", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"bandwidth":"1GiB"}]}`, "together"},
		{"a node whose speed nobody tells", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"latency_ns":1,"bandwidth":"1GiB"},{"id":1,"memory":"1GiB"}]}`, "node 1"},
		{"the speed of no memory", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"latency_ns":1,"bandwidth":"1GiB"},{"id":1,"cpus":[1],"latency_ns":1,"bandwidth":"1GiB"}]}`, "without memory"},
		{"a bandwidth that is no size", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"latency_ns":1,"bandwidth":"fast"}]}`, "fast"},
		{"a bandwidth of a part of a MiB", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0],"latency_ns":1,"bandwidth":"1000"}]}`, "whole MiB"},
		{"a node far from itself", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]}],"distances":[[20]]}`, "from itself"},
		{"another node as near as oneself", `{"name":"x","nodes":[{"id":0,"memory":"1GiB","cpus":[0]},{"id":1,"memory":"1GiB"}],"distances":[[10,10],[20,10]]}`, "not within"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Parse([]byte(tc.raw)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}
