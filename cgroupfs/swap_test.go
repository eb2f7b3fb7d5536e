package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// block makes a block device of sysfs: a link in blockDir to its directory
// among the devices. Lines are pairs of a file in it and its content.
func block(t testing.TB, root, device string, files ...string) {
	t.Helper()
	dir := filepath.Join(root, "sys/devices", device)
	for i := 0; i+1 < len(files); i += 2 {
		file := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(files[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, blockDir, filepath.Base(device))
	if err := os.MkdirAll(filepath.Dir(link), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("../../devices", device), link); err != nil {
		t.Fatal(err)
	}
}

func TestSwapClass(t *testing.T) {
	const head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	rotates, solid := []string{"queue/rotational", "1\n"}, []string{"queue/rotational", "0\n"}
	mounts := "21 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n22 1 8:2 / / rw - ext4 /dev/sda2 rw\n30 22 259:1 / /mnt/fast\\040disk rw - xfs /dev/nvme0n1 rw\n31 22 0:44 / /net rw - nfs host:/ rw\n"
	proc1 := []string{"proc/1/mountinfo", mounts, "sys/dev/block/8:2/uevent", "MAJOR=8\nMINOR=2\nDEVNAME=sda2\nDEVTYPE=partition\n",
		"sys/dev/block/259:1/uevent", "DEVNAME=nvme0n1\n"}
	for _, tt := range []struct {
		name  string
		swaps string
		files []string
		want  memcg.SwapClass
		err   error
	}{
		{name: "no swap", want: memcg.SwapNone},
		{name: "zram", swaps: "/dev/zram0 partition 100 0 100", want: memcg.SwapZram},
		{name: "the highest priority is used first", swaps: "/dev/sda partition 100 0 -2\n/dev/zram0 partition 100 0 5", want: memcg.SwapZram},
		{name: "equals are used in their order", swaps: "/dev/sda partition 100 0 5\n/dev/zram0 partition 100 0 5", want: memcg.SwapDisk},
		{name: "zswap stands before a device", swaps: "/dev/sda partition 100 0 -2", files: []string{zswapEnabled, "Y\n"}, want: memcg.SwapZswap},
		{name: "zswap that is off does not", swaps: "/dev/sda partition 100 0 -2", files: []string{zswapEnabled, "N\n"}, want: memcg.SwapDisk},
		{name: "zswap without a device behind it is none", files: []string{zswapEnabled, "Y\n"}, want: memcg.SwapNone},
		{name: "NVMe", swaps: "/dev/nvme0n1p3 partition 100 0 -2", want: memcg.SwapNVMe},
		{name: "a disk that rotates", swaps: "/dev/sda partition 100 0 -2", want: memcg.SwapDisk},
		{name: "a partition is of its disk's class", swaps: "/dev/sda2 partition 100 0 -2", want: memcg.SwapDisk},
		{name: "a partition of a solid disk", swaps: "/dev/sdb1 partition 100 0 -2", want: memcg.SwapSSD},
		{name: "a volume is of the class below it", swaps: "/dev/dm-0 partition 100 0 -2", want: memcg.SwapNVMe},
		{name: "a volume by its name", swaps: `/dev/mapper/vg-swap\040one partition 100 0 -2`, want: memcg.SwapNVMe},
		{name: "an array is as slow as its slowest", swaps: "/dev/md0 partition 100 0 -2", want: memcg.SwapDisk},
		{name: "a name with a slash", swaps: "/dev/cciss/c0d0 partition 100 0 -2", want: memcg.SwapSSD},
		{name: "a loop of devices", swaps: "/dev/dm-8 partition 100 0 -2", want: memcg.SwapUnknown, err: memcg.ErrInvalid},
		{name: "a device that is not there", swaps: "/dev/sdz partition 100 0 -2", want: memcg.SwapUnknown, err: memcg.ErrUnsupported},
		{name: "a file on a disk", swaps: "/swap.img file 100 0 -2", files: proc1, want: memcg.SwapDisk},
		{name: "a file on another mount", swaps: `/mnt/fast\040disk/swap file 100 0 -2`, files: proc1, want: memcg.SwapNVMe},
		{name: "a file on a filesystem without a device", swaps: "/net/swap file 100 0 -2", files: proc1, want: memcg.SwapFile},
		{name: "a file on who knows what", swaps: "/swap.img file 100 0 -2", want: memcg.SwapFile},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fixtureCopy(t, "", append(tt.files, "proc/swaps", head+strings.TrimSuffix(tt.swaps+"\n", "\n\n"),
				"sys/fs/cgroup/cgroup.controllers", "memory\n")...)
			if tt.swaps == "" {
				if err := os.WriteFile(filepath.Join(root, "proc/swaps"), []byte(head), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			block(t, root, "zram0", solid...)
			block(t, root, "pci/sda", rotates...)
			block(t, root, "pci/sda/sda2", "partition", "2\n")
			block(t, root, "pci/sdb", solid...)
			block(t, root, "pci/sdb/sdb1", "partition", "1\n")
			block(t, root, "pci/nvme0n1/nvme0n1p3", "partition", "3\n")
			block(t, root, "dm-0", "dm/name", "vg-swap one\n", "slaves/nvme0n1p3", "", "queue/rotational", "0\n")
			block(t, root, "md0", "slaves/sdb1", "", "slaves/sda2", "", "queue/rotational", "0\n")
			block(t, root, "dm-8", "slaves/dm-9", "")
			block(t, root, "dm-9", "slaves/dm-8", "")
			block(t, root, "cciss!c0d0", solid...)
			host := openHost(t, root)
			areas, err := host.swapAreas()
			if err != nil {
				t.Fatal(err)
			}
			class, err := host.swapClassOf(areas)
			if class != tt.want || !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
				t.Errorf("class = %v, %v, want %v, %v", class, err, tt.want, tt.err)
			}
		})
	}
}

func TestSwapsThatCannotBeReadAreNotNoSwap(t *testing.T) {
	for name, tt := range map[string]struct {
		host *FS
		want error
	}{
		"no file":   {hostOf(t, "", "proc/meminfo", "MemTotal: 1 kB\n"), memcg.ErrUnsupported},
		"no proc":   {hostOf(t, ""), memcg.ErrUnsupported},
		"odd lines": {hostOf(t, "", "proc/swaps", "Filename\n/dev/sda partition\n"), memcg.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if areas, err := tt.host.swapAreas(); areas != nil || !errors.Is(err, tt.want) {
				t.Errorf("swapAreas = %v, %v", areas, err)
			}
		})
	}
}
