// Package machine is a QEMU machine as a list of small devices, and the process that runs it.
package machine

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/memagent/memagent/lab/topology"
)

// Device is a part of a machine: what QEMU and what the guest's kernel must be told of it.
type Device interface {
	QEMU() []string
	Kernel() []string
}

// Args are QEMU's arguments for a machine of those devices.
func Args(devices []Device) []string {
	var args, kernel []string
	for _, d := range devices {
		args = append(args, d.QEMU()...)
		kernel = append(kernel, d.Kernel()...)
	}
	return append(args, "-append", strings.Join(kernel, " "))
}

// Accel names how guests execute.
type Accel string

// Accelerators: real virtualisation; emulation with one host thread per CPU; and emulation by one
// thread for all CPUs with the instructions executed for a clock, so that times do not depend on
// how busy the host is. Its CPUs share what one of them could do.
const (
	KVM     Accel = "kvm"
	TCG     Accel = "tcg"
	Counted Accel = "tcg-counted"
)

// countedShift makes an instruction of a Counted guest last 2^2 ns: about what an emulated CPU
// takes on a host of today, so that idle time and work keep their proportion.
const countedShift = 2

// Base is the board: PC, no network, no graphics, ends instead of rebooting.
type Base struct{ Accel Accel }

// QEMU implements Device.
func (b Base) QEMU() []string {
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-net", "none", "-M", "q35"}
	switch b.Accel {
	case KVM:
		return append(args, "-accel", "kvm", "-cpu", "host")
	case Counted:
		return append(args, "-accel", "tcg,thread=single", "-icount", "shift="+strconv.Itoa(countedShift), "-cpu", "max")
	}
	return append(args, "-accel", "tcg,thread=multi", "-cpu", "max")
}

// Kernel implements Device. panic=-1 reboots at once after a panic, which -no-reboot turns into
// QEMU's end; mitigations cost emulated cycles and protect nobody here.
func (b Base) Kernel() []string {
	return []string{"panic=-1", "oops=panic", "mitigations=off", "psi=1", "quiet"}
}

// NUMA is the memory and the CPUs.
type NUMA struct{ Topology topology.Topology }

// QEMU implements Device.
func (n NUMA) QEMU() []string {
	t := n.Topology
	args := []string{
		"-m", strconv.FormatInt(t.Memory()>>20, 10) + "M",
		"-smp", strconv.Itoa(t.CPUs()),
	}
	for _, node := range t.Nodes {
		opt := fmt.Sprintf("node,nodeid=%d", node.ID)
		cpus := append([]int(nil), node.CPUs...)
		sort.Ints(cpus)
		for _, c := range cpus {
			opt += fmt.Sprintf(",cpus=%d", c)
		}
		if node.Bytes() > 0 {
			args = append(args, "-object", fmt.Sprintf("memory-backend-ram,id=m%d,size=%dM", node.ID, node.Bytes()>>20))
			opt += fmt.Sprintf(",memdev=m%d", node.ID)
		}
		args = append(args, "-numa", opt)
	}
	args = append(args, speeds(t)...)
	for i, row := range t.Distances {
		for j, d := range row {
			args = append(args, "-numa", fmt.Sprintf("dist,src=%d,dst=%d,val=%d", t.Nodes[i].ID, t.Nodes[j].ID, d))
		}
	}
	return args
}

// speeds is the firmware's table of how fast which CPUs reach which memory (HMAT), where the
// topology tells it.
func speeds(t topology.Topology) []string {
	if !t.Tiered() {
		return nil
	}
	args := []string{"-machine", "hmat=on"}
	for _, from := range t.Nodes {
		for _, to := range t.Nodes {
			if len(from.CPUs) == 0 || to.Bytes() == 0 {
				continue
			}
			pair := fmt.Sprintf("hmat-lb,initiator=%d,target=%d,hierarchy=memory", from.ID, to.ID)
			args = append(args,
				"-numa", fmt.Sprintf("%s,data-type=access-latency,latency=%d", pair, to.LatencyNS),
				"-numa", fmt.Sprintf("%s,data-type=access-bandwidth,bandwidth=%dM", pair, to.BytesPerSecond()>>20))
		}
	}
	return args
}

