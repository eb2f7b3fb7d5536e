// Package memcg holds the values that every room of memagent shares: what one
// reading of a cgroup's or host's memory files says, which node and which
// cgroup is meant, what is asked of the kernel and what came of it.
//
// It has no logic beyond arithmetic that respects absence, opens no files and
// imports nothing else of this module.
//
// Units, unless a name says otherwise: sizes are bytes, counters are events
// since the cgroup was created, stall times are microseconds.
package memcg
