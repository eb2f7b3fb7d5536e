// Package units sets limits of cgroups that are units of systemd, as properties of
// the unit.
//
// Such a cgroup's memory.high can be written like any other, and the next
// daemon-reload, or the next property that somebody sets on the unit, writes the
// manager's own value over it: one owner, one value. A property set at run time
// (SetUnitProperties) is kept.
//
// # Which cgroups
//
// Those whose path names a unit, in slices alone, and whose unit says that this is
// its cgroup (ControlGroup). What is inside a service or a scope belongs to whom
// the manager has given it: a container in a delegated scope, or a unit of a user's
// own manager. There the file is written, as everywhere that no systemd runs.
//
// # What is left behind
//
// systemd keeps a property that is set at run time in a drop-in below
// /run/systemd/system.control, of transient units below /run/systemd/transient. It
// outranks /etc, so that leaving it would make the operator's next edit void until
// the next boot, and it outlives the cgroup: a service that is started again would
// begin with our value. There is no call that takes one property back; "revert"
// (RevertUnitFiles) removes the operator's own drop-ins as well. So the value from
// before is set as a property first, and then the file is removed, unless it was
// there before, when it holds the operator's value again. systemctl may say of such a
// unit that its files changed on disk; what is loaded and what is on disk are the
// same, and no reload is needed or made.
//
// How it was is in the journal before anything is set (journal.Entry.Via): whatever
// moment memagent dies at, the property and the drop-in are taken back, where they
// are still ours.
package units
