// Package cgroupfs is the only package of memagent that opens kernel files:
// facts in, writes out. It finds the cgroup v2 mount that holds the memory
// controller, reads the memory files of cgroups and of the host into the
// values of package memcg, and carries out reclaim requests.
//
// A cgroup is a directory descriptor plus an inode, never just a path: a path
// that comes back with another inode is another cgroup. Every value read knows
// whether it was there: missing, unsupported, invalid and zero are four
// different things. Errors carry one kind of package memcg (memcg.ErrGone,
// memcg.ErrDenied, ...) beside the errno; ask with errors.Is.
//
// All kernel calls go through one small seam, so that tests can answer any of
// them with any errno.
package cgroupfs
