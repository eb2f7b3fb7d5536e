package cgroupfs

import "testing"

func TestTheWayToReclaimByNodeIsNamed(t *testing.T) {
	nodes := []string{nodeDir + "/online", "0-1\n", nodeDir + "/has_memory", "0-1\n", nodeDir + "/has_cpu", "0-1\n", nodeDir + "/node0/memory0/x", "", nodeDir + "/node1/memory1/x", ""}
	mglru := []string{lruGenEnabled, "0x0007\n", lruGenFile, "memcg     1 /\n"}
	damon := []string{damonCount, "0\n", memoryDir + "/block_size_bytes", "8000000\n"}
	for _, tt := range []struct {
		name  string
		files [][]string
		opts  []Option
		state CapState
		seen  string
	}{
		{"one node", nil, nil, CapNo, "nothing to choose from"},
		{"lru_gen", [][]string{nodes, mglru, damon}, []Option{AllowDAMON()}, CapYes, "through lru_gen"},
		{"DAMON", [][]string{nodes, damon}, []Option{AllowDAMON()}, CapYes, "through DAMON"},
		{"DAMON that is not allowed", [][]string{nodes, damon}, nil, CapNo, "configuration does not allow"},
		{"DAMON that is busy", [][]string{nodes, damon, {"sys/module/damon_stat/parameters/enabled", "Y\n"}}, []Option{AllowDAMON()}, CapNo, "in use by damon_stat"},
		{"no memory blocks", [][]string{nodes, {damonCount, "0\n"}}, []Option{AllowDAMON()}, CapNo, "block_size_bytes"},
		{"neither", [][]string{nodes}, []Option{AllowDAMON()}, CapNo, "CONFIG_DAMON_PADDR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := []string{"sys/fs/cgroup/cgroup.controllers", "memory\n"}
			for _, f := range tt.files {
				files = append(files, f...)
			}
			root := fixtureCopy(t, "", files...)
			host := mustOpen(t, root, tt.opts...)
			ask(t, host, nil)[CapReclaimNodes].want(t, tt.state, tt.seen)
			if host.Writes() != 0 {
				t.Errorf("%d writes", host.Writes())
			}
		})
	}
}
