package report

import (
	"fmt"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// acts are the actions of one span of time: each one is counted, and the words
// of the first few are kept.
type acts struct {
	requests, wishes, settings int // carried out, held back, knobs written
	asked, taken, swapped      float64
	words                      []string
}

// fewWords is how many actions of a span are told in words.
const fewWords = 4

func (a *acts) say(at time.Time, text string) {
	if len(a.words) < fewWords {
		a.words = append(a.words, at.Format("15:04:05")+" "+text)
	}
}

func (a *acts) add(b *acts) {
	a.requests, a.wishes, a.settings = a.requests+b.requests, a.wishes+b.wishes, a.settings+b.settings
	a.asked, a.taken, a.swapped = a.asked+b.asked, a.taken+b.taken, a.swapped+b.swapped
	a.words = append(a.words, b.words[:min(len(b.words), fewWords-len(a.words))]...)
}

// foldActs makes two spans into one for as often as the clock did.
func (f *figures) foldActs(folds int) {
	for ; f.actFolds < folds; f.actFolds++ {
		half := map[int]*acts{}
		for span := range spans { // in order, so that the first words stay
			if a := f.acts[span]; a == nil {
				continue
			} else if half[span/2] == nil {
				half[span/2] = a
			} else {
				half[span/2].add(a)
			}
		}
		f.acts = half
	}
}

// act notes what a record tells of actions.
func (p *Page) act(f *figures, i int, r *telemetry.Record) {
	f.foldActs(p.clock.folds)
	if r.Want == 0 && r.Done == nil && len(r.Settings) == 0 {
		return
	}
	a := f.acts[i]
	if a == nil {
		a = &acts{}
		f.acts[i] = a
	}
	switch {
	case r.Acted:
		a.requests++
		f.requests++
		a.asked += float64(r.Want)
		f.asked += float64(r.Want)
		a.say(r.Time, fmt.Sprintf("reclaim %s, swappiness %s (%s)", telemetry.Bytes(r.Want), r.Swappiness, r.Rule))
	case r.Want > 0:
		a.wishes++
		a.say(r.Time, fmt.Sprintf("would reclaim %s (%s), held back: %s", telemetry.Bytes(r.Want), r.Rule, r.Held))
	}
	if r.Done != nil {
		taken, swapped := measured(r.Done.Reclaimed), measured(r.Done.SwapOut)
		a.taken, a.swapped = a.taken+taken, a.swapped+swapped
		f.taken, f.swapped = f.taken+taken, f.swapped+swapped
	}
	for _, s := range r.Settings {
		a.settings++
		f.settings++
		value := s.Value
		if value == "" {
			value = "what it was"
		}
		a.say(r.Time, fmt.Sprintf("%s to %s: %s (%s)", s.Knob, value, s.Outcome, s.Why))
	}
}

func measured(f memcg.Field) float64 {
	v, _ := f.Get() // what is not known adds nothing to a sum of what was measured
	return float64(v)
}
