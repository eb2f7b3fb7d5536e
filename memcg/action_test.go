package memcg

import "testing"

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
