package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const mib = 1 << 20

// nasty is a path with all that HTML could trip over, which a kernel takes.
const nasty = `/a.slice/<script>alert("1")</script>&'x`

// day feeds a page with hours of a host with two cgroups, and returns it drawn.
func day(t testing.TB, hours int) (*Page, string) {
	t.Helper()
	p := NewPage("a test", []string{"/web", nasty, "/never-seen"})
	p.Notes = []string{"cut <short>"}
	for i := range hours * 720 {
		at := noon.Add(time.Duration(i) * 5 * time.Second)
		p.Host(at, &memcg.HostSample{MemTotal: memcg.Value(1024 * mib), MemFree: memcg.Value(500 * mib), MemAvailable: memcg.Value(700 * mib),
			SwapTotal: memcg.Value(100 * mib), SwapFree: memcg.Value(90 * mib)})
		for _, path := range []string{"/web", nasty, "/left-out"} {
			id := memcg.ID{Path: path, Inode: 1}
			p.Sample(at, id, &memcg.Sample{High: memcg.LimitOf(200 * mib), Max: memcg.Unlimited()})
			r := telemetry.Record{
				Time: at, Cgroup: id, Policy: "all", Verdict: []string{"fits", "file-thrash"}[i/360%2], Rule: "squeeze",
				Current: memcg.Value(160 * mib), Anon: memcg.Value(uint64(50+i%50) * mib), File: memcg.Value(50 * mib), Swap: memcg.Value(uint64(i%100) * mib),
				RefaultAnon: memcg.Value(10), RefaultFile: memcg.Value(uint64(i % 7)), Stall: memcg.Value(50_000), Elapsed: 5 * time.Second,
				Cost: memcg.Term{Value: 1.5, Known: true}, Lent: memcg.Value(uint64(i%3) * mib),
				Nodes: []telemetry.NodeUse{{Node: 0, Anon: memcg.Value(40 * mib), File: memcg.Value(mib)}, {Node: 2, Anon: memcg.Value(20 * mib), File: memcg.Value(mib)}},
			}
			if i%100 == 99 {
				r.Want, r.Acted = mib, true
				r.Done = &memcg.Outcome{Reclaimed: memcg.Value(mib), SwapOut: memcg.Value(0)}
			}
			if i%300 == 0 {
				r.Settings = []telemetry.Setting{{Knob: memcg.KnobHigh, Value: "123", Why: "lend", Outcome: "written"}}
			}
			p.Record(&r)
		}
	}
	return p, draw(t, p)
}

