// Package journal remembers what memagent has changed and must change back.
//
// Most of what memagent does leaves nothing behind: a reclaim request ends when
// it is done. Three files of a cgroup do keep their value when the writer dies:
// memory.high, memory.swap.max and cpuset.mems ([memcg.Knob]). A limit left
// behind throttles a workload that nobody looks after any more, so before one
// of them is written, what was there before is on disk.
//
// # The order
//
// [Keeper.Set] reads the knob, writes the journal, syncs the file and its
// directory, writes the knob, and reads back what holds. Whatever moment the
// process dies at, the journal names every knob that may differ from what its
// operator set:
//
//	died                           the knob holds   the journal says     so Recover
//	before the journal is on disk  before           nothing              does nothing
//	between journal and knob       before           before -> wrote      drops the entry
//	after the knob                 wrote            before -> wrote      writes before
//	between two values of ours     earlier or wrote before -> wrote      writes before
//	while undoing                  before           before -> wrote      drops the entry
//
// # Whose value is it
//
// Others write these files too: the operator, systemd at a daemon-reload, the
// kubelet once a minute. A value is never undone unless it is still the one
// that was written here, in the same cgroup (path and inode) and since the same
// boot of the host: [Judge] says whose it is. While a knob is in use, somebody
// else's value becomes the one to go back to, and ours is asserted again a
// bounded number of times with growing pauses; then the knob is left to them
// until it is asked for anew ([Rules]).
//
// # Service managers
//
// A service manager that has a cgroup writes its own value again whenever it is
// reloaded. Knobs may therefore set a value through it ([Managed]). What the
// manager notes of it outlives the cgroup, so that it is taken back also where
// the cgroup is gone, and before another cgroup of that name is written: a unit
// that is started again would begin with a loan.
//
// # The file
//
// One small file in the state directory, replaced whole. Its first line has a
// version, the length and the SHA-256 of the rest, which is JSON for people and
// programs. A file that is truncated or does not match its sum is kept under
// another name and said ([Store.Damaged]); one of a newer version is left
// alone. One process at a time has the directory ([ErrLocked]).
//
// The same file holds what must outlive a restart though it is no knob: how long a
// cgroup, or the host, is to be left alone ([Cooldown]). Credit of a budget is not in
// it, only debt, as the time that pays it back: budgets begin empty, so that a restart
// buys nothing, and forgives nothing.
package journal
