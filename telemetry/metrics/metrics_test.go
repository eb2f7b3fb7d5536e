package metrics

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.uber.org/goleak"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testMetrics() *Metrics {
	return New(Options{Version: "1.2.3", Writes: func() uint64 { return 7 }, Config: func() telemetry.ConfigState {
		return telemetry.ConfigState{Since: time.UnixMilli(2_500), Taken: 2, Refused: 1, Err: errors.New("bad")}
	}})
}

func record(path string, inode uint64) *telemetry.Record {
	return &telemetry.Record{
		Name: "shop/cart-7d9/app", Container: telemetry.Container{Namespace: "shop", Pod: "cart-7d9", Name: "app"},
		Time: time.Unix(1000, 0), Tick: 1, Cgroup: memcg.ID{Path: path, Inode: inode}, Policy: "batch", Mode: telemetry.Enforce,
		Verdict: "idle", Rule: "squeeze", Current: memcg.Value(1 << 20), Anon: memcg.Value(1000), File: memcg.Value(0),
		Swap: memcg.Absent(memcg.Unsupported), RefaultAnon: memcg.Value(3), RefaultFile: memcg.Value(4), Stall: memcg.Value(2_500_000),
		Elapsed: 5 * time.Second, Cost: memcg.Term{Value: 12.5, Known: true}, Want: 8192, Acted: true, Floor: 4096, Clipped: "floor",
		Done:     &memcg.Outcome{Via: memcg.ViaReclaim, Reclaimed: memcg.Value(4096), SwapOut: memcg.Value(0), Took: 30 * time.Millisecond, Err: memcg.ErrPartial},
		Settings: []telemetry.Setting{{Knob: memcg.KnobHigh, Outcome: "written"}},
	}
}

