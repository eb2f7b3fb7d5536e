package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memagent/memagent/telemetry"
)

// unit is what the figures of a plot are.
type unit string

const (
	inBytes  unit = "bytes"
	asShare  unit = "share" // of time, 1 is all of it
	inEvents unit = "/s"
)

// words renders a figure for people.
func (u unit) words(v float64) string {
	switch u {
	case inBytes:
		return telemetry.Bytes(uint64(max(v, 0)))
	case asShare:
		return telemetry.Percent(v)
	}
	decimals := 0
	if v < 10 {
		decimals = 2
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + string(u)
}

// line is one figure of a plot. Its class gives it its colour.
type line struct {
	name, class string
	values      []float64
	known       []bool
	stacked     bool // an area on top of those before it
}

// mark is a place on the axis of time where something was done.
type mark struct {
	Left  float64 // percent of the width
	Class string
	Text  string
}

// plot is one picture.
type plot struct {
	Title string
	unit  unit
	lines []line
	Marks []mark
	clock *clock
}

// What a plot is drawn in: a box of one unit for each span, and height units
// high, stretched to whatever room there is. Letters stand outside of it, since
// they must not be stretched.
const height = 100

// Keys are the lines of the legend: class and name.
func (p *plot) Keys() (list []struct{ Class, Name string }) {
	for _, l := range p.lines {
		list = append(list, struct{ Class, Name string }{l.class, l.name})
	}
	return list
}

// top returns the highest figure, and a round one above it.
func (p *plot) top() (most, round float64) {
	stack := make([]float64, p.clock.used())
	for _, l := range p.lines {
		for i, v := range l.values {
			if !l.known[i] {
				continue
			}
			if l.stacked {
				stack[i] += v
				v = stack[i]
			}
			most = max(most, v)
		}
	}
	return most, roundUp(most, p.unit)
}

// roundUp returns 1, 2 or 5 times a power of ten that is not below v, of bytes a
// power of two.
func roundUp(v float64, u unit) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		switch u {
		case inBytes:
			return 1 << 20
		case asShare:
			return 0.01
		}
		return 1
	}
	if u == inBytes {
		p := math.Exp2(math.Floor(math.Log2(v)))
		for _, step := range []float64{1, 1.25, 1.5, 1.75, 2} {
			if v <= step*p {
				return step * p
			}
		}
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5, 10} {
		if v <= step*p {
			return step * p
		}
	}
	return 10 * p
}

// Describe is what somebody hears who cannot see the plot.
func (p *plot) Describe() string {
	most, _ := p.top()
	return fmt.Sprintf("%s, %s to %s, at most %s", p.Title, p.clock.start.Format(timeForm), p.clock.last.Format(timeForm), p.unit.words(most))
}

// SVG returns the picture without its letters.
func (p *plot) SVG() template.HTML {
	_, top := p.top()
	n := p.clock.used()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`, n, height, template.HTMLEscapeString(p.Describe()))
	for _, y := range []int{0, height / 2, height} {
		fmt.Fprintf(&b, `<path class="grid" d="M0 %dH%d"/>`, y, n)
	}
	floor := make([]float64, n)
	for _, l := range p.lines {
		if l.stacked {
			fmt.Fprintf(&b, `<path class="fill %s" d="%s"/>`, l.class, area(l, floor, top))
		}
	}
	for _, l := range p.lines {
		if !l.stacked {
			fmt.Fprintf(&b, `<path class="line %s" d="%s"/>`, l.class, trace(l, top))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // numbers, classes of this file, and what was escaped
}

func y(v, top float64) string {
	return strconv.FormatFloat(height-height*min(max(v/top, 0), 1), 'f', 2, 64)
}

// trace draws a figure as steps, and nothing where it is not known.
func trace(l line, top float64) string {
	var b strings.Builder
	drawn := false
	for i, v := range l.values {
		switch {
		case !l.known[i]:
			drawn = false
			continue
		case drawn:
			fmt.Fprintf(&b, "V%s", y(v, top))
		default:
			fmt.Fprintf(&b, "M%d %s", i, y(v, top))
		}
		fmt.Fprintf(&b, "H%d", i+1)
		drawn = true
	}
	return b.String()
}

// area draws a figure on top of floor, and raises floor by it.
func area(l line, floor []float64, top float64) string {
	var b strings.Builder
	for i := 0; i < len(l.values); {
		if !l.known[i] {
			i++
			continue
		}
		first := i
		fmt.Fprintf(&b, "M%d %s", i, y(floor[i], top))
		for ; i < len(l.values) && l.known[i]; i++ {
			fmt.Fprintf(&b, "V%sH%d", y(floor[i]+l.values[i], top), i+1)
		}
		for j := i - 1; j >= first; j-- {
			fmt.Fprintf(&b, "V%sH%d", y(floor[j], top), j)
			floor[j] += l.values[j]
		}
		b.WriteString("Z")
	}
	return b.String()
}

// label is a text beside a plot, at a percentage of its height or width.
type label struct {
	At   float64
	Text string
}

// YLabels are those of the figures.
func (p *plot) YLabels() []label {
	_, top := p.top()
	return []label{{0, p.unit.words(top)}, {50, p.unit.words(top / 2)}, {100, "0"}}
}

const timeForm = "2006-01-02 15:04:05"

// XLabels are those of time.
func (p *plot) XLabels() (list []label) {
	n := p.clock.used()
	whole := time.Duration(n) * p.clock.width
	form := "15:04:05"
	switch {
	case whole > 48*time.Hour:
		form = "Jan 2 15h"
	case whole > 20*time.Minute:
		form = "15:04"
	}
	for i := range 5 {
		list = append(list, label{float64(i) * 25, p.clock.start.Add(whole * time.Duration(i) / 4).Format(form)})
	}
	return list
}

// Data is what the script under the pointer reads: figures to four digits, null
// where they are not known.
func (p *plot) Data() (template.JS, error) {
	type one struct {
		Name   string     `json:"n"`
		Values []*float64 `json:"v"`
	}
	_, zone := p.clock.start.Zone()
	data := struct {
		Start  int64  `json:"t"` // milliseconds since 1970, as a clock in the zone shows them
		Width  int64  `json:"w"`
		Unit   unit   `json:"u"`
		Series []*one `json:"s"`
	}{p.clock.start.UnixMilli() + int64(zone)*1000, p.clock.width.Milliseconds(), p.unit, nil}
	for _, l := range p.lines {
		s := &one{Name: l.name}
		for i, v := range l.values {
			var shown *float64
			if l.known[i] {
				v = fourDigits(v)
				shown = &v
			}
			s.Values = append(s.Values, shown)
		}
		data.Series = append(data.Series, s)
	}
	text, err := json.Marshal(data)
	return template.JS(text), err // JSON, whose < is escaped
}

func fourDigits(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
