package telemetry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/memagent/memagent/memcg"
)

// Prediction is what a policy that only observes would do. It is no measurement:
// what observing cannot see is what would have come back.
type Prediction struct {
	Policy string `json:"policy"`
	// Cgroups is how many cgroups the policy would act on, Resident what they
	// hold, in bytes. One with another inside that has a policy is left out: it
	// would be left to that.
	Cgroups  int    `json:"cgroups"`
	Resident uint64 `json:"resident"`
	// Asking is how many of them would be asked for memory now, and Next for how
	// many bytes, as the latest decision on each says.
	Asking int    `json:"asking"`
	Next   uint64 `json:"next"`
	// Most is a bound from above on the bytes that would be out by now: all that
	// was wished for since the start, as if each wish had been had in full and
	// nothing had come back, and of each cgroup no more than it holds above its
	// floor. Requests that are carried out end earlier, at the first cost.
	Most uint64 `json:"most"`
}

// Predictions adds up the wishes of what is only observed. It is a Sink, one for all
// that shows them; it may be asked from any goroutine. A nil one has none.
type Predictions struct {
	mu      sync.Mutex
	cgroups map[memcg.ID]foreseen
}

// foreseen is one cgroup that is only observed.
type foreseen struct {
	policy                     string
	current, floor, next, most uint64
}

// Record takes a record.
func (p *Predictions) Record(r *Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Mode != Observe || r.gone() {
		delete(p.cgroups, r.Cgroup)
		return
	}
	if r.Err != nil {
		return // it stays as it was seen last
	}
	f := p.cgroups[r.Cgroup]
	if f.policy != r.Policy {
		f = foreseen{policy: r.Policy}
	}
	if v, ok := r.Current.Get(); ok {
		f.current = v
	}
	if !r.Glance {
		f.floor, f.next = r.Floor, 0
	}
	if r.Held == HeldByMode {
		f.next = r.Want
		f.most += min(r.Want, f.above()-min(f.most, f.above()))
	}
	f.most = min(f.most, f.above())
	if p.cgroups == nil {
		p.cgroups = make(map[memcg.ID]foreseen)
	}
	p.cgroups[r.Cgroup] = f
}

// above is what the cgroup holds above its floor.
func (f *foreseen) above() uint64 { return f.current - min(f.current, f.floor) }

// ByPolicy returns a prediction for each policy that observes a cgroup, by name;
// none where everything is acted on.
func (p *Predictions) ByPolicy() []Prediction {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	type one struct {
		path string
		foreseen
	}
	all := make([]one, 0, len(p.cgroups))
	for id, f := range p.cgroups {
		all = append(all, one{id.Path, f})
	}
	p.mu.Unlock()
	// With each part of a path ended, those inside come right behind it.
	slices.SortFunc(all, func(a, b one) int { return cmp.Compare(a.path+"/", b.path+"/") })
	by := make(map[string]*Prediction)
	var out []*Prediction
	for i := range all {
		f := &all[i]
		if i+1 < len(all) && strings.HasPrefix(all[i+1].path, f.path+"/") {
			continue
		}
		sum := by[f.policy]
		if sum == nil {
			sum = &Prediction{Policy: f.policy}
			by[f.policy] = sum
			out = append(out, sum)
		}
		sum.Cgroups++
		sum.Resident += f.current
		sum.Next += f.next
		sum.Most += f.most
		if f.next > 0 {
			sum.Asking++
		}
	}
	slices.SortFunc(out, func(a, b *Prediction) int { return cmp.Compare(a.Policy, b.Policy) })
	list := make([]Prediction, len(out))
	for i, sum := range out {
		list[i] = *sum
	}
	return list
}

// Total adds predictions up, under no policy's name.
func Total(all []Prediction) (sum Prediction) {
	for _, p := range all {
		sum.Cgroups += p.Cgroups
		sum.Resident += p.Resident
		sum.Asking += p.Asking
		sum.Next += p.Next
		sum.Most += p.Most
	}
	return sum
}

// Predict says predictions for people: a line for all, and one for each policy
// where there are several. None gives no line.
func Predict(all []Prediction) []string {
	if len(all) == 0 {
		return nil
	}
	sum := Total(all)
	lines := []string{"prediction, nothing of it was done: " + sum.text()}
	if len(all) > 1 {
		for i := range all {
			lines = append(lines, "  policy "+all[i].Policy+": "+all[i].text())
		}
	}
	return lines
}

func (p *Prediction) text() string {
	text := fmt.Sprintf("%d of %d cgroups would be asked for %s now; of %s resident at most %s", p.Asking, p.Cgroups, Bytes(p.Next), Bytes(p.Resident), Bytes(p.Most))
	if part := p.Part(); part != "" {
		text += " (" + part + ")"
	}
	return text + " would be out by now"
}

// Part says Most as a part of Resident, "" where nothing is.
func (p *Prediction) Part() string {
	if p.Resident == 0 {
		return ""
	}
	return Percent(float64(p.Most) / float64(p.Resident))
}
