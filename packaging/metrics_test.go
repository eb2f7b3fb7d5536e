package packaging_test

import (
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
	"github.com/memagent/memagent/telemetry/metrics"
)

// families returns what a scrape of a memagent shows that has met everything:
// each metric with the labels that it has.
func families(t *testing.T) map[string]map[string]bool {
	t.Helper()
	predicted := &telemetry.Predictions{}
	m := metrics.New(metrics.Options{Version: "1", Writes: func() uint64 { return 1 }, Predicted: predicted,
		Config: func() telemetry.ConfigState { return telemetry.ConfigState{} }})
	some := memcg.Value(1)
	m.Record(&telemetry.Record{
		Time: time.Unix(1, 0), Cgroup: memcg.ID{Path: "/a", Inode: 1}, Policy: "p", Mode: telemetry.Enforce, Verdict: "idle", Rule: "r", Clipped: "floor",
		Current: some, Anon: some, File: some, Swap: some, Lent: some, Floor: 1, RefaultAnon: some, RefaultFile: some, Stall: some,
		Cost: memcg.Term{Value: 1, Known: true}, Want: 1, Acted: true,
		Done:     &memcg.Outcome{Via: memcg.ViaReclaim, Reclaimed: some, SwapOut: some, Demoted: some, Err: memcg.ErrPartial},
		Settings: []telemetry.Setting{{Knob: memcg.KnobHigh, Outcome: "written"}},
	})
	telemetry.Sinks{predicted, m}.Record(&telemetry.Record{Cgroup: memcg.ID{Path: "/b", Inode: 2}, Policy: "p", Mode: telemetry.Observe, Want: 1, Held: telemetry.HeldByMode, Rule: "r"})
	m.Ticked(&telemetry.Tick{})
	w := httptest.NewRecorder()
	m.Handler(func(err error) { t.Error(err) }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	scraped, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{"up": {}}
	for name, f := range scraped {
		labels := map[string]bool{}
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		known[name] = labels
		if f.GetType() == dto.MetricType_HISTOGRAM {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				known[name+suffix] = labels
			}
		}
	}
	return known
}

var (
	metricName = regexp.MustCompile(`\b(?:memagent|process|go)_[a-z0-9_]+|\bup\b`)
	matcher    = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|group_left) \(([^)]*)\)`)
	legend     = regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}`)
	fromScrape = []string{"job", "instance", "le"} // the scraper and histograms add these
)

// checkQuery reports metrics and labels of a query, and labels in the text
// beside it, that no memagent has.
func checkQuery(t *testing.T, where, query, text string, known map[string]map[string]bool) {
	t.Helper()
	names := metricName.FindAllString(query, -1)
	if len(names) == 0 {
		t.Errorf("%s: no metric of memagent in %q", where, query)
	}
	labels := map[string]bool{}
	for _, name := range names {
		has, ok := known[name]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		for l := range has {
			labels[l] = true
		}
	}
	var used []string
	for _, m := range matcher.FindAllStringSubmatch(query, -1) {
		used = append(used, m[1])
	}
	for _, m := range grouping.FindAllStringSubmatch(query, -1) {
		used = append(used, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	for _, m := range legend.FindAllStringSubmatch(text, -1) {
		used = append(used, m[1])
	}
	for _, l := range used {
		if !labels[l] && !slices.Contains(fromScrape, l) {
			t.Errorf("%s: label %q is on none of %q", where, l, names)
		}
	}
}

func TestEveryMetricIsNamedInTheDocumentation(t *testing.T) {
	doc := read(t, filepath.FromSlash("../docs/operations.md"))
	for name := range families(t) {
		if !strings.HasPrefix(name, "memagent_") || strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
			continue
		}
		// In a row of several, those behind the first are told by their ends.
		short := strings.TrimPrefix(strings.TrimPrefix(name, "memagent_cgroup"), "memagent_predicted")
		if !strings.Contains(doc, name) && !strings.Contains(doc, "`"+short) {
			t.Errorf("%s is not named", name)
		}
	}
}
