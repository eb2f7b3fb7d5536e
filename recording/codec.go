package recording

import (
	"errors"
	"math"
	"time"

	"github.com/memagent/memagent/memcg"
)

// codec turns an event into a list of numbers, and such a list back into the
// event: the same function names the fields for both directions, so that they
// cannot drift apart.
type codec struct {
	v       []uint64
	reading bool
	at      int   // the next number to read
	err     error // a list that is no event
	// number and word translate texts.
	number func(string) uint64
	word   func(uint64) (string, bool)
	// stats are the keys of memory.stat in the order of the file; what this
	// program does not know is memcg.NumStats. perNode is how many figures the
	// file has of each node.
	stats   []memcg.Stat
	perNode int
}

var errShort = errors.New("a frame has fewer figures than it should have")

func (c *codec) next() uint64 {
	if c.at >= len(c.v) {
		if c.err == nil {
			c.err = errShort
		}
		return 0
	}
	c.at++
	return c.v[c.at-1]
}

func num[T ~int | ~int16 | ~int64 | ~uint8 | ~uint64](c *codec, p *T) {
	if c.reading {
		*p = T(c.next())
		return
	}
	c.v = append(c.v, uint64(*p))
}

func (c *codec) flag(p *bool) {
	v := uint64(0)
	if *p {
		v = 1
	}
	num(c, &v)
	*p = v == 1
}

func (c *codec) real(p *float64) {
	v := math.Float64bits(*p)
	num(c, &v)
	*p = math.Float64frombits(v)
}

func str[T ~string](c *codec, p *T) {
	if !c.reading {
		c.v = append(c.v, c.number(string(*p)))
		return
	}
	s, ok := c.word(c.next())
	if !ok && c.err == nil {
		c.err = errors.New("a frame names a text that was not introduced")
	}
	*p = T(s)
}

// fault is nil where the text's number is 0, which no text has.
func (c *codec) fault(p *error) {
	if !c.reading {
		if *p == nil {
			c.v = append(c.v, 0, 0)
			return
		}
		e := keep(*p)
		c.v = append(c.v, c.number(e.Text), e.Kinds)
		return
	}
	n, kinds := c.next(), c.next()
	if *p = nil; n == 0 {
		return
	}
	s, ok := c.word(n)
	if !ok && c.err == nil {
		c.err = errors.New("a frame names an error that was not introduced")
	}
	*p = &Error{s, kinds}
}

func (c *codec) field(f *memcg.Field) {
	if !c.reading {
		v, _ := f.Get()
		c.v = append(c.v, uint64(f.State()), v)
		return
	}
	state, v := memcg.State(c.next()), c.next()
	switch {
	case state == memcg.Present:
		*f = memcg.Value(v)
	case state < memcg.Present:
		*f = memcg.Absent(state)
	default:
		c.err = errors.New("a frame has a state that does not exist")
	}
}

// noLimit is a state beside those of memcg.State: "max".
const noLimit = uint64(memcg.Present) + 1

func (c *codec) limit(l *memcg.Limit) {
	if !c.reading {
		state := uint64(l.State())
		v, _ := l.Bytes()
		if l.IsMax() {
			state = noLimit
		}
		c.v = append(c.v, state, v)
		return
	}
	state, v := c.next(), c.next()
	switch {
	case state == noLimit:
		*l = memcg.Unlimited()
	case state == uint64(memcg.Present):
		*l = memcg.LimitOf(v)
	case state < noLimit:
		*l = memcg.NoLimitFile(memcg.State(state))
	default:
		c.err = errors.New("a frame has a limit that does not exist")
	}
}

const maskWords = (int(memcg.MaxNode) + 64) / 64

func (c *codec) mask(m *memcg.NodeMask) {
	var w [maskWords]uint64
	if !c.reading {
		for id := range m.All {
			w[id/64] |= 1 << (id % 64)
		}
		c.v = append(c.v, w[:]...)
		return
	}
	*m = memcg.NodeMask{}
	for i := range w {
		bits := c.next()
		for b := range 64 {
			if bits&(1<<b) != 0 {
				m.Add(memcg.NodeID(i*64 + b))
			}
		}
	}
}

func (c *codec) id(id *memcg.ID) {
	str(c, &id.Path)
	num(c, &id.Inode)
}

func (c *codec) swappiness(s *memcg.Swappiness) {
	v, ok := s.Get()
	if !ok {
		v = -1
	}
	num(c, &v)
	*s = memcg.SwappinessOf(v)
}

func (c *codec) span(d *time.Duration) { num(c, d) }

// list is a slice whose entries are each at least one number.
func list[T any](c *codec, s *[]T, each func(*codec, *T)) {
	n := len(*s)
	num(c, &n)
	if !c.reading {
		for i := range *s {
			each(c, &(*s)[i])
		}
		return
	}
	if n < 0 || n > len(c.v)-c.at {
		c.err = errors.New("a frame has a list that is longer than itself")
	}
	// One after the other: a frame that lies about n must not cost memory.
	*s = (*s)[:0]
	for i := 0; i < n && c.err == nil; i++ {
		var zero T
		*s = append(*s, zero)
		each(c, &(*s)[i])
	}
}
