package main

import (
	"github.com/memagent/memagent/config"
	"github.com/memagent/memagent/container"
	"github.com/memagent/memagent/controller"
	"github.com/memagent/memagent/memcg"
)

// matcher tells under which policy a cgroup falls; nil: none.
type matcher func(id memcg.ID) *config.Policy

// matchNow returns a matcher that knows the containers there are now, among all
// cgroups of the host that is seen at root. Without them paths decide.
func matchNow(cfg *config.Config, root string, all []memcg.ID) matcher {
	catalog, err := container.Open(root)
	if err != nil {
		return func(id memcg.ID) *config.Policy { return cfg.Match(id.Path) }
	}
	defer catalog.Close()
	catalog.Round(all, true)
	payloads := controller.FindPayloads(all)
	policies := make(map[memcg.ID]*config.Policy, len(all))
	for _, id := range all {
		d, _ := catalog.Describe(id)
		policies[id] = controller.MatchDescribed(cfg, id, &d, payloads)
	}
	return func(id memcg.ID) *config.Policy { return policies[id] }
}
