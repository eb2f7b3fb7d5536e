package scenario

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/memagent/memagent/lab/result"
)

// goodHost are the facts of a run in which all is well.
func goodHost() map[string]float64 {
	f := map[string]float64{
		"active": 1, "observes": 1, "exposure": 1.9, "policy_seconds": 0.2, "late_policy_seconds": 1.1, "named": 4, "heeded": 4,
		"limited": 4, "strangers_watched": 0, "lend_seconds": 5, "reload_looks": 30, "reload_lost": 0, "reload_complaints": 0,
		"watchdog_restores": 1, "watchdog_restarts": 1, "upgraded": 1, "restarted": 1, "config_kept": 1, "journal_kept": 1,
		"upgrade_lend_seconds": 5, "high_mib": 24, "knobs_changed": 0, "files_left": 0, "files_gone": 0,
	}
	for _, c := range hostContainers() {
		f[c.who()+"_swap_mib"], f[c.who()+"_file_mib"] = 0, 32
		if c.matched {
			f[c.who()+"_file_mib"] = 1
		}
		if c.swappiness > 0 {
			f[c.who()+"_swap_mib"] = 40
		}
	}
	return f
}

func TestCheckHost(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change map[string]float64
		fail   string
	}{
		{"all is well", nil, ""},
		{"it enforces as installed", map[string]float64{"observes": 0}, "observes as installed"},
		{"the unit is an open sandbox", map[string]float64{"exposure": 5.2}, "exposure"},
		{"a container has no name", map[string]float64{"named": 3}, "containers named"},
		{"a limit is not seen", map[string]float64{"limited": 2}, "limits known"},
		{"somebody else's container is watched", map[string]float64{"strangers_watched": 1}, "strangers watched"},
		{"a container that asks for 0 is swapped", map[string]float64{"mail_swap_mib": 1}, "mail: swap"},
		{"one that asks for 200 is not", map[string]float64{"shop_swap_mib": 2}, "shop: swap"},
		{"a reload takes the loan", map[string]float64{"reload_lost": 1}, "daemon-reload: loans lost"},
		{"a reload is fought", map[string]float64{"reload_complaints": 1}, "daemon-reload: fights"},
		{"a hanging agent keeps the loan", map[string]float64{"watchdog_restores": 0}, "watchdog: the loan is put back"},
		{"an upgrade loses the config", map[string]float64{"config_kept": 0}, "upgrade: the edited config is kept"},
		{"a purge leaves the loan", map[string]float64{"high_mib": 64, "knobs_changed": 1}, "purge: memory.high of the service, purge: knobs changed"},
		{"a purge leaves a file", map[string]float64{"files_left": 1}, "purge: files left"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := goodHost()
			maps.Copy(facts, tc.change)
			var failed []string
			for _, c := range checkHost([]result.Run{{Agent: "on", Facts: facts}}) {
				if !c.OK {
					failed = append(failed, c.Name)
				}
			}
			if got := strings.Join(failed, ", "); got != tc.fail {
				t.Errorf("failed: %q, want %q", got, tc.fail)
			}
		})
	}
}

func TestARunThatStoppedHalfWayPassesNothing(t *testing.T) {
	for _, c := range checkHost([]result.Run{{Agent: "on"}}) {
		if c.OK {
			t.Errorf("%s holds", c.Name)
		}
	}
}

func TestASpecAsksInOneWayOnly(t *testing.T) {
	for _, c := range hostContainers() {
		raw, err := json.Marshal(c.spec("a.slice:b:c"))
		if err != nil {
			t.Fatal(err)
		}
		var s specs.Spec
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		_, annotated := s.Annotations["memagent.dev/swappiness"]
		inSpec := s.Linux.Resources.Memory.Swappiness != nil
		if inSpec != c.inSpec || annotated != (c.swappiness >= 0 && !c.inSpec) {
			t.Errorf("%s: in its spec %t, by annotation %t", c.name, inSpec, annotated)
		}
		if _, ok := s.Annotations["memagent.dev/policy"]; ok != c.matched {
			t.Errorf("%s: an annotation for the policy: %t", c.name, ok)
		}
	}
}
