package workingset

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
	"pgregory.net/rapid"
)

const (
	mib      = 1 << 20
	pageSize = 4096
)

// stream is one figure over time: a counter's rate a second, or a gauge.
type stream func(second float64) float64

func constant(v float64) stream { return func(float64) float64 { return v } }
func ramp(from, perSecond float64) stream {
	return func(s float64) float64 { return from + perSecond*s }
}

// from is 0 before a time and the stream, starting at its own 0, after it.
func (f stream) from(start float64) stream {
	return func(s float64) float64 {
		if s < start {
			return 0
		}
		return f(s - start)
	}
}

// until is 0 from a time on.
func (f stream) until(end float64) stream {
	return func(s float64) float64 {
		if s >= end {
			return 0
		}
		return f(s)
	}
}

func (f stream) plus(g stream) stream { return func(s float64) float64 { return f(s) + g(s) } }

// noise multiplies by up to 1 +- part, the same for the same seed.
func (f stream) noise(seed uint64, part float64) stream {
	return func(s float64) float64 {
		r := rand.New(rand.NewPCG(seed, math.Float64bits(s)))
		return f(s) * (1 + part*(2*r.Float64()-1))
	}
}

// gap is 0 for one in every n seconds: the multi-gen LRU's lost counts.
func (f stream) gap(n int) stream {
	return func(s float64) float64 {
		if int(s)%n == n-1 {
			return 0
		}
		return f(s)
	}
}

// feed is what a cgroup does: rates of counters, in events (stall: in
// microseconds) a second, and gauges in bytes. A key left out of counters is
// printed as it was at the start.
type feed struct {
	counters map[memcg.Stat]stream
	gauges   map[memcg.Stat]stream
	current  stream
	swap     stream // memory.swap.current
	some     stream
	full     stream
	highs    stream // memory.events high
	own      func(second float64) Own
	gens     *Generations
	classic  bool

	high, max memcg.Limit
	swapRoom  memcg.Limit
}

// tick is one sample with its decision.
type tick struct {
	at      float64
	sample  memcg.Sample
	d       Decision
	because []memcg.Term
}

// bench runs a feed against the law.
type bench struct {
	t        *testing.T
	policy   Policy
	host     memcg.HostSample
	interval float64
	feed     feed
	st       State
	totals   map[memcg.Stat]float64
	stalls   [2]float64
	highs    float64
	slices   int
	at       float64
	trace    []tick
}

func defaultPolicy() Policy {
	return Policy{
		Swappiness: Swappiness{Kind: Auto, Base: 60, Min: 0, Max: 200},
		Squeeze:    Squeeze{On: true, MaxStep: 0.005, PressureTarget: 0.001, CostTarget: 0.001, Floor: 16 * mib},
		Headroom:   Headroom{On: true, Fraction: 0.02},
	}
}

func defaultHost() memcg.HostSample {
	return memcg.HostSample{
		PageSize: pageSize, MemTotal: memcg.Value(16 << 30), SwapTotal: memcg.Value(4 << 30), SwapFree: memcg.Value(4 << 30),
		Swap: memcg.SwapZram,
	}
}

// restingFeed is 100 MiB of anon and 80 MiB of file that nobody touches.
func restingFeed() feed {
	return feed{
		counters: map[memcg.Stat]stream{},
		gauges: map[memcg.Stat]stream{
			memcg.StatAnon: constant(100 * mib), memcg.StatFile: constant(80 * mib), memcg.StatKernel: constant(4 * mib),
			memcg.StatInactiveAnon: constant(60 * mib), memcg.StatActiveAnon: constant(40 * mib),
			memcg.StatInactiveFile: constant(50 * mib), memcg.StatActiveFile: constant(30 * mib),
		},
		current: constant(184 * mib),
		swap:    constant(0),
		some:    constant(0), full: constant(0), highs: constant(0),
		high: memcg.Unlimited(), max: memcg.Unlimited(), swapRoom: memcg.Unlimited(),
	}
}

var benchCounters = []memcg.Stat{
	memcg.StatRefaultAnon, memcg.StatRefaultFile, memcg.StatActivateAnon, memcg.StatActivateFile, memcg.StatScan,
	memcg.StatSteal, memcg.StatPswpout, memcg.StatPgactivate, memcg.StatScanProactive, memcg.StatStealProactive,
}

func newBench(t *testing.T, f feed) *bench {
	return &bench{t: t, policy: defaultPolicy(), host: defaultHost(), interval: 1, feed: f, totals: map[memcg.Stat]float64{}}
}

// slice is the time counters move in, in seconds, so that a stream does not
// depend on the interval; intervals are multiples of it.
const slice = 0.05

