package numapolicy

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// machine is a cgroup on a few nodes, as simple as can be: what is taken of a
// node's hot file comes back at once, what is taken of its cold file does not.
type machine struct {
	s         *memcg.Sample
	cold, hot []float64 // MiB of file by node
	anon      []float64
	anonOut   []float64 // MiB by node, so far
	src       *rand.Rand
}

func newMachine(cold, hot, anon []float64) *machine {
	m := &machine{cold: cold, hot: hot, anon: anon, anonOut: make([]float64, len(cold)), src: rand.New(rand.NewPCG(3, 4))}
	m.s = sampleOf()
	for i := range cold {
		m.s.Nodes = append(m.s.Nodes, sizes{scan: 1}.stats(memcg.NodeID(i)))
	}
	m.print()
	return m
}

// print makes the sample say what lies where.
func (m *machine) print() {
	for i := range m.s.Nodes {
		for k, v := range map[memcg.NodeStat]float64{
			memcg.NodeInactiveFile: m.cold[i] + m.hot[i], memcg.NodeFile: m.cold[i] + m.hot[i], memcg.NodeInactiveAnon: m.anon[i], memcg.NodeAnon: m.anon[i],
		} {
			m.s.Nodes[i].Set(k, memcg.Value(uint64(v*mib)))
		}
	}
}

func (m *machine) count(i int, k memcg.NodeStat, add float64) {
	v, _ := m.s.Nodes[i].Get(k).Get()
	m.s.Nodes[i].Set(k, memcg.Value(v+uint64(add*mib/page)))
}

// take reclaims MiB from one node: of file in proportion, of anon what is
// lacking or, without targeting, its share.
func (m *machine) take(i int, want float64, fileOnly bool) {
	file := m.cold[i] + m.hot[i]
	fromFile := want
	if all := file + m.anon[i]; !fileOnly && file < 2*want && all > 0 {
		fromFile = want * file / all
	}
	fromFile = min(fromFile, file)
	if file > 0 {
		m.count(i, memcg.NodeRefaultFile, fromFile*m.hot[i]/file)
		m.cold[i] -= fromFile * m.cold[i] / file
	}
	if !fileOnly {
		out := min(want-fromFile, m.anon[i])
		m.anon[i], m.anonOut[i] = m.anon[i]-out, m.anonOut[i]+out
	}
	m.count(i, memcg.NodeScan, want)
	m.count(i, memcg.NodeSteal, fromFile)
}

// run asks for MiB every five seconds, n times, and returns how often each node
// was drawn.
func (m *machine) run(st *State, p Policy, n int, want float64) (drawn []int) {
	drawn = make([]int, len(m.cold))
	for range n {
		m.print()
		in := inputOf(m.s, hostOf(make([]uint64, len(m.cold))...))
		for i := range in.Host.Nodes {
			in.Host.Nodes[i].MemFree = memcg.Value(8 << 30)
		}
		in.Nodes, in.Random, in.Elapsed = nodesOf(in.Host), m.src, 5*time.Second
		d := Decide(st, in, p)
		if d.Reach == OneNode {
			drawn[d.Drawing.Item]++
			m.take(int(d.Drawing.Item), want, d.FileOnly)
			continue
		}
		all := 0.0
		for i := range m.cold {
			all += m.cold[i] + m.hot[i] + m.anon[i]
		}
		for i := range m.cold {
			m.take(i, want*(m.cold[i]+m.hot[i]+m.anon[i])/all, d.FileOnly)
		}
	}
	return drawn
}

// Kernel 6.12 swapped 49.5 MB of anon out of node 1 here, and nothing when it was
// made to take from node 0 alone.
func TestNoAnonLeavesTheNodeThatHoldsNothingElse(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Policy
		swap bool
	}{{"plain reclaim", Policy{}, true}, {"the lottery", lottery, false}} {
		m := newMachine([]float64{200, 0}, []float64{0, 0}, []float64{48, 96})
		var st State
		// The first sample cannot be weighed and is not acted on.
		Decide(&st, Input{Sample: m.s, Host: hostOf(8192, 8192), Nodes: nodesOf(hostOf(8192, 8192))}, c.p)
		m.run(&st, c.p, 24, 4)
		if got := m.anonOut[1] > 0; got != c.swap {
			t.Errorf("%s: %.1f MiB of anon left node 1", c.name, m.anonOut[1])
		}
	}
}

func TestANodeWhoseCacheComesBackIsFoundOutAndLeftAlone(t *testing.T) {
	m := newMachine([]float64{4000, 4000, 4000, 0}, []float64{0, 0, 0, 4000}, []float64{0, 0, 0, 0})
	var st State
	m.run(&st, lottery, 20, 64) // begins balanced: plain reclaim finds out
	drawn := m.run(&st, lottery, 40, 64)
	others := drawn[0] + drawn[1] + drawn[2]
	if others < 30 || drawn[3]*6 > others {
		t.Errorf("drawn %v", drawn)
	}
	if w := st.shares[3].Weight; w == 0 {
		t.Error("a node that can give anything keeps a ticket")
	}
}
