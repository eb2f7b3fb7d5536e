package numapolicy

import (
	"math"
	"math/bits"
)

// Source gives random numbers. *rand.Rand of math/rand/v2 is one; a source that
// repeats recorded tickets replays a decision.
type Source interface {
	// Uint64N returns a number in [0, n), each as likely as any other. n is
	// never 0.
	Uint64N(n uint64) uint64
}

// ticketShift makes the tickets of one table about 1<<16 in all, as in the
// seed: a share is exact to 1/65536. More would be finer than the weights are;
// fewer would make the one ticket that everybody gets count for more.
const ticketShift = 16

// Entry is one item of a lottery with its weight.
type Entry[T any] struct {
	Item T
	// Weight is what the item's chance is in proportion to, in any unit that
	// all entries share. 0 means that it cannot give and must not be drawn.
	Weight uint64
}

// Drawing is what one draw found, with all that is needed to record it and to
// check it. The zero Drawing is none.
type Drawing[T any] struct {
	Entry[T]
	Ticket uint64 // the number drawn, from 0 to Tickets()-1
	from   *table[T]
}

// Tickets returns how many tickets the table had, 0 for the zero Drawing.
func (d *Drawing[T]) Tickets() uint64 {
	if d.from == nil {
		return 0
	}
	return d.from.tickets()
}

// Total returns the sum of all weights in the table.
func (d *Drawing[T]) Total() uint64 {
	if d.from == nil {
		return 0
	}
	return d.from.total
}

// Entries returns the whole table, without those that cannot give. It is kept in
// the Lottery and stays as it is through the next Build, not the one after.
func (d *Drawing[T]) Entries() []Entry[T] {
	if d.from == nil {
		return nil
	}
	return d.from.entries
}

// Lottery draws items with a chance in proportion to their weights. The zero
// Lottery has no entries. Its table is replaced whole by Build, which leaves
// the table before it untouched, and it allocates only where a table grows.
//
// An item gets weight<<16 / (total+1) tickets and at least one. The seed draws
// from 0..0xffff, whatever the sum of tickets has come to, and takes the number
// one past an entry's last as a hit; here the draw goes over the tickets that
// there are, and each belongs to one entry.
type Lottery[T any] struct {
	tables [2]table[T]
	now    int // of tables, the one that is drawn from
}

// table is one assignment of tickets: entry i has those from ends[i-1] (0 for
// the first) to ends[i]-1. So that a search begins near its end, guide has the
// entry of every ticket that is a multiple of 1<<shift, and the last entry
// behind them; there are about as many as entries.
type table[T any] struct {
	entries []Entry[T]
	ends    []uint64
	guide   []int32
	shift   int
	total   uint64
}

// Build replaces the table by one for the given entries. They are copied.
func (l *Lottery[T]) Build(entries []Entry[T]) {
	next := 1 - l.now
	t := &l.tables[next]
	t.entries, t.ends, t.guide, t.total = t.entries[:0], t.ends[:0], t.guide[:0], 0
	for _, e := range entries {
		if e.Weight > 0 {
			t.entries = append(t.entries, e)
			t.total = addSaturated(t.total, e.Weight)
		}
	}
	var end uint64
	for _, e := range t.entries {
		end += ticketsOf(e.Weight, t.total)
		t.ends = append(t.ends, end)
	}
	if n := len(t.ends); n > 0 {
		t.shift = bits.Len64(end / uint64(n))
		for i, at := 0, uint64(0); i < n; i++ {
			for ; at < t.ends[i]; at += 1 << t.shift {
				t.guide = append(t.guide, int32(i))
			}
		}
		t.guide = append(t.guide, int32(n-1))
	}
	l.now = next
}

// ticketsOf returns the tickets of one weight > 0 that is part of total.
func ticketsOf(weight, total uint64) uint64 {
	hi, lo := bits.Mul64(weight, 1<<ticketShift)
	n, _ := bits.Div64(hi, lo, total+1)
	return max(n, 1)
}

// addSaturated adds weights. The sum stops one below the largest number, so
// that total+1 exists; shares of such weights stay in proportion.
func addSaturated(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 || sum == math.MaxUint64 {
		return math.MaxUint64 - 1
	}
	return sum
}

// tickets is the number of tickets in the table.
func (t *table[T]) tickets() uint64 {
	if len(t.ends) == 0 {
		return 0
	}
	return t.ends[len(t.ends)-1]
}

// Tickets returns the number of tickets in the table, 0 where nobody can give.
func (l *Lottery[T]) Tickets() uint64 { return l.tables[l.now].tickets() }

// Draw draws a ticket from the source and returns whose it is; ok is false
// where nobody can give, and the source is not asked then. It does not
// allocate.
func (l *Lottery[T]) Draw(from Source) (d Drawing[T], ok bool) {
	n := l.Tickets()
	if n == 0 {
		return d, false
	}
	return l.At(from.Uint64N(n))
}

// At returns whose the given ticket is; ok is false where there is no such
// ticket.
func (l *Lottery[T]) At(ticket uint64) (d Drawing[T], ok bool) {
	t := &l.tables[l.now]
	if ticket >= l.Tickets() {
		return d, false
	}
	bucket := ticket >> t.shift
	at, last := int(t.guide[bucket]), int(t.guide[bucket+1])
	for at < last {
		if mid := (at + last) / 2; ticket < t.ends[mid] {
			last = mid
		} else {
			at = mid + 1
		}
	}
	return Drawing[T]{Entry: t.entries[at], Ticket: ticket, from: t}, true
}
