package memcg

import "testing"

func TestWhatOnlyMovedToASlowerNodeWasNotFreed(t *testing.T) {
	for name, c := range map[string]struct{ taken, moved, want Field }{
		"some of it moved":               {Value(100), Value(40), Value(60)},
		"all of it moved":                {Value(100), Value(100), Value(0)},
		"c32: 1 GiB, and memory.current": {Value(1 << 30), Value(262144 * 4096), Value(0)},
		"counters that were not in step": {Value(100), Value(101), Value(0)},
		"a kernel without demotion":      {Value(100), Absent(Unsupported), Value(100)},
		"what moved was not read":        {Value(100), Field{}, Field{}},
		"what was taken was not read":    {Absent(Invalid), Value(40), Absent(Invalid)},
	} {
		if got := (&Outcome{Reclaimed: c.taken, Demoted: c.moved}).Freed(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestUnsetSwappinessIsNotZero(t *testing.T) {
	for name, c := range map[string]struct {
		s    Swappiness
		want string
		set  bool
	}{
		"nothing is passed":         {Swappiness{}, "kernel", false},
		"zero is passed":            {SwappinessOf(0), "0", true},
		"the kernel's highest":      {SwappinessOf(200), "200", true},
		"anon only":                 {SwappinessOf(SwappinessMax), "max", true},
		"below the range: nothing":  {SwappinessOf(-1), "kernel", false},
		"beyond the range: nothing": {SwappinessOf(202), "kernel", false},
	} {
		if _, set := c.s.Get(); c.s.String() != c.want || set != c.set {
			t.Errorf("%s: %q, set %v", name, c.s, set)
		}
	}
	if (Swappiness{}) == SwappinessOf(0) {
		t.Error("unset and 0 are the same")
	}
}
