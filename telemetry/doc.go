// Package telemetry is what memagent tells people and machines about itself:
// the decision record and its one description in words, the decision log as
// JSON lines, notices that are said once, and the summary of a run.
//
// It knows nothing of how decisions are made. A Record is plain data; every
// other form of it (log line, terminal line, explanation) is built on Record
// and Record.Describe, so that they cannot disagree.
package telemetry
