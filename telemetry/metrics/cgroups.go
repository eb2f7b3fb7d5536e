package metrics

import (
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// MaxCgroups is how many cgroups have series of their own, about a dozen each.
// A scrape is held in memory as a whole while it is made; with more of them it
// would be the largest thing in this process by far.
const MaxCgroups = 2000

// cgroups collects what is known of each matched cgroup.
type cgroups struct {
	mu     sync.Mutex
	byPath map[string]*cgroup
	// without has the cgroups beyond MaxCgroups, for their number only.
	without map[string]bool
}

// cgroup is the figures of one cgroup. A path that comes back with another
// inode starts from zero, as counters of a process that was restarted do.
type cgroup struct {
	inode                 uint64
	label                 string
	policy, mode, verdict string
	name                  string
	container             telemetry.Container
	readable              bool

	current, anon, file, swap, lent memcg.Field
	floor                           uint64
	cost                            memcg.Term
	// Sums since it was first seen; known once a figure was.
	refaultAnon, refaultFile, stall memcg.Field
	wanted, requests                uint64
	reclaimed, swapped              memcg.Field
}

func newCgroups() *cgroups {
	return &cgroups{byPath: make(map[string]*cgroup), without: make(map[string]bool)}
}

func (c *cgroups) record(r *telemetry.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.byPath[r.Cgroup.Path]
	if telemetry.ErrorKind(r.Err) == "gone" {
		delete(c.without, r.Cgroup.Path)
		if one != nil && one.inode == r.Cgroup.Inode {
			delete(c.byPath, r.Cgroup.Path)
		}
		return
	}
	if one == nil || one.inode != r.Cgroup.Inode {
		if one == nil && len(c.byPath) >= MaxCgroups {
			c.without[r.Cgroup.Path] = true
			return
		}
		delete(c.without, r.Cgroup.Path)
		one = &cgroup{inode: r.Cgroup.Inode, label: labelOf(r.Cgroup.Path)}
		c.byPath[r.Cgroup.Path] = one
	}
	one.see(r)
}

// labelOf is the path where that is UTF-8, as a label must be, and the path in
// quotes with escapes else, so that no two paths have the same label.
func labelOf(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.Quote(path)
}

func (c *cgroup) see(r *telemetry.Record) {
	c.policy, c.mode, c.readable = r.Policy, string(r.Mode), r.Err == nil
	c.name, c.container = r.Name, r.Container
	if r.Done != nil {
		grow(&c.reclaimed, taken(r.Done))
		grow(&c.swapped, r.Done.SwapOut)
	}
	if r.Err != nil {
		return
	}
	c.current = r.Current
	c.wanted += r.Want
	if r.Acted {
		c.requests++
	}
	if r.Glance {
		return // the rest is of the last look
	}
	c.verdict, c.cost, c.floor = r.Verdict, r.Cost, r.Floor
	c.anon, c.file, c.swap, c.lent = r.Anon, r.File, r.Swap, r.Lent
	grow(&c.refaultAnon, r.RefaultAnon)
	grow(&c.refaultFile, r.RefaultFile)
	grow(&c.stall, r.Stall)
}

// grow adds what is known to a sum.
func grow(sum *memcg.Field, f memcg.Field) { *sum = memcg.SumKnown(*sum, f) }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("memagent_cgroup_"+name, help, append([]string{"cgroup"}, labels...), nil)
}

var (
	infoDesc = desc("info", "A watched cgroup, with the policy it falls under, its mode and the container it is of, where one is known; always 1.",
		"policy", "mode", "name", "namespace", "pod", "container")
	verdictDesc   = desc("verdict", "The verdict on a cgroup; 1 for the one that holds, and no series for the others.", "verdict")
	readableDesc  = desc("readable", "1 where the last look at the cgroup could read it.")
	residentDesc  = desc("resident_bytes", "What the cgroup is charged for (memory.current).")
	memoryDesc    = desc("memory_bytes", "Anonymous memory and page cache of the cgroup (memory.stat).", "type")
	swapDesc      = desc("swap_bytes", "What the cgroup has in swap.")
	lentDesc      = desc("lent_bytes", "By how much memory.high is above what its operator set.")
	floorDesc     = desc("floor_bytes", "The size below which nothing is asked of the cgroup.")
	costDesc      = desc("refault_cost_ratio", "The share of time spent on bringing evicted pages back.")
	refaultsDesc  = desc("refaults_total", "Evicted pages that came back.", "type")
	stallDesc     = desc("stall_seconds_total", "Time in which some task stood still for memory (PSI some).")
	wantedDesc    = desc("wanted_bytes_total", "Bytes that decisions wanted to take from the cgroup.")
	requestsDesc  = desc("requests_total", "Requests for memory of the cgroup handed to the kernel.")
	reclaimedDesc = desc("reclaimed_bytes_total", "Bytes that requests took from the cgroup.")
	swappedDesc   = desc("swapped_out_bytes_total", "Bytes of the cgroup that requests sent to swap.")
	withoutDesc   = prometheus.NewDesc("memagent_cgroups_without_series", "Watched cgroups that have no series of their own because there are too many.", nil, nil)

	cgroupDescs = []*prometheus.Desc{infoDesc, verdictDesc, readableDesc, residentDesc, memoryDesc, swapDesc, lentDesc, floorDesc, costDesc,
		refaultsDesc, stallDesc, wantedDesc, requestsDesc, reclaimedDesc, swappedDesc, withoutDesc}
)

// Describe sends the descriptions of all series.
func (c *cgroups) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range cgroupDescs {
		ch <- d
	}
}

// Collect sends the figures as they are now. The lock is held to copy them and
// not while they are sent.
func (c *cgroups) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	all := make([]cgroup, 0, len(c.byPath))
	for _, one := range c.byPath {
		all = append(all, *one)
	}
	without := len(c.without)
	c.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(withoutDesc, prometheus.GaugeValue, float64(without))
	for i := range all {
		all[i].collect(ch)
	}
}

const microsecond = 1e-6 // seconds

func (c *cgroup) collect(ch chan<- prometheus.Metric) {
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{c.label}, labels...)...)
	}
	known := func(d *prometheus.Desc, kind prometheus.ValueType, f memcg.Field, unit float64, labels ...string) {
		if v, ok := f.Get(); ok {
			value(d, kind, float64(v)*unit, labels...)
		}
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	value(infoDesc, gauge, 1, c.policy, c.mode, c.name, c.container.Namespace, c.container.Pod, c.container.Name)
	value(readableDesc, gauge, oneIf(c.readable))
	value(wantedDesc, counter, float64(c.wanted))
	value(requestsDesc, counter, float64(c.requests))
	known(reclaimedDesc, counter, c.reclaimed, 1)
	known(swappedDesc, counter, c.swapped, 1)
	known(refaultsDesc, counter, c.refaultAnon, 1, "anon")
	known(refaultsDesc, counter, c.refaultFile, 1, "file")
	known(stallDesc, counter, c.stall, microsecond)
	if !c.readable {
		return // gauges would be old
	}
	if c.verdict != "" {
		value(verdictDesc, gauge, 1, c.verdict)
		value(floorDesc, gauge, float64(c.floor))
	}
	known(residentDesc, gauge, c.current, 1)
	known(memoryDesc, gauge, c.anon, 1, "anon")
	known(memoryDesc, gauge, c.file, 1, "file")
	known(swapDesc, gauge, c.swap, 1)
	known(lentDesc, gauge, c.lent, 1)
	if c.cost.Known {
		value(costDesc, gauge, c.cost.Value/100)
	}
}
