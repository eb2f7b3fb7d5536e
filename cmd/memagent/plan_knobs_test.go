package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

func TestWhatCannotBeLentIsSaid(t *testing.T) {
	free := t.TempDir()
	file := filepath.Join(free, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir, policy string
		high              string // "" for no such file
		cannot, differs   string
	}{
		{"all is well", free, "high: {lend: true}", "41943040", "", ""},
		{"a state directory that can be made", free + "/not/yet", "high: {lend: true}", "41943040", "", ""},
		{"a state directory that cannot be made", file + "/state", "high: {lend: true}", "41943040", "no limit is changed", ""},
		{"no memory.high", free, "high: {lend: true}", "", "1 of 1 cgroups are never lent to: they have no memory.high", ""},
		{"no limit", free, "high: {lend: true}", "max", "", "1 of 1 cgroups have a memory.high of max"},
		{"no memory.swap.max", free, "swap_guard: true", "", "1 of 1 cgroups are not guarded", ""},
		{"a policy that changes no limit", file + "/state", "squeeze: off", "", "", ""},
		{"a policy that only observes", file + "/state", "high: {lend: true}\n    observe: true", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := config.Parse("test.yaml", []byte("mode: enforce\nstate_dir: "+tt.dir+"\npolicies:\n  - name: p\n    match: [{path: /a}]\n    "+tt.policy+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			ids := []memcg.ID{{Path: "/a", Inode: 1}, {Path: "/b", Inode: 2}}
			plans := makePlans(cfg, ids, nil, byPath(cfg))
			addKnobs(plans, cfg, ids, byPath(cfg), func(memcg.ID, memcg.Knob) (string, error) {
				if tt.high == "" {
					return "", fmt.Errorf("read: %w", memcg.ErrUnsupported)
				}
				return tt.high, nil
			})
			for what, got := range map[string][2]string{
				"cannot": {strings.Join(plans[0].Cannot, "\n"), tt.cannot}, "differs": {strings.Join(plans[0].Differs, "\n"), tt.differs},
			} {
				if got[1] == "" && got[0] != "" || !strings.Contains(got[0], got[1]) {
					t.Errorf("%s %q, want %q", what, got[0], got[1])
				}
			}
		})
	}
}
