package memcg

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestParseNodeMask(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []NodeID
	}{
		"a range and single nodes": {"0-2,8", []NodeID{0, 1, 2, 8}},
		"sparse ids of a Power9":   {"0,8,252-255\n", []NodeID{0, 8, 252, 253, 254, 255}},
		"the highest id there is":  {"1023", []NodeID{1023}},
		"an empty list is a set":   {"\n", nil},
	} {
		m, err := ParseNodeMask(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := slices.Collect(m.All); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if m.Len() != len(c.want) || m.Empty() != (len(c.want) == 0) {
			t.Errorf("%s: length %d", name, m.Len())
		}
	}
	for _, bad := range []string{"a", "1-", "-1", "3-1", "1024", "0-9999999", "1,,2", "1 2"} {
		if m, err := ParseNodeMask(bad); err == nil {
			t.Errorf("%q was read as %v", bad, m)
		}
	}
}

func anyMask(t *rapid.T, label string) NodeMask {
	return NodesOf(rapid.SliceOf(rapid.Custom(func(t *rapid.T) NodeID {
		return NodeID(rapid.IntRange(0, int(MaxNode)).Draw(t, "id"))
	})).Draw(t, label)...)
}

func TestAMaskSurvivesItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMask(t, "mask")
		back, err := ParseNodeMask(m.String())
		if err != nil || back != m {
			t.Fatalf("%q came back as %q, %v", m, back, err)
		}
	})
}

func TestMaskAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyMask(t, "a"), anyMask(t, "b")
		both, only := a.And(b), a.Without(b)
		for id := range MaxNode + 1 {
			if both.Has(id) != (a.Has(id) && b.Has(id)) || only.Has(id) != (a.Has(id) && !b.Has(id)) {
				t.Fatalf("node %d is wrong in %q and %q of %q, %q", id, both, only, a, b)
			}
		}
		if both.Len()+only.Len() != a.Len() {
			t.Fatalf("%d + %d nodes of %d", both.Len(), only.Len(), a.Len())
		}
	})
}

func TestIdsOutsideTheRangeAreNotInASet(t *testing.T) {
	m := NodesOf(-1, MaxNode+1)
	if !m.Empty() || m.Has(-1) || m.Has(MaxNode+1) {
		t.Errorf("got %q", m)
	}
}

func FuzzParseNodeMask(f *testing.F) {
	for _, s := range []string{"", "0-3", "0,8,252-255", "1023", "3-1", "x", "0-,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseNodeMask(s)
		if err != nil {
			return
		}
		if back, err := ParseNodeMask(m.String()); err != nil || back != m {
			t.Fatalf("%q gave %q, which gave %q, %v", s, m, back, err)
		}
	})
}
