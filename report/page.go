package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string

	page = template.Must(template.New("page").Parse(pageHTML))
)

// row is a cgroup in the table and its section.
type row struct {
	Anchor                             string
	Path, Name, Policy, Verdict        string
	First, Last, Asked, Taken, Swapped string
	Refaults                           string
	Requests, Settings                 int
	Verdicts                           []stretch
	VerdictKeys                        []string
	Plots                              []*plot
	nothingSeen                        bool
}

// stretch is a time in which one verdict held.
type stretch struct {
	Left, Width   float64 // percent
	Verdict, Text string
}

// Write draws the page. A recording without a sample gives a page that says so.
func (p *Page) Write(w io.Writer) error {
	view := struct {
		Title, From, To, Span string
		Notes                 []string
		Predicted             []prediction
		Samples               uint64
		CSS                   template.CSS
		JS                    template.JS
		Host                  []*plot
		Rows                  []*row
	}{
		Title: p.Title, Notes: p.Notes, Samples: p.samples, CSS: template.CSS(pageCSS), JS: template.JS(pageJS),
	}
	p.clock.widen(p.host.readings)
	if p.clock.used() > 0 {
		view.From, view.To = p.clock.start.Format(timeForm), p.clock.last.Format(timeForm)
		view.Span = p.clock.width.String()
		view.Host = p.hostPlots()
	}
	view.Predicted = predictions(p.predicted.ByPolicy())
	for i, path := range p.order {
		f := p.cgroups[path]
		if r := p.row(i, f); !r.nothingSeen {
			view.Rows = append(view.Rows, r)
		}
	}
	return page.Execute(w, view)
}

// prediction is a line of the table of what was only observed.
type prediction struct {
	Policy                     string
	Cgroups, Asking            int
	Next, Resident, Most, Part string
}

func predictions(all []telemetry.Prediction) (rows []prediction) {
	for i := range all {
		p := &all[i]
		rows = append(rows, prediction{
			Policy: p.Policy, Cgroups: p.Cgroups, Asking: p.Asking,
			Next: telemetry.Bytes(p.Next), Resident: telemetry.Bytes(p.Resident), Most: telemetry.Bytes(p.Most), Part: p.Part(),
		})
	}
	return rows
}

func (p *Page) line(name, class string, s *series, stacked bool) line {
	v, known := s.values(&p.clock)
	return line{name, class, v, known, stacked}
}

func (p *Page) plot(title string, u unit, lines ...line) *plot {
	return &plot{Title: title, unit: u, lines: lines, clock: &p.clock}
}

func (p *Page) hostPlots() []*plot {
	f := &p.host
	return []*plot{
		p.plot("Memory of the host: available and free", inBytes, p.line("available", "c-file", &f.available, false), p.line("free", "c-anon", &f.free, false)),
		p.plot("Swap in use", inBytes, p.line("swap", "c-swap", &f.swapUsed, true)),
		p.plot("Pressure of the host: time in which a task waited for memory", asShare, p.line("some", "c-some", &f.some, false)),
	}
}

