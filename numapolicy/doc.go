// Package numapolicy works out, on a machine with several memory nodes, which
// node a cgroup should give memory from, which cgroup should give where a node
// is short, and which nodes a cgroup should use at all. It opens no files, reads
// no clock, starts no goroutines and has no random numbers of its own: the same
// input and the same draws always give the same output.
//
// # The law in prose
//
// Plain reclaim takes from every node in proportion to what lies there. Where
// one node holds cold page cache and another holds only anon, that swaps anon
// out of the second while the first could have given clean pages for nothing.
// So each node gets a weight: what it could give, times how much of what was
// looked at there could be taken, divided by what taking it has cost
// (weight.go). Where the weights are about equal, plain reclaim does well and
// is left to it (balance.go). Where they are not, a lottery picks one node with
// a chance in proportion to its weight (lottery.go), and only that node gives.
// A lottery, and not the heaviest node: weights are estimates, and every node
// that can give anything must be looked at now and then for its estimate to
// improve.
//
// A node is short when it has less free memory than its low mark, until it has
// more than its high mark (nodes.go). A second lottery picks among the cgroups
// with memory there (relief.go). While another node has room a short node gives
// file only: swapping for the sake of placement, "swap insanity", costs more
// than a remote access ever does. The answer to a full node is to steer new
// memory elsewhere, which is what a plan for cpuset.mems does, in minutes and
// not in seconds (mems.go).
//
// Nodes without a CPU are a slower tier of memory. They are never picked unless
// the operator names them, and pages that the kernel only moved there are not
// counted as freed (tiers.go).
//
// # Where the weight is wrong, and which side errs safely
//
// The kernel counts what it scanned and took for anon and file together, so one
// ratio stands for both lists of a node; before 7.1 it counts it for the whole
// cgroup only, and the ratio then says nothing about nodes. The multi-gen LRU
// does not count a refault that came back on another node, so a node may look
// cheaper than it is. Either way the lottery only shifts shares: every decision
// stays within what plain reclaim might have done, on fewer nodes. A node whose
// figures are missing gets no ticket, and plain reclaim is always the way out.
//
// # Sources
//
// One thread of linux-kernel is called the seed here, and tests quote it:
// "memg: better numa scanning", v5, August 2011, which gave the kernel a
// weighted choice of the victim node that it has never had since. Ids like c57
// name cases in the wild; their files are in testdata. docs/algorithms.md
// derives the formulas, lists the constants and the seed's slips that are not
// repeated here.
//
// # Out of scope
//
// How many bytes to ask for, whether the kernel can reclaim by node, budgets,
// and the journal before a write are the business of other packages.
package numapolicy
