package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host of two nodes without the multi-gen LRU, where DAMON is there and free.
func TestCheckSaysWhetherDAMONMayTakeFromOneNode(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"sys/fs/cgroup/cgroup.controllers":               "memory\n",
		"sys/devices/system/node/online":                 "0-1\n",
		"sys/devices/system/node/has_memory":             "0-1\n",
		"sys/devices/system/node/has_cpu":                "0-1\n",
		"sys/devices/system/node/node0/memory0/x":        "",
		"sys/devices/system/node/node1/memory1/x":        "",
		"sys/devices/system/memory/block_size_bytes":     "8000000\n",
		"sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds": "0\n",
		"sys/fs/cgroup/app.slice/memory.current":         "0\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const policy = "policies: [{name: app, match: [{path: /app.slice}]}]\n"
	for config, want := range map[string]string{
		policy:                            "the configuration does not allow that",
		"host: {damon: never}\n" + policy: "the configuration does not allow that",
		"host: {damon: allow}\n" + policy: "through DAMON",
	} {
		_, out, errs := command(t, "check", "--root", root, "-c", configFile(t, config))
		line := ""
		for l := range strings.Lines(out) {
			if strings.HasPrefix(l, "reclaim-nodes ") {
				line = l
			}
		}
		if !strings.Contains(line, want) {
			t.Errorf("with %q: %q, want %q; %s", config, line, want, errs)
		}
	}
}
