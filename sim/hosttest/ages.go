package hosttest

import (
	"errors"
	"testing"

	"github.com/memagent/memagent/memcg"
)

// noAges reports whether a host does not tell ages, and says so as it must.
func noAges(err error) bool {
	return errors.Is(err, memcg.ErrUnsupported) || errors.Is(err, memcg.ErrDenied)
}

func generationsInOrder(t *testing.T, b Bench) {
	marker := memcg.Generation{Node: 1, Seq: 7}
	gens, err := b.Host.Generations(b.find(t, b.Busy), []memcg.Generation{marker})
	if len(gens) == 0 || gens[0] != marker {
		t.Fatalf("Generations did not append to %v: %v, %v", marker, gens, err)
	}
	gens = gens[1:]
	if noAges(err) {
		if len(gens) != 0 {
			t.Errorf("%v came with %v", gens, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(gens) == 0 {
		t.Errorf("%s has memory and no generations", b.Busy)
	}
	for i, g := range gens {
		last := i+1 == len(gens) || gens[i+1].Seq != g.Seq+1 || gens[i+1].Node != g.Node
		if g.Evictable && last {
			t.Errorf("the youngest generation of its list can be evicted: %+v", g)
		}
		if !last && gens[i+1].Age > g.Age {
			t.Errorf("%+v is older than the one before it, %+v", gens[i+1], g)
		}
	}
}

func agingAddsGenerations(t *testing.T, b Bench) {
	id := b.find(t, b.Busy)
	before := b.Host.Writes()
	_, err := b.Host.Age(t.Context(), id)
	switch {
	case noAges(err):
		if n := b.Host.Writes(); n != before {
			t.Errorf("%d writes came with %v", n-before, err)
		}
	case err != nil:
		t.Error(err)
	case b.Host.Writes() == before:
		t.Error("nothing was written")
	}
	if b.Observer != nil {
		_, err := b.Observer.Age(t.Context(), id)
		wantKind(t, "Age by an observer", err, memcg.ErrReadOnly)
	}
}
