package guest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mount is a row of the table of what a guest mounts.
type mount struct {
	source, target, fstype, data string
	// required mounts end the guest when they fail; the others may not exist on a kernel.
	required bool
}

// systemMounts are there in every guest. A system that takes over keeps them.
var systemMounts = []mount{
	{source: "proc", target: "/proc", fstype: "proc", required: true},
	{source: "sysfs", target: "/sys", fstype: "sysfs", required: true},
	{source: "devtmpfs", target: "/dev", fstype: "devtmpfs", required: true},
	{source: "tmpfs", target: "/run", fstype: "tmpfs", data: "mode=755", required: true},
}

// ownMounts are those that such a system would make itself.
var ownMounts = []mount{
	{source: "devpts", target: "/dev/pts", fstype: "devpts"},
	{source: "debugfs", target: "/sys/kernel/debug", fstype: "debugfs"},
	{source: "cgroup2", target: "/sys/fs/cgroup", fstype: "cgroup2", required: true},
	{source: "tmpfs", target: "/tmp", fstype: "tmpfs", data: "mode=1777", required: true},
	{source: "tmpfs", target: "/var", fstype: "tmpfs", data: "mode=755", required: true},
}

func mountAll(table []mount) error {
	for _, m := range table {
		if err := m.do(); err != nil && m.required {
			return err
		}
	}
	return nil
}

func (m mount) do() error {
	// Mount points inside sysfs and friends are the kernel's to make.
	if err := os.MkdirAll(m.target, 0o755); err != nil && m.required {
		return fmt.Errorf("making mount point %s: %w", m.target, err)
	}
	err := unix.Mount(m.source, m.target, m.fstype, 0, m.data)
	if err != nil && !errors.Is(err, unix.EBUSY) { // busy: mounted by the kernel itself
		return fmt.Errorf("mounting %s on %s: %w", m.fstype, m.target, err)
	}
	return nil
}

// DataDir is where the data disk is mounted.
const DataDir = "/data"

func mountDisk() error {
	m := mount{source: "/dev/vda", target: DataDir, fstype: "ext4", data: "", required: true}
	return m.do()
}
