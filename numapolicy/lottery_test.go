package numapolicy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

// drawSlow is the same lottery with nothing clever in it.
func drawSlow(entries []Entry[int], ticket uint64) (item int, ok bool) {
	var total uint64
	for _, e := range entries {
		total += e.Weight
	}
	for _, e := range entries {
		if e.Weight == 0 {
			continue
		}
		n := max(e.Weight<<16/(total+1), 1)
		if ticket < n {
			return e.Item, true
		}
		ticket -= n
	}
	return 0, false
}

func drawEntries(rt *rapid.T) []Entry[int] {
	weights := rapid.SliceOfN(rapid.OneOf(
		rapid.Just(uint64(0)), rapid.Uint64Range(1, 10), rapid.Uint64Range(0, 1<<40)), 0, 40).Draw(rt, "weights")
	entries := make([]Entry[int], len(weights))
	for i, w := range weights {
		entries[i] = Entry[int]{Item: i, Weight: w}
	}
	return entries
}

// Every ticket there is, one by one: an entry that is too long or too short by
// one shows.
func TestEveryTicketGoesToTheEntryThatALinearScanFinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawEntries(rt)
		var l Lottery[int]
		l.Build(entries)
		got := make([]uint64, len(entries))
		for ticket := range l.Tickets() {
			d, ok := l.At(ticket)
			want, found := drawSlow(entries, ticket)
			if !ok || !found || d.Item != want || d.Weight != entries[want].Weight {
				rt.Fatalf("ticket %d of %d: %+v %t, want item %d %t", ticket, l.Tickets(), d.Entry, ok, want, found)
			}
			got[d.Item]++
		}
		for i, e := range entries {
			if (e.Weight > 0) != (got[i] > 0) {
				rt.Fatalf("item %d of weight %d has %d tickets", i, e.Weight, got[i])
			}
		}
		if d, ok := l.At(l.Tickets()); ok {
			rt.Fatalf("a ticket past the last draws %+v", d)
		}
		if n := l.Tickets(); n > 1<<16+uint64(len(entries)) {
			rt.Fatalf("%d tickets for %d entries", n, len(entries))
		}
	})
}

func tickets(entries []Entry[int]) map[int]uint64 {
	var l Lottery[int]
	l.Build(entries)
	m := map[int]uint64{}
	for ticket := range l.Tickets() {
		d, _ := l.At(ticket)
		m[d.Item]++
	}
	return m
}

func TestTheOrderOfEntriesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawEntries(rt)
		other := rapid.Permutation(entries).Draw(rt, "order")
		if a, b := tickets(entries), tickets(other); fmt.Sprint(a) != fmt.Sprint(b) {
			rt.Fatalf("%v\n%v", a, b)
		}
	})
}

func TestDoublingAllWeightsMovesNoShareByMoreThanATicket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawEntries(rt)
		var total uint64
		double := slices.Clone(entries)
		for i := range double {
			total += double[i].Weight
			double[i].Weight *= 2
		}
		a, b := tickets(entries), tickets(double)
		for i := range entries {
			// total+1 in place of total: small sums lose up to a part in total.
			if slack := 1 + float64(a[i])/float64(total+1); math.Abs(float64(a[i])-float64(b[i])) > slack {
				rt.Fatalf("item %d: %d tickets, %d after doubling", i, a[i], b[i])
			}
		}
	})
}

func TestSharesOfAMillionDrawsMatchTheWeights(t *testing.T) {
	const draws = 1_000_000
	tables := map[string][]uint64{
		"two nodes alike":               {500, 500},
		"four nodes from 1 to 8":        {1 << 20, 2 << 20, 4 << 20, 8 << 20},
		"one that gives nothing":        {700, 0, 300},
		"weights near the largest":      {math.MaxUint64, math.MaxUint64, 0, math.MaxUint64},
		"a node that hardly gives":      {1, 1 << 30},
		"weights too small to tell off": {1, 2, 1},
	}
	for name, weights := range tables {
		t.Run(name, func(t *testing.T) {
			checkShares(t, weights, draws)
		})
	}
	t.Run("1024 nodes with sparse ids", func(t *testing.T) {
		weights := make([]uint64, 2048)
		for i := 0; i < len(weights); i += 2 {
			weights[i] = uint64(1+i%7) << 20
		}
		checkShares(t, weights, draws)
	})
}

func checkShares(t *testing.T, weights []uint64, draws int) {
	t.Helper()
	var l Lottery[int]
	entries, sum := make([]Entry[int], len(weights)), 0.0
	for i, w := range weights {
		entries[i] = Entry[int]{Item: i, Weight: w}
		sum += float64(w)
	}
	l.Build(entries)
	src, got := rand.New(rand.NewPCG(1, 2)), make([]int, len(weights))
	for range draws {
		d, ok := l.Draw(src)
		if !ok {
			t.Fatal("nobody was drawn")
		}
		got[d.Item]++
	}
	for i, w := range weights {
		share, want := float64(got[i])/float64(draws), float64(w)/sum
		if math.Abs(share-want) > 0.01 || w == 0 && got[i] > 0 {
			t.Errorf("item %d: a share of %.4f, want %.4f", i, share, want)
		}
	}
}

func TestADrawnTableOutlivesTheNextBuild(t *testing.T) {
	var l Lottery[int]
	l.Build([]Entry[int]{{7, 1}, {8, 3}})
	d, _ := l.At(0)
	l.Build([]Entry[int]{{9, 5}, {10, 6}})
	if d.Entries()[0] != (Entry[int]{7, 1}) || d.Entries()[1] != (Entry[int]{8, 3}) || d.Total() != 4 {
		t.Errorf("what was drawn changed: %+v", d)
	}
	if again, _ := l.At(0); again.Item != 9 {
		t.Errorf("the new table draws %+v", again)
	}
}

func TestALotteryWithoutAnyoneToGiveAsksForNoNumber(t *testing.T) {
	var l Lottery[memcg.NodeID]
	if d, ok := l.Draw(nil); ok {
		t.Errorf("an empty lottery drew %+v", d)
	}
	l.Build([]Entry[memcg.NodeID]{{Item: 3}, {Item: 1023}})
	if d, ok := l.Draw(nil); ok {
		t.Errorf("a lottery of weights 0 drew %+v", d)
	}
}

func lotteryOf1024() *Lottery[memcg.NodeID] {
	var l Lottery[memcg.NodeID]
	var entries []Entry[memcg.NodeID]
	for id := memcg.NodeID(0); id <= memcg.MaxNode; id++ {
		entries = append(entries, Entry[memcg.NodeID]{Item: id, Weight: uint64(1 + id*37%1000)})
	}
	l.Build(entries)
	l.Build(entries)
	return &l
}

func TestDrawAndBuildDoNotAllocate(t *testing.T) {
	l, src := lotteryOf1024(), rand.New(rand.NewPCG(1, 2))
	entries := slices.Clone(l.tables[l.now].entries)
	if n := testing.AllocsPerRun(100, func() {
		l.Build(entries)
		l.Draw(src)
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}

// The aim is 50 ns a draw.
func BenchmarkDrawAmong1024(b *testing.B) {
	l, src := lotteryOf1024(), rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		l.Draw(src)
	}
}
