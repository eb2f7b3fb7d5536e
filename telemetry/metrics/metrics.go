package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/memagent/memagent/memcg"
	"github.com/memagent/memagent/telemetry"
)

// scrapesAtOnce is how many scrapes are answered at the same time. One over
// MaxCgroups cgroups takes some megabytes while it lasts.
const scrapesAtOnce = 2

// Metrics counts records and ticks. It is a telemetry.Sink and a
// telemetry.Ticks for one loop.
type Metrics struct {
	registry *prometheus.Registry
	cgroups  *cgroups

	ticks       *prometheus.CounterVec
	tickTook    prometheus.Histogram
	lastTick    prometheus.Gauge
	failedTicks prometheus.Counter
	inFlight    prometheus.Gauge
	watched     prometheus.Gauge
	enforcing   prometheus.Gauge

	decisions *prometheus.CounterVec
	rules     *prometheus.CounterVec
	clipped   *prometheus.CounterVec
	held      *prometheus.CounterVec
	wanted    *prometheus.CounterVec
	requests  *prometheus.CounterVec
	errors    *prometheus.CounterVec

	outcomes  *prometheus.CounterVec
	took      *prometheus.HistogramVec
	reclaimed *prometheus.CounterVec
	swapped   *prometheus.CounterVec
	demoted   *prometheus.CounterVec
	knobs     *prometheus.CounterVec

	policy, verdict, rule, bound, outcome *label
}

// Options of New.
type Options struct {
	Version string // of this program
	// Writes returns the number of write(2) calls made to the kernel so far.
	// It is called in scrapes, from any goroutine.
	Writes func() uint64
	// Config returns how the config stands. It is called as Writes is.
	Config func() telemetry.ConfigState
	// Predicted is what observing predicts; somebody else feeds it. nil: nothing.
	Predicted *telemetry.Predictions
}

// New returns metrics that have counted nothing.
func New(o Options) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), cgroups: newCgroups(),
		policy: newLabel(maxPolicies), verdict: newLabel(maxVerdicts), rule: newLabel(maxRules), bound: newLabel(maxBounds), outcome: newLabel(maxOutcomes),
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	m.ticks = counters("memagent_ticks_total", "Rounds of the loop: regular ones over all cgroups, and early ones over a few.", "kind")
	m.ticks.WithLabelValues(regular)
	m.ticks.WithLabelValues(early)
	m.failedTicks = counter("memagent_ticks_failed_total", "Regular rounds that decided nothing because the host could not be read.")
	m.tickTook = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "memagent_tick_duration_seconds", Help: "How long regular rounds took.", Buckets: tickBuckets})
	m.lastTick = gauge("memagent_last_tick_timestamp_seconds", "When the last regular round began, in seconds since 1970; 0 before the first.")
	m.inFlight = gauge("memagent_requests_in_flight", "Requests to the kernel that have not come back.")
	m.watched = gauge("memagent_cgroups_watched", "Cgroups that a policy matches.")

	m.decisions = counters("memagent_decisions_total", "Decisions, by the verdict on the cgroup.", "policy", "verdict")
	m.rules = counters("memagent_decisions_by_rule_total", "Decisions, by the rule that fired.", "rule")
	m.clipped = counters("memagent_decisions_clipped_total", "Decisions in which a bound made the wish smaller.", "policy", "bound")
	m.held = counters("memagent_decisions_held_total", "Wishes that were not handed to the kernel.", "policy")
	m.wanted = counters("memagent_wanted_bytes_total", "Bytes that decisions wanted to take, handed to the kernel or not.", "policy")
	m.requests = counters("memagent_requests_total", "Requests for memory handed to the kernel.", "policy")
	m.errors = counters("memagent_errors_total", "Cgroups that could not be read, and requests that ended with an error, by its kind.", "kind")

	m.outcomes = counters("memagent_outcomes_total", "Requests that came back, by what carried them out.", "via")
	m.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "memagent_request_duration_seconds", Help: "How long requests to the kernel took.", Buckets: requestBuckets}, []string{"via"})
	m.reclaimed = counters("memagent_reclaimed_bytes_total", "Bytes taken by requests, judged by the kernel's counters.", "policy")
	m.swapped = counters("memagent_swapped_out_bytes_total", "Bytes that requests sent to swap.", "policy")
	m.demoted = counters("memagent_demoted_bytes_total", "Bytes that requests only moved to slower nodes.", "policy")
	m.knobs = counters("memagent_knob_writes_total", "Writes to memory.high, memory.swap.max and cpuset.mems, by what came of them.", "knob", "outcome")

	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "memagent_build_info", Help: "The running program; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "goversion": runtime.Version()}})
	info.Set(1)
	m.enforcing = gauge("memagent_enforcing", "1 where decisions are carried out, 0 where memagent only observes.")
	m.registry.MustRegister(&configState{o.Config})
	m.registry.MustRegister(m.tickTook, m.took, info, m.cgroups, &predicted{o.Predicted},
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "memagent_kernel_writes_total", Help: "write(2) calls made to kernel files; 0 proves that observing wrote nothing."},
			func() float64 { return float64(o.Writes()) }),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector())
	return m
}

