package controller

import (
	"testing"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

const keepsHeadroom = `
host: {swap: {write_budget: 1GiB/s}}
policies:
  - name: app
    match: [{path: /app}]
    squeeze: off
    headroom: 64MiB
    numa: {reclaim: lottery}
`

// Case c32 with a headroom: the kernel counts what it has only moved, and memory.current
// has not fallen. What is wanted again is asked for where it went.
func TestC32WhatWasOnlyMovedToASlowerNodeIsAskedForThere(t *testing.T) {
	for name, c := range map[string]struct {
		demoted uint64 // MiB, of 25
		nodes   memcg.NodeMask
		rule    string
		want    uint64 // MiB
	}{
		"as much as was moved": {20, memcg.NodesOf(1), "demoted", 20},
		"and what was not freed for another reason is asked for everywhere": {0, memcg.NodeMask{}, "balanced", 25},
	} {
		t.Run(name, func(t *testing.T) {
			b := nodeBench(t, telemetry.Enforce, keepsHeadroom, 700, 700)
			b.host.Nodes[1].HasCPU = false
			b.host.Demotion = memcg.Value(1)
			b.track(id("/app"))
			full := func(fast, slow uint64) Observation {
				ob := spread("/app", lies{anon: fast}, lies{anon: slow})
				ob.Sample.Max = memcg.LimitOf(200 * mib)
				return ob
			}
			first, _ := b.until(full(200, 0))
			if !first.Nodes.Empty() || first.Bytes != 25*mib {
				t.Fatalf("asked first for %d MiB on %v", first.Bytes/mib, first.Nodes)
			}
			o := memcg.Outcome{Request: first, Writes: 1, Via: memcg.ViaReclaim, Asked: first.Bytes, Reclaimed: memcg.Value(first.Bytes), Demoted: memcg.Value(c.demoted * mib)}
			fast := 200 - c.demoted
			requests, records := b.tick([]memcg.Outcome{o}, full(fast, 200-fast))
			if len(requests) != 1 {
				t.Fatalf("asked %v: %+v", requests, records)
			}
			if got := requests[0]; got.Nodes != c.nodes || got.Bytes != c.want*mib || records[0].NodeRule != c.rule {
				t.Errorf("asked for %d MiB on %v by %s", got.Bytes/mib, got.Nodes, records[0].NodeRule)
			}
		})
	}
}
