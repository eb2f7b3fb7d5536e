package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memagent/memagent/memcg"
)

// HostNodes are the marks of free memory by which a node counts as short, as
// shares of the node's memory: 0 < Low < High <= MaxNodeMark.
type HostNodes struct {
	Low  Percent // short below it
	High Percent // no longer short from it on
}

// MaxNodeMark bounds HostNodes: more than half of every node kept free is not
// what a node is for.
const MaxNodeMark Percent = 0.5

// Numa is what a policy does about the nodes of a machine. The zero Numa does
// nothing.
type Numa struct {
	Reclaim NumaReclaim
	Mems    NumaMems
	// Nodes are those without a CPU that may be picked all the same, in
	// ascending order. nil: none.
	Nodes []memcg.NodeID
	// SwapWhenShort lets anon be taken for a short node's sake where every node
	// that the cgroup may use is short and has nothing else to give.
	SwapWhenShort bool
	// Demote lets reclaim go on while the kernel moves pages to nodes outside of
	// the cgroup's cpuset.mems.
	Demote bool
}

// NumaReclaim says which nodes a request takes from.
type NumaReclaim uint8

// Ways to choose. NumaReclaimOff leaves every node to give in proportion.
const (
	NumaReclaimOff NumaReclaim = iota
	NumaReclaimLottery
)

var numaReclaimNames = []string{"off", "lottery"}

// String returns the way as the file has it.
func (n NumaReclaim) String() string { return word(numaReclaimNames, int(n)) }

// NumaMems says how cpuset.mems is chosen.
type NumaMems uint8

// Ways to choose. NumaMemsKeep never writes the file.
const (
	NumaMemsKeep NumaMems = iota
	NumaMemsAvoidShort
	NumaMemsCompact
	NumaMemsSpread
)

var numaMemsNames = []string{"keep", "avoid-short", "compact", "spread"}

// String returns the way as the file has it.
func (n NumaMems) String() string { return word(numaMemsNames, int(n)) }

const (
	wantNumaMark  = "a percentage above 0%, up to 50%"
	wantNumaNodes = "a list of node numbers such as [2, 3]"
)

var hostNodesKeys = []key[HostNodes]{
	scalarKey("low", wantNumaMark, "A node with less free memory than this share of its own is short, or with less than the kernel\n"+
		"keeps there by itself where that is more (/proc/zoneinfo), or than will be used until the next tick...",
		percentAbove0(MaxNodeMark), func(n *HostNodes) *Percent { return &n.Low }, Percent.String),
	scalarKey("high", wantNumaMark, "...until it has as much more as this is above low.",
		percentAbove0(MaxNodeMark), func(n *HostNodes) *Percent { return &n.High }, Percent.String),
}

var numaKeys = []key[Numa]{
	wordKey("reclaim", "lottery: where nodes differ in what they could give, take from one of them, drawn by weight; and\n"+
		"give on nodes that are short. off: take from every node in proportion, as the kernel does.",
		numaReclaimNames, func(n *Numa) *NumaReclaim { return &n.Reclaim }),
	wordKey("mems", "cpuset.mems. keep: never written. avoid-short: leave nodes out while they are short. compact: the\n"+
		"fewest nodes, near each other, that hold the working set. spread: all that the parent grants.\n"+
		"Each change moves the memory of the cgroup.",
		numaMemsNames, func(n *Numa) *NumaMems { return &n.Mems }),
	withExample("[2, 3]", key[Numa]{
		name: "nodes", want: wantNumaNodes,
		about: "Nodes without a CPU, a slower tier, that may be picked all the same. Unset: none.",
		read:  readNumaNodes, show: showNumaNodes,
	}),
	boolKey("swap_when_short", "Swap for a short node's sake where every node that the cgroup may use is short of all else.",
		func(n *Numa) *bool { return &n.SwapWhenShort }),
	boolKey("demote", "Go on reclaiming while the kernel demotes pages to nodes outside of cpuset.mems.",
		func(n *Numa) *bool { return &n.Demote }),
}

func readNumaNodes(r *reader, p place, want string, n *Numa) {
	var nodes []memcg.NodeID
	for _, at := range r.list(p, want) {
		id, ok := r.integer(at, "0.."+strconv.Itoa(int(memcg.MaxNode)), 0, int(memcg.MaxNode))
		if !ok {
			continue
		}
		if slices.Contains(nodes, memcg.NodeID(id)) {
			r.fault(at, id, faultf(ErrDuplicate, "%d is listed already", id), "keep one")
			continue
		}
		nodes = append(nodes, memcg.NodeID(id))
	}
	slices.Sort(nodes)
	n.Nodes = nodes
}

func showNumaNodes(n *Numa) shown {
	if len(n.Nodes) == 0 {
		return shown{}
	}
	return shown{text: "[" + n.listed() + "]"}
}

func (n *Numa) listed() string {
	ids := make([]string, len(n.Nodes))
	for i, id := range n.Nodes {
		ids[i] = strconv.Itoa(int(id))
	}
	return strings.Join(ids, ", ")
}

// String returns what is done in one phrase for people, "" where nothing is.
func (n *Numa) String() string {
	var out []string
	if n.Reclaim == NumaReclaimLottery {
		out = append(out, "nodes by lottery")
	}
	if n.Mems != NumaMemsKeep {
		out = append(out, "cpuset.mems "+n.Mems.String())
	}
	if len(out) > 0 && len(n.Nodes) > 0 {
		out = append(out, "slow nodes "+n.listed()+" too")
	}
	return strings.Join(out, ", ")
}

// checkMarks reports a low mark that is not below the high one.
func (r *reader) checkMarks(c *Config) {
	n := c.Host.Nodes
	if n.Low < n.High || r.bad["host.nodes"] {
		return
	}
	if at, ok := r.sound("host.nodes.low"); ok {
		r.fault(at, n.Low.String(), faultf(ErrConflict, "%v is not below host.nodes.high, %v", n.Low, n.High), "want less, or raise high")
	} else if at, ok := r.sound("host.nodes.high"); ok {
		r.fault(at, n.High.String(), faultf(ErrConflict, "%v is not above host.nodes.low, %v", n.High, n.Low), fmt.Sprintf("want more than %v", n.Low))
	}
}
