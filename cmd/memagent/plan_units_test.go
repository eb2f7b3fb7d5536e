package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

// someUnits has a unit for each of some paths.
type someUnits struct {
	units map[string]string
	err   error
}

func (s someUnits) UnitOf(_ context.Context, id memcg.ID) (string, error) {
	return s.units[id.Path], s.err
}
func (s someUnits) Settable(context.Context) error { return s.err }

func TestWhatIsNoUnitIsSaid(t *testing.T) {
	gone := errors.New("systemd does not answer")
	for _, tt := range []struct {
		name, host, policy string
		units              someUnits
		cannot, differs    string
	}{
		{"all are units", "property", "high: {lend: true}", someUnits{map[string]string{"/a": "a.service"}, nil}, "", ""},
		{"none is", "property", "high: {lend: true}", someUnits{}, "", "1 of 1 cgroups are no units of systemd: their files are written"},
		{"nobody to ask", "property", "swap_guard: true", someUnits{err: gone}, "no limit of a unit is changed: systemd does not answer", ""},
		{"a policy that sets no limit", "property", "squeeze: off", someUnits{err: gone}, "", ""},
		{"files are written anyway", "file", "high: {lend: true}", someUnits{err: gone}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := config.Parse("test.yaml", []byte("mode: enforce\nhost: {units: "+tt.host+"}\npolicies:\n  - name: p\n    match: [{path: /a}]\n    "+tt.policy+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			ids := []memcg.ID{{Path: "/a", Inode: 1}, {Path: "/b", Inode: 2}}
			plans := makePlans(cfg, ids, nil, byPath(cfg))
			addUnits(context.Background(), plans, cfg, ids, byPath(cfg), tt.units)
			if got := strings.Join(plans[0].Cannot, "\n"); got != tt.cannot {
				t.Errorf("cannot %q, want %q", got, tt.cannot)
			}
			if got := strings.Join(plans[0].Differs, "\n"); got != tt.differs {
				t.Errorf("differs %q, want %q", got, tt.differs)
			}
		})
	}
}
