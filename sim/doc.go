// Package sim is a simulated host behind the same seam as the real one: pages
// on least-recently-used lists, NUMA nodes, swap, limits and the counters that
// a kernel would print, driven by a virtual clock that moves only when told.
//
// # What is modelled
//
// The classic LRU of kernels 5.9 and later, page by page: an active and an
// inactive list for anonymous and for file memory in every cgroup on every
// node (mm/vmscan.c); refault distance by nonresident age, kept for the
// cgroup whose limit or request evicted the page (mm/workingset.c); the
// anon/file balance of get_scan_count with its cost model; direct reclaim at
// memory.max, the brake at memory.high, reclaim of a full node, swap with a
// size, a class and limits in the hierarchy; OOM. What differs between kernels
// is data: see Kernel. Older ones that treated anon as the kernel before 5.9
// did can be had too, for comparison.
//
// A workload is a small value that says which pages are touched when. A touch
// that has to read takes the price of the device, and the workload waits for
// it: thrashing makes it slow, as it does in life. Where a host is given a
// number of CPUs, workloads and reclaim on request wait for one another.
//
// # What is not
//
// No multi-generational LRU, no huge pages, no dirty file pages, no readahead,
// no slab, no demotion. Protection (memory.min, memory.low) is a cgroup's own
// value, not spread over its children. A swap slot is free as soon as its page
// is back. Compressed swap takes no memory. memory.stat is never stale. Every
// refault counts as pressure, where the kernel leaves out those of pages that
// had not been active. What a real kernel does differently is for the lab to
// show; where the two disagree the lab is right.
//
// # How to use it
//
//	h := sim.New(sim.Config{Nodes: []sim.NodeConfig{{Bytes: 512 << 20}}, Kernel: sim.Kernel612})
//	h.Cgroup("/app", sim.Limits{Max: memcg.LimitOf(180 << 20)})
//	h.Start("/app", sim.Idle{Anon: 150 << 20})
//	h.Start("/app", sim.FileLoop{Bytes: 80 << 20})
//	h.Run(10 * time.Second)
//
// The same calls give the same host: nothing depends on the wall clock, on map
// order or on a random source that was not passed in. Misuse (a cgroup made
// twice, a call for one that never was, two requests at once for the same one)
// is a fault in the caller and fails loudly.
package sim
