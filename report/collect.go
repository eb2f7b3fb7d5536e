package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// Most is how many cgroups a page shows where nothing else is asked for: what a
// browser opens at once, and a reader looks through.
const Most = 60

// Survey finds out which cgroups of a recording matter. It is a telemetry.Sink.
type Survey struct{ weight map[string]float64 }

// Record weighs a cgroup: by its size, and more where it was acted on or paid
// for refaults.
func (s *Survey) Record(r *telemetry.Record) {
	if s.weight == nil {
		s.weight = map[string]float64{}
	}
	const asMuch = 64 << 20 // bytes that an action or a second of stall counts as
	w := 0.0
	if v, ok := r.Current.Get(); ok {
		w = float64(v) * max(r.Elapsed.Seconds(), 1)
	}
	if r.Acted || r.Want > 0 {
		w += asMuch
	}
	if us, ok := r.Stall.Get(); ok {
		w += float64(us) / 1e6 * asMuch
	}
	s.weight[r.Cgroup.Path] += w
}

// Pick returns the paths of the n cgroups that matter most, and how many others
// there are.
func (s *Survey) Pick(n int) (paths []string, others int) {
	for path := range s.weight {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.weight[b], s.weight[a]), cmp.Compare(a, b))
	})
	others = max(len(paths)-n, 0)
	return paths[:len(paths)-others], others
}

// Page collects what is drawn. It is a telemetry.Sink.
type Page struct {
	Title string // what was recorded
	// Notes are said at the top: that the recording was cut short, for one.
	Notes []string

	clock   clock
	host    hostFigures
	cgroups map[string]*figures
	order   []string
	samples uint64
	// predicted is over all cgroups that were recorded, drawn or not.
	predicted telemetry.Predictions
}

type hostFigures struct {
	total           uint64
	free, available series
	swapUsed        series
	some            series
	stalled         memcg.Field
	at              time.Time
	readings        int
}

// figures are those of one cgroup, by its path: one that comes back at the same
// path goes on in the same plots.
type figures struct {
	path, name, policy, verdict string

	anon, file, other, swap  series // bytes
	high, lent               series
	refaultAnon, refaultFile series // a second
	cost                     series // share of time
	some, full               series // share of time
	fullAt                   memcg.Field
	readAt                   time.Time
	nodes                    map[memcg.NodeID]*series

	first, last            memcg.Field
	refaults               float64
	requests, settings     int
	asked, taken, swapped  float64
	acts                   map[int]*acts // by span
	actFolds               int
	verdicts               []string // by span, the last
	verdictFolds           int
	hasHigh, hasLent, gone bool
}

// NewPage returns a page that shows these cgroups, in this order.
func NewPage(title string, paths []string) *Page {
	p := &Page{Title: title, cgroups: map[string]*figures{}, order: paths}
	for _, path := range paths {
		p.cgroups[path] = &figures{path: path, nodes: map[memcg.NodeID]*series{}, acts: map[int]*acts{}}
	}
	return p
}

// Host takes in a reading of the host.
func (p *Page) Host(at time.Time, h *memcg.HostSample) {
	i := p.clock.span(at)
	f := &p.host
	f.readings++
	if v, ok := h.MemTotal.Get(); ok {
		f.total = v
	}
	p.gauge(&f.free, i, h.MemFree)
	p.gauge(&f.available, i, h.MemAvailable)
	total, okT := h.SwapTotal.Get()
	free, okF := h.SwapFree.Get()
	if okT && okF && total >= free {
		f.swapUsed.add(&p.clock, i, float64(total-free), 1)
	}
	if d, ok := h.Pressure.Some.Total.Since(f.stalled); ok && !f.at.IsZero() {
		f.some.add(&p.clock, i, float64(d)/1e6, at.Sub(f.at).Seconds())
	}
	f.stalled, f.at = h.Pressure.Some.Total, at
}

// Sample takes in what a decision's record does not have: the limit, and full
// pressure.
func (p *Page) Sample(at time.Time, id memcg.ID, s *memcg.Sample) {
	f := p.cgroups[id.Path]
	if f == nil {
		return
	}
	i := p.clock.span(at)
	if high, ok := s.High.Min(s.Max).Bytes(); ok {
		f.high.add(&p.clock, i, float64(high), 1)
		f.hasHigh = true
	}
	if d, ok := s.Pressure.Full.Total.Since(f.fullAt); ok && !f.readAt.IsZero() {
		f.full.add(&p.clock, i, float64(d)/1e6, at.Sub(f.readAt).Seconds())
	}
	f.fullAt, f.readAt = s.Pressure.Full.Total, at
}

// Record takes in a decision and what came of the one before.
func (p *Page) Record(r *telemetry.Record) {
	p.predicted.Record(r)
	f := p.cgroups[r.Cgroup.Path]
	if f == nil {
		return
	}
	i := p.clock.span(r.Time)
	p.samples++
	if f.gone = r.Err != nil; f.gone {
		return
	}
	f.policy, f.name = r.Policy, r.Name
	f.verdicts, f.verdictFolds = foldVerdicts(f.verdicts, p.clock.folds-f.verdictFolds), p.clock.folds
	for len(f.verdicts) <= i {
		f.verdicts = append(f.verdicts, "")
	}
	f.verdict, f.verdicts[i] = r.Verdict, r.Verdict
	p.act(f, i, r)
	if r.Glance {
		return
	}
	if !f.first.Known() {
		f.first = r.Current
	}
	f.last = r.Current
	p.gauge(&f.anon, i, r.Anon)
	p.gauge(&f.file, i, r.File)
	p.gauge(&f.swap, i, r.Swap)
	current, ok1 := r.Current.Get()
	anon, ok2 := r.Anon.Get()
	file, ok3 := r.File.Get()
	if ok1 && ok2 && ok3 {
		f.other.add(&p.clock, i, max(float64(current)-float64(anon)-float64(file), 0), 1)
	}
	if lent, ok := r.Lent.Get(); ok {
		f.lent.add(&p.clock, i, float64(lent), 1)
		f.hasLent = f.hasLent || lent > 0
	}
	if r.Cost.Known {
		f.cost.add(&p.clock, i, r.Cost.Value/100, 1)
	}
	if s := r.Elapsed.Seconds(); s > 0 {
		for _, c := range []struct {
			to    *series
			from  memcg.Field
			scale float64
		}{{&f.refaultAnon, r.RefaultAnon, 1}, {&f.refaultFile, r.RefaultFile, 1}, {&f.some, r.Stall, 1e-6}} {
			if v, ok := c.from.Get(); ok {
				c.to.add(&p.clock, i, float64(v)*c.scale, s)
			}
		}
	}
	f.refaults = f.refaultAnon.total + f.refaultFile.total
	for _, n := range r.Nodes {
		if v, ok := memcg.Sum(n.Anon, n.File).Get(); ok {
			if f.nodes[n.Node] == nil {
				f.nodes[n.Node] = &series{}
			}
			f.nodes[n.Node].add(&p.clock, i, float64(v), 1)
		}
	}
}

func (p *Page) gauge(s *series, i int, f memcg.Field) {
	if v, ok := f.Get(); ok {
		s.add(&p.clock, i, float64(v), 1)
	}
}

func foldVerdicts(v []string, folds int) []string {
	for ; folds > 0; folds-- {
		half := make([]string, (len(v)+1)/2)
		for i, verdict := range v {
			if verdict != "" {
				half[i/2] = verdict
			}
		}
		v = half
	}
	return v
}
