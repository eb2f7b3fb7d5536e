package workload

import (
	"errors"
	"io"
	"math"
	"testing"
)

func TestZipfGivesEachRankItsShare(t *testing.T) {
	const n, draws = 100, 200_000
	for _, s := range []float64{0, 0.1, 0.7, 1, 1.3} {
		z := newZipf(n, s)
		var got [n]int
		for i := range draws {
			got[z.draw((float64(i)+0.5)/draws)]++
		}
		var sum float64
		for i := range n {
			sum += math.Pow(float64(i+1), -s)
		}
		for i := range n {
			want := draws * math.Pow(float64(i+1), -s) / sum
			if math.Abs(float64(got[i])-want) > 1 {
				t.Fatalf("s=%g: rank %d was drawn %d times, want %.1f", s, i+1, got[i], want)
			}
		}
	}
}

func TestZipfStaysInItsTable(t *testing.T) {
	z := newZipf(3, 1.3)
	for _, x := range []float64{0, math.SmallestNonzeroFloat64, math.Nextafter(1, 0), 1} {
		if i := z.draw(x); i < 0 || i > 2 {
			t.Errorf("draw(%g) is %d", x, i)
		}
	}
}

func TestProgramsGoOnUntilNobodyListens(t *testing.T) {
	for _, args := range [][]string{
		{"zipf", "--size", "64KiB", "--s", "0.7"},
		{"hotcold", "--cold", "64KiB", "--window", "48KiB", "--hot", "16KiB", "--loops", "100"},
	} {
		if err := Run(args, &failing{left: 10}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: got %v", args[0], err)
		}
	}
}
