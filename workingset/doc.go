// Package workingset works out, for one cgroup, which memory it needs and what
// to ask of the kernel about the rest: samples become signals, signals become a
// verdict and an intent. It opens no files, reads no clock, starts no
// goroutines and draws no random numbers: the same input always gives the same
// output.
//
// # The law in prose
//
// The kernel detects a working set page by page (mm/workingset.c). It keeps a
// clock for each list, inactive_age = evictions + activations, and leaves the
// time of eviction behind as a shadow. When the page comes back, the difference
// to the clock now is its refault distance: how many page slots more would have
// kept it. If distance <= the memory that could be traded for it, the page
// belongs to the working set and losing it was a mistake; if not, no trade
// inside this cgroup could have kept it.
//
// Userspace sees no shadows, only sums. But what is out and comes back obeys
// Little's law: number out = rate of return x mean time out. So the mean time
// out is out/R, and the clock advances clock x out/R meanwhile. That is the
// refault distance D of the seed, averaged over all pages (see distance.go).
//
// From D follow the two questions every decision turns on. Could those pages
// have been kept (D <= WS, the kernel's own workingset size)? And which side
// pays more: file refaults at the price of a file read, or anon refaults at the
// price of a swap-in (price.go)? The answer is a verdict, verdict.go, and each
// verdict allows a few things and forbids the rest, memagent.go.
//
// # Where the estimate is wrong, and which side errs safely
//
// Out also holds pages that will never come back, so D is an upper bound and
// reads "out of reach" too often: nothing is swapped then, which costs a missed
// chance and never a swap storm. Where D reads too low (refaults from before
// the first sample, an LRU that forgets), an episode has a budget and must show
// a fall of the refault rate before more is spent, episode.go. The multi-gen
// LRU undercounts refaults for seconds at a time, so rates are smoothed over
// several samples, and cost and pressure of the last sample count beside them.
// Floors err high (floor.go), prices err dear until measured, a counter that is
// missing ends the decision.
//
// # Sources
//
// Two threads of linux-kernel are called the seeds here, and tests quote them.
// Seed 000 is "workingset protection/detection on the anonymous LRU list", v5,
// April 2020, which gave anon pages refault distances. Seed 003 is "mm: vmscan:
// scan anonymous pages on file refaults", July 2019: idle anon must make room
// for a thrashing page cache, and the objection to it, a file set that never
// fits. Ids like c38 name cases in the wild; their files are in testdata.
//
// # Out of scope
//
// Nodes, budgets that outlive one cgroup, limits that are lent, and whether the
// kernel can do what an intent asks for, are the business of other packages.
// docs/algorithms.md derives the formulas and lists the constants.
package workingset