func (p *Page) row(i int, f *figures) *row {
	r := &row{
		Anchor: fmt.Sprintf("cg-%d", i+1), Path: telemetry.Name(f.path), Name: f.name, Policy: f.policy, Verdict: f.verdict,
		First: field(f.first), Last: field(f.last), Asked: size(f.asked), Taken: size(f.taken), Swapped: size(f.swapped),
		Refaults: fmt.Sprintf("%.0f", f.refaults), Requests: f.requests, Settings: f.settings,
		nothingSeen: f.verdict == "",
	}
	if f.gone {
		r.Verdict = "gone"
	}
	if r.nothingSeen {
		return r
	}
	resident := p.plot("Resident by type, and what was done", inBytes,
		p.line("anon", "c-anon", &f.anon, true), p.line("file", "c-file", &f.file, true), p.line("other", "c-other", &f.other, true))
	if f.hasHigh {
		resident.lines = append(resident.lines, p.line("limit", "c-limit", &f.high, false))
	}
	resident.Marks = p.marks(f)
	r.Plots = []*plot{resident}
	if len(f.nodes) > 1 {
		byNode := p.plot("Resident by node", inBytes)
		for n, id := range slices.Sorted(maps.Keys(f.nodes)) {
			byNode.lines = append(byNode.lines, p.line(fmt.Sprintf("node %d", id), fmt.Sprintf("c-node%d", n%nodeColours), f.nodes[id], true))
		}
		r.Plots = append(r.Plots, byNode)
	}
	r.Plots = append(r.Plots,
		p.plot("Refaults: pages that came back", inEvents, p.line("anon", "c-anon", &f.refaultAnon, false), p.line("file", "c-file", &f.refaultFile, false)),
		p.plot("Cost of refaults, and pressure: share of time", asShare, p.line("refault cost", "c-cost", &f.cost, false),
			p.line("some", "c-some", &f.some, false), p.line("full", "c-full", &f.full, false)),
		p.plot("Swap", inBytes, p.line("swap", "c-swap", &f.swap, true)))
	if f.hasLent {
		r.Plots = append(r.Plots, p.plot("Lent above memory.high", inBytes, p.line("lent", "c-lent", &f.lent, true)))
	}
	r.Verdicts = p.verdicts(f)
	for _, s := range r.Verdicts {
		if !slices.Contains(r.VerdictKeys, s.Verdict) {
			r.VerdictKeys = append(r.VerdictKeys, s.Verdict)
		}
	}
	return r
}

// nodeColours is how many colours there are for nodes; with more nodes they come
// round again.
const nodeColours = 8

func (p *Page) verdicts(f *figures) (list []stretch) {
	n := p.clock.used()
	v := foldVerdicts(f.verdicts, p.clock.folds-f.verdictFolds)
	for i := 0; i < len(v); {
		j := i + 1
		for j < len(v) && (v[j] == v[i] || v[j] == "") {
			j++
		}
		if v[i] != "" {
			list = append(list, stretch{
				Left: percent(i, n), Width: percent(j-i, n), Verdict: v[i],
				Text: fmt.Sprintf("%s from %s to %s", v[i], p.clock.at(i).Format("15:04:05"), p.clock.at(j).Format("15:04:05")),
			})
		}
		i = j
	}
	return list
}

func percent(i, n int) float64 { return float64(int(10000*float64(i)/float64(max(n, 1)))) / 100 }

// marks are the actions: one for each span with any, and all of them counted.
func (p *Page) marks(f *figures) (list []mark) {
	f.foldActs(p.clock.folds)
	for i := range p.clock.used() {
		a := f.acts[i]
		if a == nil {
			continue
		}
		m := mark{Left: percent(2*i+1, 2*p.clock.used()), Class: "wish"}
		var parts []string
		if a.requests > 0 {
			m.Class = "request"
			parts = append(parts, fmt.Sprintf("%s for %s", many(a.requests, "request"), size(a.asked)))
		}
		if a.taken > 0 {
			parts = append(parts, fmt.Sprintf("%s taken, %s of it to swap", size(a.taken), size(a.swapped)))
		}
		if a.wishes > 0 {
			parts = append(parts, fmt.Sprintf("%d held back", a.wishes))
		}
		if a.settings > 0 {
			m.Class = "setting"
			parts = append(parts, many(a.settings, "limit")+" written")
		}
		if len(parts) == 0 { // an outcome that took nothing
			m.Class = "request"
			parts = append(parts, "a request took nothing")
		}
		text := append([]string{strings.Join(parts, ", ")}, a.words...)
		if more := a.requests + a.wishes + a.settings - len(a.words); more > 0 {
			text = append(text, fmt.Sprintf("and %d more", more))
		}
		m.Text = strings.Join(text, "\n")
		list = append(list, m)
	}
	return list
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func size(v float64) string { return telemetry.Bytes(uint64(max(v, 0))) }

func field(f memcg.Field) string {
	if v, ok := f.Get(); ok {
		return telemetry.Bytes(v)
	}
	return f.State().String()
}
