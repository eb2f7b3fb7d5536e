package numapolicy

import (
	"testing"

	"github.com/memagent/memagent/memcg"
)

func TestMemoryHasStayedWhereMoreThanHalfOfItIsThereStill(t *testing.T) {
	size := func(n uint64) memcg.Field { return memcg.Value(n * mib) }
	for _, c := range []struct {
		name       string
		was, still memcg.Field
		want       bool
	}{
		{"all of it", size(64), size(64), true},
		{"a little more than half", size(64), size(33), true},
		{"half", size(64), size(32), false},
		{"none", size(64), size(0), false},
		{"more than there was", size(64), size(90), true},
		{"too little to tell", size(3), size(3), false},
		{"not known before", memcg.Absent(memcg.Missing), size(64), false},
		{"not known after", size(64), memcg.Absent(memcg.Unsupported), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Stayed(c.was, c.still); got != c.want {
				t.Errorf("stayed %t", got)
			}
		})
	}
}