func scrapeText(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(func(err error) { t.Errorf("scrape: %v", err) }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func scrape(t testing.TB, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrapeText(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns "label=value,... number" of each series of one family.
func series(f *dto.MetricFamily) (list []string) {
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %v", strings.Join(labels, ","), v)))
	}
	slices.Sort(list)
	return list
}

func TestAScrapeShowsWhatWasRecorded(t *testing.T) {
	m := testMetrics()
	m.Record(record("/batch/job", 1))
	m.Ticked(&telemetry.Tick{Began: time.UnixMilli(1_000_500), Mode: telemetry.Observe, Took: 3 * time.Millisecond, Watched: 1, InFlight: 2})
	m.Ticked(&telemetry.Tick{Early: true, InFlight: 1})
	m.Ticked(&telemetry.Tick{Began: time.UnixMilli(1_005_500), Mode: telemetry.Enforce, Watched: 1, InFlight: 1, Err: errors.New("x")})
	families := scrape(t, m)
	for name, want := range map[string][]string{
		"memagent_ticks_total":                    {"kind=early 1", "kind=regular 2"},
		"memagent_ticks_failed_total":             {"1"},
		"memagent_config_good":                    {"0"},
		"memagent_config_taken_timestamp_seconds": {"2.5"},
		"memagent_config_loads_total":             {"result=refused 1", "result=taken 2"},
		"memagent_tick_duration_seconds":          {"2"},
		"memagent_last_tick_timestamp_seconds":    {"1005.5"},
		"memagent_requests_in_flight":             {"1"},
		"memagent_cgroups_watched":                {"1"},
		"memagent_kernel_writes_total":            {"7"},
		"memagent_enforcing":                      {"1"},
		"memagent_decisions_total":                {"policy=batch,verdict=idle 1"},
		"memagent_decisions_by_rule_total":        {"rule=squeeze 1"},
		"memagent_decisions_clipped_total":        {"bound=floor,policy=batch 1"},
		"memagent_wanted_bytes_total":             {"policy=batch 8192"},
		"memagent_requests_total":                 {"policy=batch 1"},
		"memagent_errors_total":                   {"kind=partial 1"},
		"memagent_outcomes_total":                 {"via=memory.reclaim 1"},
		"memagent_request_duration_seconds":       {"via=memory.reclaim 1"},
		"memagent_reclaimed_bytes_total":          {"policy=batch 4096"},
		"memagent_knob_writes_total":              {"knob=memory.high,outcome=written 1"},
		"memagent_cgroup_info":                    {"cgroup=/batch/job,container=app,mode=enforce,name=shop/cart-7d9/app,namespace=shop,pod=cart-7d9,policy=batch 1"},
		"memagent_cgroup_verdict":                 {"cgroup=/batch/job,verdict=idle 1"},
		"memagent_cgroup_readable":                {"cgroup=/batch/job 1"},
		"memagent_cgroup_resident_bytes":          {"cgroup=/batch/job 1.048576e+06"},
		"memagent_cgroup_memory_bytes":            {"cgroup=/batch/job,type=anon 1000", "cgroup=/batch/job,type=file 0"},
		"memagent_cgroup_floor_bytes":             {"cgroup=/batch/job 4096"},
		"memagent_cgroup_refault_cost_ratio":      {"cgroup=/batch/job 0.125"},
		"memagent_cgroup_refaults_total":          {"cgroup=/batch/job,type=anon 3", "cgroup=/batch/job,type=file 4"},
		"memagent_cgroup_stall_seconds_total":     {"cgroup=/batch/job 2.5"},
		"memagent_cgroup_reclaimed_bytes_total":   {"cgroup=/batch/job 4096"},
		"memagent_cgroup_swapped_out_bytes_total": {"cgroup=/batch/job 0"},
		"memagent_cgroups_without_series":         {"0"},
	} {
		if got := series(families[name]); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if v := families["process_cpu_seconds_total"]; v == nil {
		t.Error("the agent's own CPU is not shown")
	}
}

func TestAFigureThatIsAbsentHasNoSeries(t *testing.T) {
	m := testMetrics()
	r := record("/a", 1)
	r.RefaultAnon, r.Stall, r.Cost, r.Done = memcg.Field{}, memcg.Absent(memcg.Unsupported), memcg.Term{}, nil
	m.Record(r)
	families := scrape(t, m)
	for _, name := range []string{"memagent_cgroup_swap_bytes", "memagent_cgroup_lent_bytes", "memagent_cgroup_stall_seconds_total",
		"memagent_cgroup_refault_cost_ratio", "memagent_cgroup_reclaimed_bytes_total"} {
		if got := series(families[name]); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := series(families["memagent_cgroup_refaults_total"]); !slices.Equal(got, []string{"cgroup=/a,type=file 4"}) {
		t.Errorf("refaults: %q", got)
	}
}

func TestACgroupThatCannotBeReadShowsNoOldGauges(t *testing.T) {
	m := testMetrics()
	m.Record(record("/a", 1))
	m.Record(&telemetry.Record{Cgroup: memcg.ID{Path: "/a", Inode: 1}, Policy: "batch", Err: memcg.ErrDenied})
	families := scrape(t, m)
	if got := series(families["memagent_cgroup_readable"]); !slices.Equal(got, []string{"cgroup=/a 0"}) {
		t.Errorf("readable: %q", got)
	}
	if got := series(families["memagent_cgroup_resident_bytes"]); len(got) > 0 {
		t.Errorf("resident: %q", got)
	}
	if got := series(families["memagent_errors_total"]); !slices.Contains(got, "kind=denied 1") {
		t.Errorf("errors: %q", got)
	}
}

func TestTheLinterOfPrometheusHasNothingToSay(t *testing.T) {
	m := testMetrics()
	r := record("/a", 1)
	r.Swap, r.Lent = memcg.Value(0), memcg.Value(0)
	r.Done.Demoted = memcg.Value(1)
	m.Record(r)
	r.Acted = false
	m.Record(r)
	problems, err := promlint.New(strings.NewReader(scrapeText(t, m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestSeriesOfACgroupEndWithIt(t *testing.T) {
	m := testMetrics()
	gone := func(inode uint64) *telemetry.Record {
		return &telemetry.Record{Cgroup: memcg.ID{Path: "/a", Inode: inode}, Err: fmt.Errorf("cgroup /a: %w", memcg.ErrGone)}
	}
	m.Record(record("/a", 1))
	m.Record(record("/a", 2)) // came back before its end was noticed
	m.Record(gone(1))
	if got := series(scrape(t, m)["memagent_cgroup_requests_total"]); !slices.Equal(got, []string{"cgroup=/a 1"}) {
		t.Errorf("the successor: %q", got)
	}
	m.Record(gone(2))
	for name, f := range scrape(t, m) {
		if strings.HasPrefix(name, "memagent_cgroup_") {
			t.Errorf("left: %s %q", name, series(f))
		}
	}
}

func TestPathsThatAreNotTextKeepLabelsOfTheirOwn(t *testing.T) {
	m := testMetrics()
	m.Record(record("/a\xff", 1))
	m.Record(record("/a\xfe", 2))
	m.Record(record("/with blank \"and quotes\"\n", 3))
	if got := series(scrape(t, m)["memagent_cgroup_readable"]); len(got) != 3 {
		t.Errorf("%q", got)
	}
}

func TestChurnLeavesLabelsBounded(t *testing.T) {
	m := testMetrics()
	for i := range 3 * MaxCgroups {
		r := record(fmt.Sprintf("/job-%d", i), uint64(i))
		r.Policy, r.Verdict, r.Rule, r.Clipped = fmt.Sprint("p", i), fmt.Sprint("v", i), fmt.Sprint("r", i), fmt.Sprint("b", i)
		r.Settings[0].Outcome = fmt.Sprint("o", i)
		m.Record(r)
		if i >= MaxCgroups/2 {
			old := i - MaxCgroups/2
			m.Record(&telemetry.Record{Cgroup: memcg.ID{Path: fmt.Sprintf("/job-%d", old), Inode: uint64(old)}, Err: memcg.ErrGone})
		}
	}
	families := scrape(t, m)
	for name, most := range map[string]int{
		"memagent_cgroup_info":             MaxCgroups / 2,
		"memagent_requests_total":          maxPolicies + 1,
		"memagent_decisions_by_rule_total": maxRules + 1,
		"memagent_knob_writes_total":       maxOutcomes + 1,
	} {
		if n := len(families[name].GetMetric()); n == 0 || n > most {
			t.Errorf("%s: %d series, want 1..%d", name, n, most)
		}
	}
}

func TestCgroupsBeyondTheBoundAreCountedAndNotShown(t *testing.T) {
	m := testMetrics()
	for i := range MaxCgroups + 10 {
		m.Record(record(fmt.Sprintf("/job-%d", i), uint64(i)))
	}
	families := scrape(t, m)
	if n := len(families["memagent_cgroup_info"].GetMetric()); n != MaxCgroups {
		t.Errorf("%d cgroups have series", n)
	}
	if got := series(families["memagent_cgroups_without_series"]); !slices.Equal(got, []string{"10"}) {
		t.Errorf("without: %q", got)
	}
	if got := series(families["memagent_requests_total"]); !slices.Equal(got, []string{fmt.Sprintf("policy=batch %d", MaxCgroups+10)}) {
		t.Errorf("sums: %q", got)
	}
}

func TestARecordOfAKnownCgroupAllocatesNothing(t *testing.T) {
	m := testMetrics()
	r := record("/a", 1)
	m.Record(r)
	if n := testing.AllocsPerRun(100, func() { m.Record(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestScrapesAndTheLoopDoNotDisturbEachOther(t *testing.T) {
	m := testMetrics()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 20 {
				w := httptest.NewRecorder()
				m.Handler(func(err error) { t.Error(err) }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			}
		})
	}
	for i := range 500 {
		m.Record(record(fmt.Sprintf("/job-%d", i%50), uint64(i)))
		m.Ticked(&telemetry.Tick{})
	}
	all.Wait()
}

func TestAPolicyThatOnlyObservesHasPredictionsAndOneThatActsHasNone(t *testing.T) {
	p := &telemetry.Predictions{}
	m := New(Options{Version: "1.2.3", Writes: func() uint64 { return 7 }, Config: func() telemetry.ConfigState { return telemetry.ConfigState{} }, Predicted: p})
	all := telemetry.Sinks{p, m}
	all.Record(record("/acts", 1))
	r := record("/watched", 2)
	r.Policy, r.Mode, r.Acted, r.Held, r.Done, r.Settings = "quiet", telemetry.Observe, false, telemetry.HeldByMode, nil, nil
	all.Record(r)
	all.Record(r)
	text := scrapeText(t, m)
	for _, want := range []string{`memagent_predicted_resident_bytes{policy="quiet"} 1.048576e+06`, `memagent_predicted_next_bytes{policy="quiet"} 8192`, `memagent_predicted_most_bytes{policy="quiet"} 16384`} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, `predicted_next_bytes{policy="batch"}`) {
		t.Error("a prediction of what is done")
	}
}
