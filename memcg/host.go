package memcg

// HostSample is one reading of what the host has: /proc/meminfo, /proc/swaps,
// host PSI and the nodes. Sizes are bytes.
type HostSample struct {
	PageSize uint64 // bytes a page

	MemTotal     Field
	MemFree      Field
	MemAvailable Field
	SwapTotal    Field // 0 where there is no swap, which is not absent
	SwapFree     Field
	Swap         SwapClass // the kind of the device that is used first

	// LRUGen is the bits of /sys/kernel/mm/lru_gen/enabled: 0 means that the
	// multi-gen LRU is built in and switched off, Unsupported that it is not
	// built in. Bit 0 is the LRU itself.
	LRUGen Field
	// Demotion is 1 where the kernel moves pages to slower nodes instead of
	// evicting them (/sys/kernel/mm/numa/demotion_enabled), 0 where it could and
	// is told not to, Unsupported where it cannot. Without slower nodes it means
	// nothing.
	Demotion Field

	Pressure Pressure // /proc/pressure/memory
	Nodes    []Node   // online nodes, in ascending id
}

// ClassicLRU reports whether the host is known to run the classic LRU with its
// active and inactive lists.
func (h *HostSample) ClassicLRU() bool {
	bits, ok := h.LRUGen.Get()
	return ok && bits&1 == 0 || h.LRUGen.State() == Unsupported
}

// Demotes reports whether the host is known to move pages to slower nodes.
func (h *HostSample) Demotes() bool {
	v, ok := h.Demotion.Get()
	return ok && v != 0
}

// Node is what sysfs says of one online node.
type Node struct {
	ID       NodeID
	MemTotal Field
	MemFree  Field
	// FilePages is the page cache on the node, Inactive(file) + Active(file).
	InactiveFile, ActiveFile Field
	// Reserve is how many bytes of free memory the kernel keeps on the node: of
	// each zone its high watermark and what it protects from allocations that
	// could be made elsewhere, as calculate_totalreserve_pages in
	// mm/page_alloc.c has it. Below it kswapd is at work, or about to be.
	// Unsupported where /proc/zoneinfo does not tell.
	Reserve           Field
	HasMemory, HasCPU bool
	// Distance is this node's row of the distance table, by the other node's
	// place in HostSample.Nodes; empty when unknown. 10 is local.
	Distance []int
}

// SwapClass is the kind of device that swapped pages go to: it sets what a
// swap-in costs until it has been measured.
type SwapClass uint8

// Classes of swap, from none to slowest. Zswap stands before a device.
const (
	SwapUnknown SwapClass = iota
	SwapNone
	SwapZram
	SwapZswap
	SwapNVMe
	SwapSSD
	SwapDisk
	SwapFile
)

var swapClassNames = [...]string{"unknown", "none", "zram", "zswap", "nvme", "ssd", "disk", "file"}

// String returns the class in one lower-case word.
func (c SwapClass) String() string {
	if int(c) < len(swapClassNames) {
		return swapClassNames[c]
	}
	return swapClassNames[SwapUnknown]
}
