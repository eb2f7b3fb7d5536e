package workingset

import "github.com/memagent/memagent/memcg"

// Prices of one refault in microseconds, before any has been measured: the
// time a task waits for one 4 KiB page.
const (
	priceZram  = 10   // a fault and one lz4/zstd decompression of a page
	priceZswap = 15   // the same and a tree lookup; pages written back cost more, which measuring finds
	priceNVMe  = 100  // a random 4 KiB read of a flash drive on PCIe
	priceSSD   = 250  // the same over SATA
	priceDisk  = 8000 // a seek and half a turn at 7200 rpm
	// priceUnknown stands for a device nobody could name: a swap file, or the
	// file systems a cgroup reads from. Taking a disk for an SSD squeezes too
	// much until stalls are measured, taking an SSD for a disk not at all; the
	// pressure target holds in both.
	priceUnknown = 250

	// priceSpan bounds what measuring may make of a table price, up or down:
	// readahead shares one read among up to 16 pages and more, and a busy
	// device serves that much more slowly.
	priceSpan = 16
	// priceSamples is the least number of refaults that one measurement rests
	// on; fewer measure chance.
	priceSamples = 64
	// priceShare is the part of the expected cost that must be of one type for
	// the stall to be its price: stall is not told apart by type.
	priceShare = 0.8
	// priceWeight is the weight of one measurement against those before.
	priceWeight = 1.0 / 8
)

// tablePrice returns the price by class of device.
func tablePrice(t int, swap memcg.SwapClass) float64 {
	if t == file {
		return priceUnknown
	}
	switch swap {
	case memcg.SwapZram:
		return priceZram
	case memcg.SwapZswap:
		return priceZswap
	case memcg.SwapNVMe:
		return priceNVMe
	case memcg.SwapSSD:
		return priceSSD
	case memcg.SwapDisk:
		return priceDisk
	}
	return priceUnknown
}

// price returns what one refault of a type costs, in microseconds.
func (m *memory) price(t int, swap memcg.SwapClass) float64 {
	if m.measured > 0 {
		return tablePrice(t, swap) * m.measured
	}
	return tablePrice(t, swap)
}

// measurePrices corrects the price of the type that dominates a sample by the
// stall it was seen to cause. Stall under a throttle at memory.high is not the
// price of anything. "Some" pressure cannot exceed the wall clock, so many
// waiting threads make the price look low; the pressure target, which is
// compared on its own, holds the squeeze then.
func (st *State) measurePrices(d *deltas, swap memcg.SwapClass) {
	us, ok := d.some.Get()
	if !ok || d.highRises {
		return
	}
	var cost [types]float64
	for t := range types {
		cost[t] = d.refault[t] * st.sides[t].price(t, swap)
	}
	for t := range types {
		if d.refault[t] < priceSamples || cost[t] < priceShare*(cost[anon]+cost[file]) {
			continue
		}
		m := &st.sides[t]
		seen := us / d.refault[t] / tablePrice(t, swap)
		if m.measured <= 0 {
			m.measured = 1
		}
		m.measured += (seen - m.measured) * priceWeight
		m.measured = min(max(m.measured, 1.0/priceSpan), priceSpan)
	}
}

// costs returns what the refaults of one sample cost, in microseconds.
func (st *State) costs(d *deltas, swap memcg.SwapClass) (cost [types]float64) {
	for t := range types {
		cost[t] = d.refault[t] * st.sides[t].price(t, swap)
	}
	return cost
}
