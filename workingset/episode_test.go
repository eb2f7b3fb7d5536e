package workingset

import (
	"testing"
	"time"
)

// A paced loop on a slow machine: the pass after the move reads all that was out, at the rate that
// was there before. That is what room was made for.
func TestAMoveIsJudgedByWhatComesBackBeyondWhatWasOut(t *testing.T) {
	const need = 10 << 20 // bytes that are still out, as far as is known
	for _, c := range []struct {
		name     string
		trial    bool
		refaults []float64 // pages, a second each
		want     phase
	}{
		{"what was out comes back at the old rate", false, []float64{5000, 5000, 5000}, settling},
		{"and then nothing", false, []float64{5000, 5000, 5000, 4000, 0, 0}, resting},
		{"and on and on", false, []float64{5000, 5000, 5000, 5000, 5000, 5000}, moving},
		{"nothing comes back from the first", false, []float64{0, 0}, resting},
		{"of a trial nothing is known to be out", true, []float64{5000, 5000}, moving},
	} {
		t.Run(c.name, func(t *testing.T) {
			var st State
			v := view{in: &Input{Elapsed: time.Second}, page: pageSize}
			v.d.seconds = 1
			st.episode = episode{phase: settling, kind: KindMoveAnon, budget: 64 << 20, spent: 20 << 20, limit: 20 << 20, before: 5000, turn: 1, owed: 19000}
			if c.trial {
				st.episode.trial, st.episode.owed = true, 0
			}
			for _, n := range c.refaults {
				v.d.refault[file] = n
				st.episode.pass(&v)
				st.episode.settled(&st, need)
			}
			if got := st.episode.phase; got != c.want {
				t.Errorf("phase %d, want %d", got, c.want)
			}
		})
	}
}
