package sim

import (
	"math/rand/v2"
	"time"

	"github.com/memagent/memagent/memcg"
)

// PageSize is the size of a page in bytes.
const PageSize = 4096

// Config is what a host is made of.
type Config struct {
	Nodes  []NodeConfig // at least one; ids in ascending order, gaps allowed
	Swap   SwapConfig
	Kernel Kernel // no default: a host without a kernel is refused

	// Seed starts every random source that was not passed in with a workload.
	Seed uint64
	// HostSwappiness is vm.swappiness; passing nothing means 60.
	HostSwappiness memcg.Swappiness
	// FilePrice is how long reading one page of a file takes; 0 means
	// DefaultFilePrice.
	FilePrice time.Duration

	// CPUs is how many threads work at once: those of the workloads, at what
	// they touch, swap in from memory and reclaim themselves, and a Reclaim for
	// as long as it took. 0 means a CPU for everybody.
	CPUs int

	// Self is the cgroup that memagent runs in; "" when it is outside.
	Self string
	// ReadOnly refuses every Reclaim, as a host opened for observing does.
	ReadOnly bool
	// NoPSI: no pressure files, boot option psi=0.
	NoPSI bool
	// NoNUMAStat: no memory.numa_stat, a kernel built without NUMA.
	NoNUMAStat bool
	// NoNodeReclaim: neither lru_gen nor DAMON is to be had, and a Reclaim that
	// names nodes is refused.
	NoNodeReclaim bool
	// NoCpuset: the cpuset controller is not enabled.
	NoCpuset bool

	// Fail is told of misuse; the call then returns an error. nil panics.
	// It may be called from any goroutine that calls the host.
	Fail func(format string, args ...any)
}

// NodeConfig is one NUMA node.
type NodeConfig struct {
	ID       memcg.NodeID
	Bytes    uint64 // of memory; 0 for a node without any
	NoCPU    bool
	Distance []int // to every node of the configuration, in order; nil: 10 and 20
}

// SwapConfig is the host's swap. The zero value is none.
type SwapConfig struct {
	Bytes uint64
	Class memcg.SwapClass // SwapUnknown with Bytes means SwapZram
	// Price is how long bringing one page back takes; 0 means the price of the
	// class.
	Price time.Duration
	// WritePrice is how long putting one page out keeps the one busy who
	// reclaims it: compression. 0 means nothing: a device writes by itself.
	WritePrice time.Duration
}

// DefaultFilePrice is what a page read from a file costs: 40 MB/s, a cloud
// disk read at random.
const DefaultFilePrice = 100 * time.Microsecond

// Prices of a page brought back from swap, by class: decompression, or the
// usual latency of one random 4 KiB read.
var swapPrices = map[memcg.SwapClass]time.Duration{
	memcg.SwapZram:  10 * time.Microsecond,
	memcg.SwapZswap: 10 * time.Microsecond,
	memcg.SwapNVMe:  80 * time.Microsecond,
	memcg.SwapSSD:   150 * time.Microsecond,
	memcg.SwapDisk:  8 * time.Millisecond,
	memcg.SwapFile:  150 * time.Microsecond,
}

// Prices of work that the kernel does in the workload's time.
const (
	scanPrice  = 200 * time.Nanosecond // looking at one page in direct reclaim
	stealPrice = 1 * time.Microsecond  // unmapping and freeing it
)

// Limits are what the files of one cgroup say. The zero value limits nothing.
type Limits struct {
	Min, Low uint64 // bytes
	// High, Max and SwapMax: the zero Limit means "max"; a limit that is
	// Unsupported or Invalid limits nothing and reads as what it is.
	High, Max, SwapMax memcg.Limit
	// Mems is cpuset.mems; empty inherits.
	Mems memcg.NodeMask
}

// limitPages returns what a limit means in pages.
func limitPages(l memcg.Limit) uint64 {
	if b, ok := l.Bytes(); ok {
		return b / PageSize
	}
	return unlimited
}

// shown is the limit as its file prints it.
func shown(l memcg.Limit) memcg.Limit {
	if l.State() == memcg.Missing {
		return memcg.Unlimited()
	}
	return l
}

const unlimited = 1 << 50 // pages: more than any host has

func (c Config) source(n uint64) *rand.Rand { return rand.New(rand.NewPCG(c.Seed, n)) }
