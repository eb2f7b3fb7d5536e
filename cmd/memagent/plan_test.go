package main

import (
	"strings"
	"testing"

	"github.com/memagent/memagent/cgroupfs"
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/memcg"
)

func TestLimits(t *testing.T) {
	all := func(missing ...string) []cgroupfs.CapResult {
		names := []string{
			cgroupfs.CapReclaim, cgroupfs.CapReclaimSwappiness, cgroupfs.CapReclaimSwappinessMax,
			cgroupfs.CapPressure, cgroupfs.CapRefaultSplit, cgroupfs.CapSwap,
			cgroupfs.CapNUMA, cgroupfs.CapReclaimNodes, cgroupfs.CapCpuset, cgroupfs.CapLRUGen,
		}
		var list []cgroupfs.CapResult
		for _, name := range names {
			state := cgroupfs.CapYes
			for _, m := range missing {
				if m == name {
					state = cgroupfs.CapNo
				}
			}
			list = append(list, cgroupfs.CapResult{Capability: cgroupfs.Capability{Name: name}, State: state})
		}
		return list
	}
	for name, c := range map[string]struct {
		policy          string
		missing         []string
		cannot, differs string
	}{
		"everything is there": {"swappiness: 0", nil, "", ""},
		"never swap needs swappiness": {"swappiness: 0", []string{cgroupfs.CapReclaimSwappiness, cgroupfs.CapReclaimSwappinessMax, cgroupfs.CapLRUGen},
			"the policy forbids swapping", ""},
		"a preference is only a preference": {"swappiness: 100", []string{cgroupfs.CapReclaimSwappiness, cgroupfs.CapReclaimSwappinessMax, cgroupfs.CapLRUGen},
			"", "the host's own swappiness is used"},
		"or generations to take from": {"swappiness: 0", []string{cgroupfs.CapReclaimSwappiness, cgroupfs.CapReclaimSwappinessMax}, "", ""},
		"anon only needs max": {"swappiness: max", []string{cgroupfs.CapReclaimSwappinessMax, cgroupfs.CapLRUGen},
			"swappiness max is not known", "classic LRU of this kernel then takes file alone"},
		"or generations for that": {"swappiness: max", []string{cgroupfs.CapReclaimSwappinessMax}, "", ""},
		"mostly anon is not to be had of the classic LRU": {"swappiness: 180", []string{cgroupfs.CapReclaimSwappinessMax, cgroupfs.CapLRUGen},
			"", "classic LRU of this kernel then takes file alone"},
		"a balance is":                           {"swappiness: 100", []string{cgroupfs.CapReclaimSwappinessMax, cgroupfs.CapLRUGen}, "", ""},
		"the kernel's own balance needs nothing": {"swappiness: kernel", []string{cgroupfs.CapReclaimSwappiness}, "", ""},
		"a squeeze needs pressure":               {"squeeze: {}", []string{cgroupfs.CapPressure}, "without PSI", ""},
		"no squeeze needs no pressure":           {"squeeze: off", []string{cgroupfs.CapPressure}, "", ""},
		"no memory.reclaim, nothing at all":      {"squeeze: {}", []string{cgroupfs.CapReclaim}, "no memory.reclaim", ""},
		"a lottery needs a way to one node":      {"numa: {reclaim: lottery}", []string{cgroupfs.CapReclaimNodes}, "one node alone", ""},
		"no lottery, no need of it":              {"squeeze: {}", []string{cgroupfs.CapReclaimNodes, cgroupfs.CapNUMA}, "", ""},
		"one node is nothing to choose from":     {"numa: {reclaim: lottery, mems: spread}", []string{cgroupfs.CapNUMA, cgroupfs.CapReclaimNodes}, "", "numa does nothing"},
		"steering needs cpuset":                  {"numa: {mems: compact}", []string{cgroupfs.CapCpuset}, "cpuset.mems is never written", ""},
		"no swap is worth a note":                {"squeeze: {}", []string{cgroupfs.CapSwap}, "", "no swap"},
	} {
		cfg, err := config.Parse("test.yaml", []byte("mode: enforce\npolicies:\n  - name: p\n    match: [{path: /a}]\n    "+c.policy+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plans := makePlans(cfg, []memcg.ID{{Path: "/a"}, {Path: "/b"}}, all(c.missing...), byPath(cfg))
		if len(plans) != 1 || plans[0].Cgroups != 1 {
			t.Fatalf("%s: %+v", name, plans)
		}
		holds := func(what string, got []string, want string) {
			if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%s: %s %q, want %q", name, what, got, want)
			}
		}
		holds("cannot", plans[0].Cannot, c.cannot)
		holds("differs", plans[0].Differs, c.differs)
	}
}

func TestAnObservingPolicyLacksNothing(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte("mode: observe\npolicies:\n  - name: p\n    match: [{path: /a}]\n    swappiness: 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	plans := makePlans(cfg, nil, []cgroupfs.CapResult{{Capability: cgroupfs.Capability{Name: cgroupfs.CapReclaim}, State: cgroupfs.CapNo}}, byPath(cfg))
	if len(plans[0].Cannot) != 0 {
		t.Errorf("cannot %v", plans[0].Cannot)
	}
}
