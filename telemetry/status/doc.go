// Package status is how a running memagent is asked what it sees and why it
// did what it did: a Board that keeps the latest of each cgroup and a bounded
// past, the JSON that it answers with, the handler that serves it, and the
// client that asks.
//
// # The board
//
// A Board is a telemetry.Sink and a telemetry.Ticks. The loop hands it each
// record; it copies what it keeps into memory that it reuses, and its lock is
// never held while anything is written to a client. So a client that does not
// read costs a connection and never a tick.
//
// The past is bounded for the host as a whole: MaxRecords records are shared
// evenly among the watched cgroups, MaxDepth each at most and one each at
// least. A run of records that say the same, with nothing done, is kept as one
// with a count, so that the last action stays in sight of a cgroup that has been
// quiet for an hour.
//
// # The answers
//
//	GET /v1/status          Status: the agent, the host, one row a cgroup
//	GET /v1/cgroups/PATH    Detail: one cgroup, explained, with its past
//	GET /healthz            200 while the loop ticks, 503 with the reason else
//	GET /readyz             200 once a tick has decided
//
// Names of JSON fields are a promise: new ones may come, none changes its
// meaning within version 1. A figure that is absent is null, and "absent" says
// whether it was missing, unsupported or invalid; none of these is zero.
package status
