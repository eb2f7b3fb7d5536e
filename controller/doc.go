// Package controller is memagent's loop: discover cgroups, sample them,
// decide, clamp, act, verify, record.
//
// It is two types. Core is a state machine without goroutines, files or a
// clock: Step turns what was read and what finished into requests and records,
// and any test can call it. Loop is the shell around it: the ticker, the
// workers that carry requests out, and the errors of a real kernel.
//
// One tick, as data:
//
//	Sample -> Signals -> Verdict+Intent -> Reclaim -> (clamp) -> Outcome -> Record
package controller
