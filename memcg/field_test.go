package memcg

import (
	"math"
	"testing"
)

func TestAnAbsentFieldIsNeverZero(t *testing.T) {
	var zero Field
	if zero.State() != Missing {
		t.Errorf("the zero Field is %v, want missing", zero.State())
	}
	for _, f := range []Field{zero, Absent(Unsupported), Absent(Invalid), Absent(Present)} {
		if v, ok := f.Get(); ok {
			t.Errorf("%v gave the value %d", f, v)
		}
		if f == Value(0) {
			t.Errorf("%v compares equal to a present 0", f)
		}
	}
}

func TestSince(t *testing.T) {
	for name, c := range map[string]struct {
		now, before Field
		want        uint64
		ok          bool
	}{
		"a counter that grew":                        {Value(7), Value(5), 2, true},
		"a counter that stood still":                 {Value(5), Value(5), 0, true},
		"a counter that went back has no delta":      {Value(4), Value(5), 0, false},
		"no delta from a reading that was missing":   {Value(4), Field{}, 0, false},
		"no delta to a reading that is unsupported":  {Absent(Unsupported), Value(4), 0, false},
		"the whole range of a counter is a delta":    {Value(math.MaxUint64), Value(0), math.MaxUint64, true},
		"an invalid reading ends a delta":            {Absent(Invalid), Value(4), 0, false},
		"two readings that were both missing are no": {Field{}, Field{}, 0, false},
	} {
		if d, ok := c.now.Since(c.before); d != c.want || ok != c.ok {
			t.Errorf("%s: got %d, %v, want %d, %v", name, d, ok, c.want, c.ok)
		}
	}
}

func TestChange(t *testing.T) {
	for name, c := range map[string]struct {
		now, before Field
		want        int64
		ok          bool
	}{
		"a gauge that fell":                      {Value(3), Value(5), -2, true},
		"a gauge that rose":                      {Value(5), Value(3), 2, true},
		"an absent gauge has no change":          {Value(5), Field{}, 0, false},
		"a change that does not fit is none":     {Value(math.MaxUint64), Value(0), 0, false},
		"a fall that does not fit is none":       {Value(0), Value(math.MaxUint64), 0, false},
		"the largest change that fits is a fact": {Value(math.MaxInt64), Value(0), math.MaxInt64, true},
	} {
		if d, ok := c.now.Change(c.before); d != c.want || ok != c.ok {
			t.Errorf("%s: got %d, %v, want %d, %v", name, d, ok, c.want, c.ok)
		}
	}
}

func TestSumNeedsEveryPart(t *testing.T) {
	for name, c := range map[string]struct {
		got, want Field
	}{
		"parts that are all there":           {Sum(Value(1), Value(2)), Value(3)},
		"one missing part and there is none": {Sum(Value(1), Absent(Unsupported)), Absent(Unsupported)},
		"no parts are a present zero":        {Sum(), Value(0)},
		"an overflow is invalid":             {Sum(Value(math.MaxUint64), Value(1)), Absent(Invalid)},
		"known parts only":                   {SumKnown(Value(1), Absent(Unsupported), Value(2)), Value(3)},
		"no known part":                      {SumKnown(Absent(Missing), Absent(Unsupported)), Absent(Unsupported)},
		"no known part, none at all":         {SumKnown(), Field{}},
		"known parts that overflow":          {SumKnown(Value(math.MaxUint64), Value(1)), Absent(Invalid)},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

func TestStatsKeepTheirStates(t *testing.T) {
	var s Stats
	if st := s.Get(StatAnon).State(); st != Missing {
		t.Errorf("an unread key is %v, want missing", st)
	}
	s.SetAll(Unsupported)
	s.Set(StatAnon, Value(0))
	if s.Get(StatAnon) != Value(0) || s.Get(StatFile) != Absent(Unsupported) {
		t.Errorf("got anon %v and file %v", s.Get(StatAnon), s.Get(StatFile))
	}
	if !s.Valid() {
		t.Error("a reading without an invalid key is not valid")
	}
	s.Set(StatFile, Absent(Invalid))
	if s.Valid() {
		t.Error("a reading with an invalid key is valid")
	}
}

func TestEveryStatHasTheKernelsName(t *testing.T) {
	for k := range NumStats {
		name := k.String()
		if name == "" {
			t.Fatalf("stat %d has no name", k)
		}
		if back, ok := StatNamed([]byte(name)); !ok || back != k {
			t.Errorf("%s leads back to %v, %v", name, back, ok)
		}
	}
	name := []byte("workingset_refault_anon")
	if n := testing.AllocsPerRun(100, func() { StatNamed(name) }); n != 0 {
		t.Errorf("looking a key up allocates %v times", n)
	}
}

func TestSampleCopyIsIndependent(t *testing.T) {
	a := Sample{Nodes: []NodeStats{{ID: 1}, {ID: 8}}}
	a.Nodes[1].Set(NodeAnon, Value(3))
	var b Sample
	b.CopyFrom(&a)
	a.Nodes[1].Set(NodeAnon, Value(4))
	n, ok := b.Node(8)
	if !ok || n.Get(NodeAnon) != Value(3) {
		t.Errorf("the copy changed with the original: %v %v", n, ok)
	}
	if _, ok := b.Node(2); ok {
		t.Error("a node that is not listed was found")
	}
}
