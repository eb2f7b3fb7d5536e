// Package telemetry is what memagent tells people and machines about itself:
// the decision record and its description in words (Describe, a line among
// many; Explain, in full for one cgroup), the decision log as JSON lines, notices
// that are said once, the summary of a run, and what each tick was like (Tick),
// from which Health knows whether the loop goes on.
//
// Its folders show that to others: metrics to Prometheus, status to whoever
// asks, top on a terminal, systemd to the service manager; endpoint is where
// memagent listens for all of them.
//
// It knows nothing of how decisions are made. A Record is plain data; every
// other form of it (log line, terminal line, explanation) is built on Record
// and Record.Describe, so that they cannot disagree.
package telemetry