// Kernel implements Device.
func (NUMA) Kernel() []string { return nil }

// Boot is the kernel and its initramfs.
type Boot struct {
	Image, Initramfs string
	// GuestEnv is set to 1 in init's environment: the kernel hands on what it does not know.
	GuestEnv string
}

// QEMU implements Device.
func (b Boot) QEMU() []string { return []string{"-kernel", b.Image, "-initrd", b.Initramfs} }

// Kernel implements Device.
func (b Boot) Kernel() []string { return []string{"rdinit=/init", b.GuestEnv + "=1"} }

// Console is the first serial port: the kernel's console.
type Console struct {
	// Log is the file it is written to; empty connects it to QEMU's own terminal.
	Log string
}

// QEMU implements Device. On a terminal, Ctrl-A x ends QEMU and Ctrl-C goes to the guest.
func (c Console) QEMU() []string {
	if c.Log == "" {
		return []string{"-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console", "-mon", "chardev=console"}
	}
	return []string{"-chardev", "file,id=console,path=" + escape(c.Log), "-serial", "chardev:console"}
}

// Kernel implements Device.
func (Console) Kernel() []string { return []string{"console=ttyS0"} }

// Results is the second serial port. It must come after Console.
type Results struct {
	// Path is a file or a descriptor under /dev/fd, opened for writing.
	Path string
}

// QEMU implements Device.
func (r Results) QEMU() []string {
	return []string{"-chardev", "file,id=results,path=" + escape(r.Path), "-serial", "chardev:results"}
}

// Kernel implements Device.
func (Results) Kernel() []string { return nil }

// Disk is the data disk. The image is never written: changes go to a temporary file of QEMU's.
type Disk struct {
	Image string
	// BytesPerSecond and IOPS limit the disk; 0 does not.
	BytesPerSecond, IOPS int64
}

// QEMU implements Device.
func (d Disk) QEMU() []string {
	opt := "file=" + escape(d.Image) + ",format=raw,if=virtio,snapshot=on,cache=unsafe"
	if d.BytesPerSecond > 0 {
		opt += fmt.Sprintf(",throttling.bps-total=%d", d.BytesPerSecond)
	}
	if d.IOPS > 0 {
		opt += fmt.Sprintf(",throttling.iops-total=%d", d.IOPS)
	}
	return []string{"-drive", opt}
}

// Kernel implements Device.
func (Disk) Kernel() []string { return nil }

// System tells the init of a guest that is a whole system what it need not do.
type System struct{}

// idle are units that only take time in a guest without a network or people, which lives for minutes:
// logins, timers, file systems that nothing uses, modules that are not there, and the wait for devices to
// settle. A kernel of x86 takes 2048 characters in all.
var idle = []string{
	"getty.target", "serial-getty@ttyS0.service", "timers.target", "systemd-udev-settle.service", "systemd-udev-trigger.service",
	"systemd-logind.service", "systemd-random-seed.service", "systemd-update-utmp.service", "systemd-remount-fs.service",
	"systemd-timesyncd.service", "systemd-networkd.service", "systemd-resolved.service", "systemd-pstore.service", "e2scrub_reap.service",
	"dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-tracing.mount", "sys-fs-fuse-connections.mount", "systemd-modules-load.service",
	"modprobe@configfs.service", "modprobe@dm_mod.service", "modprobe@drm.service", "modprobe@efi_pstore.service", "modprobe@fuse.service", "modprobe@loop.service",
	"podman.service", "podman.socket", "podman-restart.service", "podman-auto-update.service",
}

// QEMU implements Device.
func (System) QEMU() []string { return nil }

// Kernel implements Device.
func (System) Kernel() []string {
	args := []string{"systemd.unit=multi-user.target", "systemd.show_status=no"}
	for _, u := range idle {
		args = append(args, "systemd.mask="+u)
	}
	return args
}

// escape doubles commas, which separate options in QEMU's arguments.
func escape(s string) string { return strings.ReplaceAll(s, ",", ",,") }
