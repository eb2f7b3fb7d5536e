package memcg

import (
	"math"
	"testing"
)

func TestLimitOfC05(t *testing.T) {
	for name, c := range map[string]struct {
		in    uint64
		isMax bool
	}{
		"2^63-1 means no limit":      {math.MaxInt64, true},
		"2^63-4096 means no limit":   {math.MaxInt64 - 4095, true},
		"2^64-1 means no limit":      {math.MaxUint64, true},
		"just below is a number":     {math.MaxInt64 - 4096, false},
		"zero is a limit":            {0, false},
		"an ordinary limit":          {1 << 30, false},
		"a large but finite request": {1 << 60, false},
	} {
		l := LimitOf(c.in)
		b, ok := l.Bytes()
		if l.IsMax() != c.isMax || ok == c.isMax || ok && b != c.in {
			t.Errorf("%s: max %v, bytes %d, %v", name, l.IsMax(), b, ok)
		}
	}
}

func TestNoLimitIsAlwaysWrittenAsTheWord(t *testing.T) {
	if got := string(Unlimited().AppendKernel(nil)); got != "max" {
		t.Errorf("wrote %q", got)
	}
	if got := string(LimitOf(4096).AppendKernel([]byte("x"))); got != "x4096" {
		t.Errorf("wrote %q", got)
	}
}

func TestAnAbsentLimitIsNotUnlimited(t *testing.T) {
	for _, l := range []Limit{{}, NoLimitFile(Unsupported), NoLimitFile(Invalid)} {
		if _, ok := l.Bytes(); ok || l.IsMax() {
			t.Errorf("%v passes for a limit", l)
		}
	}
	if got := NoLimitFile(Unsupported).String(); got != "unsupported" {
		t.Errorf("prints %q", got)
	}
}

func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		got, want Limit
	}{
		"room below a limit":                   {LimitOf(10).Room(Value(4)), LimitOf(6)},
		"no room above it":                     {LimitOf(10).Room(Value(11)), LimitOf(0)},
		"no limit has endless room":            {Unlimited().Room(Field{}), Unlimited()},
		"unknown usage has unknown room":       {LimitOf(10).Room(Absent(Unsupported)), NoLimitFile(Unsupported)},
		"an absent limit has no room to speak": {NoLimitFile(Invalid).Room(Value(1)), NoLimitFile(Invalid)},
		"the tighter of two":                   {LimitOf(10).Min(LimitOf(4)), LimitOf(4)},
		"a number is tighter than none":        {Unlimited().Min(LimitOf(4)), LimitOf(4)},
		"an absent limit does not bind":        {NoLimitFile(Missing).Min(LimitOf(4)), LimitOf(4)},
		"nor on the other side":                {LimitOf(4).Min(NoLimitFile(Missing)), LimitOf(4)},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