// Values of the label kind of ticks.
const (
	regular = "regular"
	early   = "early"
)

// Buckets in seconds. A tick over a few cgroups takes about a millisecond; one
// that takes longer than the shortest interval, 1 s, is late. A request takes
// parts of 50 ms until its deadline of 2 s.
var (
	tickBuckets    = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}
	requestBuckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4}
)

// Handler answers scrapes. failed is told of those that could not be answered
// in full.
func (m *Metrics) Handler(failed func(error)) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: told(failed), ErrorHandling: promhttp.ContinueOnError, Registry: m.registry, MaxRequestsInFlight: scrapesAtOnce,
	})
}

// told hands what promhttp would log on as an error.
type told func(error)

// Println takes what promhttp says.
func (t told) Println(v ...any) { t(errors.New(strings.TrimSpace(fmt.Sprintln(v...)))) }

// Ticked counts a tick.
func (m *Metrics) Ticked(t *telemetry.Tick) {
	m.inFlight.Set(float64(t.InFlight))
	if t.Early {
		m.ticks.WithLabelValues(early).Inc()
		return
	}
	m.ticks.WithLabelValues(regular).Inc()
	m.watched.Set(float64(t.Watched))
	m.enforcing.Set(oneIf(t.Mode == telemetry.Enforce))
	m.tickTook.Observe(t.Took.Seconds())
	m.lastTick.Set(seconds(t.Began))
	if t.Err != nil {
		m.failedTicks.Inc()
	}
}

// seconds is a time as Prometheus has it, to the millisecond.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// oneIf is how a gauge says yes.
func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Record counts a record.
func (m *Metrics) Record(r *telemetry.Record) {
	m.cgroups.record(r)
	policy := m.policy.of(r.Policy)
	if r.Done != nil {
		m.done(policy, r.Done)
	}
	for i := range r.Settings {
		s := &r.Settings[i]
		outcome := s.Outcome
		if s.Err != nil && outcome == "" {
			outcome = telemetry.ErrorKind(s.Err)
		}
		m.knobs.WithLabelValues(string(s.Knob), m.outcome.of(outcome)).Inc()
	}
	if r.Err != nil {
		m.errors.WithLabelValues(telemetry.ErrorKind(r.Err)).Inc()
		return
	}
	if !r.Glance {
		m.decisions.WithLabelValues(policy, m.verdict.of(r.Verdict)).Inc()
	}
	m.rules.WithLabelValues(m.rule.of(r.Rule)).Inc()
	if r.Clipped != "" {
		m.clipped.WithLabelValues(policy, m.bound.of(r.Clipped)).Inc()
	}
	if r.Want == 0 {
		return
	}
	m.wanted.WithLabelValues(policy).Add(float64(r.Want))
	if r.Acted {
		m.requests.WithLabelValues(policy).Inc()
	} else {
		m.held.WithLabelValues(policy).Inc()
	}
}

func (m *Metrics) done(policy string, o *memcg.Outcome) {
	via := o.Via
	if via == "" {
		via = none
	}
	m.outcomes.WithLabelValues(via).Inc()
	m.took.WithLabelValues(via).Observe(o.Took.Seconds())
	if o.Err != nil {
		m.errors.WithLabelValues(telemetry.ErrorKind(o.Err)).Inc()
	}
	add(m.reclaimed.WithLabelValues(policy), taken(o))
	add(m.swapped.WithLabelValues(policy), o.SwapOut)
	add(m.demoted.WithLabelValues(policy), o.Demoted)
}

// taken is what a request took; pgsteal does not count what DAMON paged out.
func taken(o *memcg.Outcome) memcg.Field {
	if o.Via == memcg.ViaDAMON {
		return o.Shrunk
	}
	return o.Reclaimed
}

// add adds what is known; what is not known did not add nothing, and the
// series of errors tells of it.
func add(c prometheus.Counter, f memcg.Field) {
	if v, ok := f.Get(); ok {
		c.Add(float64(v))
	}
}
