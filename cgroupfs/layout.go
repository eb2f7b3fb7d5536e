package cgroupfs

import (
	"fmt"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// Mode is how a host divides controllers between cgroup v1 and v2.
type Mode string

// Modes of a host.
const (
	ModeUnified Mode = "unified" // cgroup v2 alone
	ModeHybrid  Mode = "hybrid"  // cgroup v2 beside v1 hierarchies with controllers
	ModeV1      Mode = "v1"      // v1 hierarchies, cgroup2 not mounted
	ModeNone    Mode = "none"    // no cgroup filesystem mounted
)

// Version tells in which hierarchy a controller is.
type Version string

// Hierarchies a controller can be in.
const (
	Nowhere Version = ""
	OnV1    Version = "v1"
	OnV2    Version = "v2"
)

// Layout is what Open found of the host's cgroup hierarchies.
type Layout struct {
	Mode Mode
	// Mount is the directory of the cgroup2 mount that is used, below the
	// root; "" when there is none.
	Mount string
	// Controllers are the names in its cgroup.controllers; empty also where a
	// fixture lacks that file.
	Controllers []string
	// Namespaced: the mount shows a part of the hierarchy only, as in a cgroup
	// namespace or where one directory was bind-mounted.
	Namespaced bool
	// MemoryOn and CpusetOn tell which hierarchy has the controller.
	MemoryOn, CpusetOn Version
	// Fixture: the files are plain ones, not a kernel's. They can be read and
	// never written.
	Fixture bool
	// ReadOnlyMount: the cgroup2 mount is read-only.
	ReadOnlyMount bool
	// Unmounted: /proc/self/cgroup has an entry for cgroup v2 though it is
	// mounted nowhere, as one past mount leaves it (case c17).
	Unmounted bool
	// Hidden are cgroup2 mounts that mountinfo lists and that cannot be
	// reached below the root.
	Hidden []string
}

// Describe returns one sentence for people.
func (l Layout) Describe() string {
	var s string
	switch {
	case l.Fixture && l.Mount != "":
		s = fmt.Sprintf("recorded cgroup files at %s, for reading only", l.Mount)
	case l.Mode == ModeUnified:
		s = fmt.Sprintf("cgroup v2 at %s", l.Mount)
	case l.Mode == ModeHybrid:
		s = fmt.Sprintf("cgroup v2 at %s beside cgroup v1", l.Mount)
	case l.Mode == ModeV1:
		s = "cgroup v1 only"
	default:
		s = "no cgroup filesystem"
	}
	if l.Namespaced {
		s += ", of which only a part is visible"
	}
	switch l.MemoryOn {
	case OnV2:
		s += ", with the memory controller"
	case OnV1:
		s += ", the memory controller is on v1"
	default:
		s += ", without the memory controller"
	}
	if l.CpusetOn == OnV1 {
		s += ", cpuset is on v1"
	}
	if l.ReadOnlyMount {
		s += ", mounted read-only"
	}
	return s + "."
}

// NoMemoryController is the error of Open on a host without a usable cgroup v2
// memory controller. It Is memcg.ErrUnsupported.
type NoMemoryController struct {
	Root   string // where the host's "/" is seen
	Layout Layout
}

// Error returns one sentence that says what was found and what can be done.
func (e *NoMemoryController) Error() string {
	const boot = "boot with systemd.unified_cgroup_hierarchy=1"
	l := e.Layout
	head := "no cgroup v2 memory controller below " + quoteName(e.Root) + ": "
	switch {
	case len(l.Hidden) > 0 && l.Mount == "":
		return head + "cgroup2 is mounted at " + strings.Join(l.Hidden, ", ") +
			" but cannot be reached there; mount the host's / with all that is mounted below it (rbind)"
	case l.Mode == ModeHybrid && l.MemoryOn == OnV1:
		return head + "this host is hybrid and keeps memory on cgroup v1; " + boot + ", or with cgroup_no_v1=memory to move memory alone"
	case l.Mode == ModeV1 && l.Unmounted:
		return head + "cgroup2 is not mounted, though /proc/self/cgroup has a 0:: line left from an earlier mount, and the host uses cgroup v1; " + boot
	case l.Mode == ModeV1:
		return head + "this host uses cgroup v1; " + boot
	case l.Mode == ModeNone && l.Unmounted:
		return head + "cgroup2 is not mounted, though the kernel has it; mount -t cgroup2 none /sys/fs/cgroup"
	case l.Mode == ModeNone:
		return head + "no cgroup filesystem is mounted; mount -t cgroup2 none /sys/fs/cgroup, or in a container mount the host's /sys/fs/cgroup"
	case l.Namespaced:
		return head + "only a part of the hierarchy is visible at " + l.Mount +
			" and memory is not delegated to it; run the agent in the host's cgroup namespace with the host's /sys/fs/cgroup"
	}
	return head + "memory is not in cgroup.controllers at " + l.Mount + " (" + listOr(l.Controllers, "empty") +
		"); boot without cgroup_disable=memory, or with cgroup_no_v1=memory where cgroup v1 holds it"
}

// Unwrap returns memcg.ErrUnsupported.
func (e *NoMemoryController) Unwrap() error { return memcg.ErrUnsupported }

func listOr(list []string, empty string) string {
	if len(list) == 0 {
		return empty
	}
	return strings.Join(list, " ")
}