func draw(t testing.TB, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAShortRecordingIsDrawnInLinesAndNotInDashes(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{time.Second: time.Second, 5 * time.Second: 8 * time.Second, 59 * time.Second: time.Minute + 4*time.Second} {
		p := NewPage("a test", nil)
		for i := range 60 {
			p.Host(noon.Add(time.Duration(i)*interval), &memcg.HostSample{MemFree: memcg.Value(mib)})
		}
		draw(t, p)
		_, known := p.host.free.values(&p.clock)
		if p.clock.width != want || slices.Contains(known, false) {
			t.Errorf("read every %v: steps of %v, known %v", interval, p.clock.width, known)
		}
	}
}

func TestThePageLoadsNothingAndSaysWhatNamesSay(t *testing.T) {
	_, html := day(t, 1)
	if m := regexp.MustCompile(`(?i)(src|href)\s*=\s*["']?[^#"'\s>]|url\(|@import|https?:`).FindString(html); m != "" {
		t.Errorf("something is loaded: %s", m)
	}
	if strings.Contains(html, "<script>alert") || !strings.Contains(html, "&lt;script&gt;alert") {
		t.Error("a name of a cgroup is taken for HTML")
	}
	for _, want := range []string{"cut &lt;short&gt;", "Resident by type", "Resident by node", "node 2", "Lent above", "Pressure of the host", `class="v-file-thrash"`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, no := range []string{"/never-seen", "/left-out", "NaN", "Inf", "ZgotmplZ", "%!"} {
		if strings.Contains(html, no) {
			t.Errorf("the page has %q", no)
		}
	}
}

func TestWhatWasOnlyObservedIsInATableOfPredictions(t *testing.T) {
	p := NewPage("a test", []string{"/web"})
	for i := range 3 {
		p.Record(&telemetry.Record{Time: noon.Add(time.Duration(i) * time.Second), Cgroup: memcg.ID{Path: "/left-out"}, Policy: "<quiet>", Mode: telemetry.Observe,
			Verdict: "idle", Current: memcg.Value(100 * mib), Want: 5 * mib, Held: telemetry.HeldByMode})
	}
	p.Record(&telemetry.Record{Time: noon, Cgroup: memcg.ID{Path: "/web"}, Policy: "all", Mode: telemetry.Enforce, Verdict: "idle", Current: memcg.Value(mib)})
	html := draw(t, p)
	if !strings.Contains(html, "only observed: a prediction") ||
		!strings.Contains(html, `<td>&lt;quiet&gt;</td><td class="n">1</td><td class="n">100 MiB</td><td class="n">1</td><td class="n">5 MiB</td><td class="n">15 MiB</td><td class="n">15%</td>`) {
		t.Error(html)
	}
	if _, html := day(t, 1); strings.Contains(html, "predict") {
		t.Error("a prediction of what was acted on")
	}
}

func TestEveryActionIsMarkedHoweverLongTheDay(t *testing.T) {
	for _, hours := range []int{1, 24} {
		p, html := day(t, hours)
		requests, settings := 0, 0
		for _, m := range regexp.MustCompile(`title="(\d+) requests?`).FindAllStringSubmatch(html, -1) {
			n := 0
			fmt.Sscan(m[1], &n)
			requests += n
		}
		for _, m := range regexp.MustCompile(`(\d+) limits? written`).FindAllStringSubmatch(html, -1) {
			n := 0
			fmt.Sscan(m[1], &n)
			settings += n
		}
		const cgroups = 2
		if want := cgroups * (hours * 720 / 100); requests != want {
			t.Errorf("%d hours: %d requests are marked, want %d", hours, requests, want)
		}
		if want := cgroups * (hours*720 + 299) / 300; settings < want-1 || settings > want+1 {
			t.Errorf("%d hours: %d settings are marked, want %d", hours, settings, want)
		}
		if n := p.clock.used(); n > spans || n < spans/2 {
			t.Errorf("%d hours are cut into %d spans", hours, n)
		}
		if len(html) > 1<<20 {
			t.Errorf("%d hours make a page of %d bytes", hours, len(html))
		}
	}
}

func TestMeansAndSumsStayThoseOfAllReadings(t *testing.T) {
	var c clock
	var s series
	for i := range 10_000 {
		at := noon.Add(time.Duration(i) * time.Second)
		s.add(&c, c.span(at), float64(i%10), 1)
	}
	v, known := s.values(&c)
	sum, n := 0.0, 0.0
	for i := range v {
		if !known[i] {
			t.Fatalf("span %d of %d is not known", i, len(v))
		}
		sum += s.sum[i]
		n += s.count[i]
		if v[i] < 3 || v[i] > 6 {
			t.Errorf("span %d is %v", i, v[i])
		}
	}
	if sum != 45_000 || n != 10_000 || s.total != sum {
		t.Errorf("sum %v of %v readings, total %v", sum, n, s.total)
	}
}

func TestWhatIsNotKnownIsAGapAndNotZero(t *testing.T) {
	l := line{values: []float64{1, 2, 0, 4, 4}, known: []bool{true, true, false, true, true}}
	if got, want := trace(l, 4), "M0 75.00H1V50.00H2M3 0.00H4V0.00H5"; got != want {
		t.Errorf("traced %s, want %s", got, want)
	}
	floor := []float64{1, 1, 1, 0, 0}
	if got, want := area(l, floor, 4), "M0 75.00V50.00H1V25.00H2V75.00H1V75.00H0ZM3 100.00V0.00H4V0.00H5V100.00H4V100.00H3Z"; got != want {
		t.Errorf("filled %s, want %s", got, want)
	}
	if floor[0] != 2 || floor[2] != 1 || floor[3] != 4 {
		t.Errorf("the floor is at %v", floor)
	}
}

func TestARecordingWithoutSamplesIsSaidToBeEmpty(t *testing.T) {
	if html := draw(t, NewPage("nothing", nil)); !strings.Contains(html, "there is nothing to draw") {
		t.Error(html)
	}
}

func TestTheCgroupsThatMatterMostAreDrawn(t *testing.T) {
	var s Survey
	add := func(path string, r telemetry.Record) {
		r.Cgroup.Path = path
		s.Record(&r)
	}
	add("/small", telemetry.Record{Current: memcg.Value(mib)})
	add("/large", telemetry.Record{Current: memcg.Value(1024 * mib)})
	add("/acted-on", telemetry.Record{Current: memcg.Value(mib), Want: 1, Acted: true})
	paths, others := s.Pick(2)
	if strings.Join(paths, " ") != "/large /acted-on" || others != 1 {
		t.Errorf("%v and %d others", paths, others)
	}
	if paths, others := s.Pick(10); len(paths) != 3 || others != 0 {
		t.Errorf("%v and %d others", paths, others)
	}
}

// browser returns the Chromium that is installed.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is here to look at the page: install the package chromium")
	return ""
}

// probe is put behind the page by the test: it measures what the browser has
// drawn, and moves the pointer over a plot.
const probe = `<pre id="probe"></pre><script>
const seen = {plots: 0, empty: [], narrow: 0, marks: 0, hover: "", wide: document.documentElement.scrollWidth > innerWidth};
for (const f of document.querySelectorAll("figure")) {
  const box = f.querySelector("svg").getBoundingClientRect();
  if (box.width < 200 || box.height < 60) seen.narrow++;
  let drawn = 0;
  for (const p of f.querySelectorAll("svg .fill, svg .line")) {
    const b = p.getBBox();
    if (p.getTotalLength() > 1 && b.width > 1 && getComputedStyle(p).color !== getComputedStyle(document.body).color) drawn++;
  }
  if (drawn === f.querySelectorAll(".keys span").length) seen.plots++; else seen.empty.push(f.querySelector("figcaption").textContent);
}
seen.marks = [...document.querySelectorAll(".acts .act")].filter(m => m.getBoundingClientRect().height > 3).length;
const area = document.querySelector("#cg-1 .area"), at = area.getBoundingClientRect();
area.dispatchEvent(new PointerEvent("pointermove", {clientX: at.left + at.width / 2, clientY: at.top + 5}));
seen.hover = document.querySelector("#cg-1 output").textContent;
document.getElementById("probe").textContent = "seen" + JSON.stringify(seen) + "end";
</script>`

// browserPatience is how long one look may take: some seconds on a machine that is
// idle, and twenty times that.
const browserPatience = 90 * time.Second

// look has the browser draw a file with the probe in it and returns what became of
// its DOM. Where it does not get there, an empty page tells whose fault that is: a
// browser that cannot draw that one either is too slow or broken here, and the test is
// skipped.
func look(t *testing.T, chromium, size, file string) string {
	t.Helper()
	dom, why := dump(t, chromium, size, file)
	if why == "" {
		return dom
	}
	empty := filepath.Join(t.TempDir(), "empty.html")
	if err := os.WriteFile(empty, []byte(probeMark), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, also := dump(t, chromium, size, empty); also != "" {
		t.Skipf("%s draws not even an empty page here: %s", chromium, also)
	}
	if dom, again := dump(t, chromium, size, file); again == "" {
		return dom
	}
	t.Fatalf("%s: the browser draws an empty page and not the report: %s", size, why)
	return ""
}

const probeMark = `<pre id="probe">`

// dump returns the DOM of a file once the browser has drawn it, or why it is not there.
func dump(t *testing.T, chromium, size, file string) (dom, why string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), browserPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--window-size="+size, "--dump-dom", "file://"+file)
	cmd.WaitDelay = time.Second // its children hold the pipe
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	switch {
	case strings.Contains(string(out), probeMark):
		return string(out), ""
	case ctx.Err() != nil:
		return "", fmt.Sprintf("it was not done after %v", browserPatience)
	}
	return "", fmt.Sprintf("%d bytes, %v\n%s", len(out), err, &errs)
}

func TestABrowserDrawsEveryPlot(t *testing.T) {
	chromium := browser(t)
	_, html := day(t, 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, []byte(strings.Replace(html, "</body>", probe+"</body>", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, size := range []string{"1200,900", "500,900"} { // no window is narrower than 500
		dom := look(t, chromium, size, file)
		m := regexp.MustCompile(`seen(\{.*?\})end`).FindStringSubmatch(strings.ReplaceAll(dom[strings.LastIndex(dom, probeMark):], "&amp;", "&"))
		if m == nil {
			t.Fatalf("%s: the browser has read the page, and the script behind it did not run to its end", size)
		}
		var seen struct {
			Plots  int      `json:"plots"`
			Empty  []string `json:"empty"`
			Narrow int      `json:"narrow"`
			Marks  int      `json:"marks"`
			Hover  string   `json:"hover"`
			Wide   bool     `json:"wide"`
		}
		if err := json.Unmarshal([]byte(m[1]), &seen); err != nil {
			t.Fatal(err)
		}
		const host, cgroups, each = 3, 2, 6
		// The host's pressure and full pressure are not fed by the test.
		if seen.Plots != host+cgroups*each-1-cgroups || len(seen.Empty) != 1+cgroups || seen.Narrow != 0 {
			t.Errorf("%s: %d plots are drawn, not %q, %d are too small", size, seen.Plots, seen.Empty, seen.Narrow)
		}
		if seen.Marks == 0 || seen.Wide {
			t.Errorf("%s: %d marks; wider than the window: %v", size, seen.Marks, seen.Wide)
		}
		if !strings.Contains(seen.Hover, "anon ") || !strings.Contains(seen.Hover, "MiB") || !strings.HasPrefix(seen.Hover, "12:") {
			t.Errorf("%s: under the pointer it says %q", size, seen.Hover)
		}
	}
}