// step carries the cgroup one interval on and decides.
func (b *bench) step() *tick {
	elapsed := time.Duration(0)
	if b.trace != nil {
		elapsed = time.Duration(b.interval * float64(time.Second))
		for range int(math.Round(b.interval / slice)) {
			for k, s := range b.feed.counters {
				b.totals[k] += s(b.at) * slice
			}
			b.stalls[0] += b.feed.some(b.at) * slice
			b.stalls[1] += b.feed.full(b.at) * slice
			b.highs += b.feed.highs(b.at) * slice
			b.slices++
			b.at = float64(b.slices) / 20
		}
	}
	tk := tick{at: b.at}
	s := &tk.sample
	s.Stat.SetAll(memcg.Unsupported)
	for _, k := range benchCounters {
		s.Stat.Set(k, memcg.Value(uint64(b.totals[k])))
	}
	for k, g := range b.feed.gauges {
		s.Stat.Set(k, memcg.Value(uint64(max(0, g(b.at)))))
	}
	s.Current = memcg.Value(uint64(max(0, b.feed.current(b.at))))
	s.SwapCurrent = memcg.Value(uint64(max(0, b.feed.swap(b.at))))
	s.Pressure.Some.Total = memcg.Value(uint64(b.stalls[0]))
	s.Pressure.Full.Total = memcg.Value(uint64(b.stalls[1]))
	s.EventsLocal.High = memcg.Value(uint64(b.highs))
	s.EventsLocal.Max = memcg.Value(0)
	s.Min, s.High, s.Max, s.SwapRoom = memcg.LimitOf(0), b.feed.high, b.feed.max, b.feed.swapRoom
	s.Populated = memcg.Value(1)
	own := b.carriedOut()
	if b.feed.own != nil {
		own = b.feed.own(b.at)
	}
	tk.d = Decide(&b.st, Input{Sample: s, Host: &b.host, Elapsed: elapsed, Own: own, Gens: b.feed.gens, ClassicLRU: b.feed.classic}, b.policy)
	tk.because = append([]memcg.Term(nil), tk.d.Because...)
	checkSane(b.t, &tk, &b.policy)
	b.trace = append(b.trace, tk)
	return &b.trace[len(b.trace)-1]
}

// carriedOut is what the agent took if the last intent was carried out whole.
func (b *bench) carriedOut() Own {
	own := Own{Known: true}
	if len(b.trace) == 0 {
		return own
	}
	i := b.trace[len(b.trace)-1].d.Intent
	if s, _ := i.Swappiness.Get(); s >= moveAnonFrom {
		own.AnonPages = i.Bytes / pageSize
	} else {
		own.FilePages = i.Bytes / pageSize
	}
	return own
}

// run steps for some seconds and returns the last tick.
func (b *bench) run(seconds float64) *tick {
	end := b.at + seconds
	last := b.step()
	for b.at < end-1e-9 {
		last = b.step()
	}
	return last
}

// checkSane is what must hold of every decision whatever the input.
func checkSane(t rapid.TB, tk *tick, p *Policy) {
	t.Helper()
	d := &tk.d
	if d.Rule == "" {
		t.Fatalf("at %.1f s: a decision without a rule: %+v", tk.at, d)
	}
	if (d.Intent.Bytes == 0) != (d.Intent.Kind == KindNone) {
		t.Fatalf("at %.1f s: %d bytes of kind %v", tk.at, d.Intent.Bytes, d.Intent.Kind)
	}
	if d.Intent.Bytes == 0 {
		return
	}
	current, ok := tk.sample.Current.Get()
	floor, fok := d.Signals.Floor.Get()
	if !ok || !fok || float64(d.Intent.Bytes)+floor > float64(current) {
		t.Fatalf("at %.1f s: %d bytes asked of %v with floor %v", tk.at, d.Intent.Bytes, tk.sample.Current, d.Signals.Floor)
	}
	if d.Intent.Bytes%pageSize != 0 {
		t.Fatalf("at %.1f s: %d bytes are not whole pages", tk.at, d.Intent.Bytes)
	}
	lo, hi, passes := p.Swappiness.span()
	s, set := d.Intent.Swappiness.Get()
	if set != passes || set && (s < lo || s > hi) {
		t.Fatalf("at %.1f s: swappiness %v outside the policy %+v", tk.at, d.Intent.Swappiness, p.Swappiness)
	}
	if d.Verdict == Unknown || d.Rule == "no-process" {
		t.Fatalf("at %.1f s: %d bytes asked under verdict %v", tk.at, d.Intent.Bytes, d.Verdict)
	}
}
