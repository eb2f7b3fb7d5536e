package telemetry

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/memagent/memagent/memcg"
)

// only is a record of what observing saw.
func only(path, policy string, current, want uint64) *Record {
	r := &Record{Cgroup: memcg.ID{Path: path, Inode: 1}, Policy: policy, Mode: Observe, Verdict: "idle", Current: memcg.Value(current << 20), Want: want << 20, Floor: 10 << 20}
	if want > 0 {
		r.Held = HeldByMode
	}
	return r
}

func TestPredictionsAddUpWhatObservingWouldDo(t *testing.T) {
	acting := only("/acts", "a", 100, 1)
	acting.Mode, acting.Held, acting.Acted = Enforce, "", true
	held := only("/self", "a", 50, 5)
	held.Held = "memagent itself runs in it"
	unreadable := only("/x", "a", 0, 0)
	unreadable.Err = errors.New("denied")
	gone := only("/gone", "a", 0, 0)
	gone.Err = memcg.ErrGone
	glance := only("/x", "a", 90, 2)
	glance.Glance, glance.Floor = true, 0
	for _, c := range []struct {
		name    string
		records []*Record
		want    []Prediction
	}{
		{"nothing was seen", nil, []Prediction{}},
		{"all is acted on", []*Record{acting}, []Prediction{}},
		{"by policy", []*Record{only("/x", "b", 100, 5), only("/y", "a", 60, 0)}, []Prediction{{"a", 1, 60 << 20, 0, 0, 0}, {"b", 1, 100 << 20, 1, 5 << 20, 5 << 20}}},
		{"wishes add up, and the latest one is what would be asked now", []*Record{only("/x", "a", 100, 5), only("/x", "a", 100, 4)}, []Prediction{{"a", 1, 100 << 20, 1, 4 << 20, 9 << 20}}},
		{"at most what is above the floor", []*Record{only("/x", "a", 20, 8), only("/x", "a", 20, 8)}, []Prediction{{"a", 1, 20 << 20, 1, 8 << 20, 10 << 20}}},
		{"what went by itself is not counted", []*Record{only("/x", "a", 100, 50), only("/x", "a", 15, 0)}, []Prediction{{"a", 1, 15 << 20, 0, 0, 5 << 20}}},
		{"below the floor there is nothing", []*Record{only("/x", "a", 5, 3)}, []Prediction{{"a", 1, 5 << 20, 1, 3 << 20, 0}}},
		{"one that has another inside is left to it", []*Record{only("/x", "a", 100, 5), only("/x/y", "b", 90, 4), only("/x-z", "a", 30, 1)}, []Prediction{{"a", 1, 30 << 20, 1, 1 << 20, 1 << 20}, {"b", 1, 90 << 20, 1, 4 << 20, 4 << 20}}},
		{"what enforcing would hold back", []*Record{held}, []Prediction{{"a", 1, 50 << 20, 0, 0, 0}}},
		{"one that cannot be read stays as it was", []*Record{only("/x", "a", 100, 5), unreadable}, []Prediction{{"a", 1, 100 << 20, 1, 5 << 20, 5 << 20}}},
		{"a glance keeps to the floor of the look before", []*Record{only("/x", "a", 100, 5), glance}, []Prediction{{"a", 1, 90 << 20, 1, 2 << 20, 7 << 20}}},
		{"one that is gone", []*Record{only("/gone", "a", 100, 5), gone}, []Prediction{}},
		{"one that another policy took over begins anew", []*Record{only("/x", "a", 100, 5), only("/x", "b", 100, 1)}, []Prediction{{"b", 1, 100 << 20, 1, 1 << 20, 1 << 20}}},
		{"one that is acted on from now on", []*Record{only("/acts", "a", 100, 5), acting}, []Prediction{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Predictions
			for _, r := range c.records {
				p.Record(r)
			}
			if got := p.ByPolicy(); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestNoPredictionIsMoreThanWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Predictions
		held := map[string]uint64{}
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			path := fmt.Sprintf("/%d", rapid.IntRange(0, 3).Draw(t, "cgroup"))
			r := only(path, "p", rapid.Uint64Range(0, 1<<20).Draw(t, "current"), rapid.Uint64Range(0, 1<<40).Draw(t, "want"))
			r.Floor = rapid.Uint64().Draw(t, "floor")
			held[path], _ = r.Current.Get()
			p.Record(r)
		}
		sum, resident := Total(p.ByPolicy()), uint64(0)
		for _, v := range held {
			resident += v
		}
		if sum.Resident != resident || sum.Most > resident || sum.Cgroups != len(held) {
			t.Fatalf("%+v of %d bytes", sum, resident)
		}
	})
}

func TestAPredictionSaysThatItIsOne(t *testing.T) {
	got := Predict([]Prediction{{"a", 2, 200 << 20, 1, 2 << 20, 50 << 20}, {"b", 1, 0, 0, 0, 0}})
	want := []string{
		"prediction, nothing of it was done: 1 of 3 cgroups would be asked for 2 MiB now; of 200 MiB resident at most 50 MiB (25%) would be out by now",
		"  policy a: 1 of 2 cgroups would be asked for 2 MiB now; of 200 MiB resident at most 50 MiB (25%) would be out by now",
		"  policy b: 0 of 1 cgroups would be asked for 0 B now; of 0 B resident at most 0 B would be out by now",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := Predict(nil); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}
