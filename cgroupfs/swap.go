package cgroupfs

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/memagent/memagent/memcg"
)

// zswapEnabled is the switch of zswap, the compressed cache before a swap
// device, below the host's root.
const zswapEnabled = "sys/module/zswap/parameters/enabled"

// blockDir holds a link to every block device, partitions included.
const blockDir = "sys/class/block"

// blockDepth bounds how many layers of device mapper and RAID are looked
// through. Real stacks have three or four.
const blockDepth = 8

// swapArea is one line of /proc/swaps.
type swapArea struct {
	name     string // path of the device or file, as seen on the host
	file     bool
	priority int
}

// swapAreas returns the swap areas in use, the one used first in front: the
// highest priority, and the order of /proc/swaps among equals, between which
// the kernel alternates. memcg.ErrUnsupported: the kernel has no swap at all.
func (fs *FS) swapAreas() ([]swapArea, error) {
	const file = "proc/swaps"
	proc, err := procfs.NewFS(filepath.Join(fs.root, "proc"))
	if err != nil {
		return nil, fs.hostFileError("open", file, err)
	}
	lines, err := proc.Swaps()
	if err != nil {
		return nil, fs.hostFileError("read", file, err)
	}
	areas := make([]swapArea, len(lines))
	for i, l := range lines {
		areas[i] = swapArea{name: unescape(l.Filename), file: l.Type == "file", priority: l.Priority}
	}
	slices.SortStableFunc(areas, func(a, b swapArea) int { return b.priority - a.priority })
	return areas, nil
}

// swapClassOf returns the class of the area that is used first. SwapUnknown
// comes with the error that tells why.
func (fs *FS) swapClassOf(areas []swapArea) (memcg.SwapClass, error) {
	if len(areas) == 0 {
		return memcg.SwapNone, nil
	}
	if b, err := fs.readHostFile(zswapEnabled); err == nil && isOn(b) {
		return memcg.SwapZswap, nil
	}
	first := areas[0]
	if first.file {
		return fs.classOfSwapFile(first.name), nil
	}
	dev, err := fs.blockName(first.name)
	if err != nil {
		return memcg.SwapUnknown, err
	}
	return fs.classOfDevice(dev, blockDepth)
}

// blockName returns the name in blockDir of a device that /proc/swaps gives by
// path: /dev/sda2, /dev/dm-0, /dev/mapper/vg-swap.
func (fs *FS) blockName(dev string) (string, error) {
	// Where a device's name has a slash, sysfs has an exclamation mark.
	name := strings.ReplaceAll(strings.TrimPrefix(dev, "/dev/"), "/", "!")
	found, err := fs.hostFileExists(blockDir + "/" + name)
	if found || err != nil {
		return name, err
	}
	mapped, isMapper := strings.CutPrefix(dev, "/dev/mapper/")
	all, err := fs.listHostDir(blockDir)
	if err != nil {
		return "", err
	}
	for _, n := range all {
		if !isMapper || !strings.HasPrefix(n, "dm-") {
			continue
		}
		b, err := fs.readHostFile(blockDir + "/" + n + "/dm/name")
		if err == nil && strings.TrimSpace(string(b)) == mapped {
			return n, nil
		}
	}
	return "", &opError{Op: "find", File: dev, Kind: memcg.ErrUnsupported, Hint: "no block device of that name in " + filepath.Join(fs.root, blockDir)}
}

// classOfDevice returns the class of a block device by its name in blockDir. A
// partition is of its disk's class, a mapped device or an array of the slowest
// of what it lies on. Names cannot be trusted for anything but zram and NVMe;
// the rest is told by queue/rotational.
func (fs *FS) classOfDevice(name string, depth int) (memcg.SwapClass, error) {
	switch {
	case strings.HasPrefix(name, "zram"):
		return memcg.SwapZram, nil
	case strings.HasPrefix(name, "nvme"):
		return memcg.SwapNVMe, nil
	}
	dir := blockDir + "/" + name
	partition, err := fs.hostFileExists(dir + "/partition")
	if err != nil {
		return memcg.SwapUnknown, err
	}
	if partition {
		dir += "/.." // seen from the device's own directory, to which the link leads
	}
	under, err := fs.listHostDir(dir + "/slaves")
	if err != nil && !errors.Is(err, memcg.ErrUnsupported) {
		return memcg.SwapUnknown, err
	}
	class := memcg.SwapUnknown
	for _, lower := range under {
		if depth == 0 {
			return memcg.SwapUnknown, &opError{Op: "find", File: dir, Kind: memcg.ErrInvalid, Hint: "too many devices on top of each other"}
		}
		c, err := fs.classOfDevice(lower, depth-1)
		if err != nil {
			return memcg.SwapUnknown, err
		}
		class = max(class, c)
	}
	if class != memcg.SwapUnknown {
		return class, nil
	}
	b, err := fs.readHostFile(dir + "/queue/rotational")
	switch {
	case err != nil:
		return memcg.SwapUnknown, err
	case isOn(b):
		return memcg.SwapDisk, nil
	}
	return memcg.SwapSSD, nil
}

// classOfSwapFile returns the class of the device that the file's filesystem
// lies on, SwapFile where that cannot be found: filesystems of several devices
// and of the network have none.
func (fs *FS) classOfSwapFile(file string) memcg.SwapClass {
	dev, ok := fs.deviceUnder(file)
	if !ok {
		return memcg.SwapFile
	}
	b, err := fs.readHostFile("sys/dev/block/" + dev + "/uevent")
	if err != nil {
		return memcg.SwapFile
	}
	for line := range strings.Lines(string(b)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME=")
		if !ok {
			continue
		}
		class, err := fs.classOfDevice(strings.ReplaceAll(name, "/", "!"), blockDepth)
		if err == nil {
			return class
		}
	}
	return memcg.SwapFile
}

// deviceUnder returns the "major:minor" of the filesystem that holds a path of
// the host, by the mounts of its first process.
func (fs *FS) deviceUnder(file string) (dev string, ok bool) {
	proc, err := procfs.NewFS(filepath.Join(fs.root, "proc"))
	if err != nil {
		return "", false
	}
	first, err := proc.Proc(1)
	if err != nil {
		return "", false
	}
	mounts, err := first.MountInfo()
	if err != nil {
		return "", false
	}
	longest := -1
	for _, m := range mounts {
		at := unescape(m.MountPoint)
		below := at == "/" || file == at || strings.HasPrefix(file, at+"/")
		// A later mount on the same point hides the earlier one.
		if below && len(at) >= longest {
			dev, longest, ok = m.MajorMinorVer, len(at), true
		}
	}
	return dev, ok
}
