package workingset

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memagent/memagent/memcg"
)

// world is a cgroup page by page: two LRU lists under one limit, a clock, a
// shadow for every page that is out, and so the true refault distance of each
// refault. It is as plain as it can be; what real kernels do differently is
// measured on real kernels.
type world struct {
	limit  int // pages
	pages  []page
	lists  [types]ring
	victim func(w *world) int // the list the kernel evicts from at the limit
	guard  bool               // swap is pinned
	room   int                // pages that may be swapped

	clock                     uint64
	steal, proactive, swapped uint64
	refault, activate         [types]uint64
	stall                     float64 // microseconds
	distances, returns        float64 // of file refaults since the last sample
	own                       Own
	balance                   int // of anon against file in reclaim
}

type page struct {
	kind       int
	resident   bool
	out        bool
	shadow     uint64
	prev, next int
}

// ring is a list of pages, most recently used first.
type ring struct{ head, tail, n int }

func newWorld(limit int) *world {
	w := &world{limit: limit, room: 1 << 30, victim: func(*world) int { return file }}
	w.lists[anon], w.lists[file] = ring{-1, -1, 0}, ring{-1, -1, 0}
	return w
}

// grow adds n pages of a kind, not resident, and returns the first.
func (w *world) grow(kind, n int) int {
	first := len(w.pages)
	for range n {
		w.pages = append(w.pages, page{kind: kind})
	}
	return first
}

func (w *world) unlink(i int) {
	p, l := &w.pages[i], &w.lists[w.pages[i].kind]
	if p.prev >= 0 {
		w.pages[p.prev].next = p.next
	} else {
		l.head = p.next
	}
	if p.next >= 0 {
		w.pages[p.next].prev = p.prev
	} else {
		l.tail = p.prev
	}
	l.n--
}

func (w *world) push(i int) {
	p, l := &w.pages[i], &w.lists[w.pages[i].kind]
	p.prev, p.next = -1, l.head
	if l.head >= 0 {
		w.pages[l.head].prev = i
	} else {
		l.tail = i
	}
	l.head = i
	l.n++
}

// touch uses a page: workingset_refault, then room for it at the limit.
func (w *world) touch(i int) {
	p := &w.pages[i]
	if p.resident {
		w.unlink(i)
		w.push(i)
		return
	}
	if p.out {
		distance := w.clock - p.shadow
		w.refault[p.kind]++
		w.stall += [types]float64{anon: 10, file: 60}[p.kind]
		if p.kind == file {
			w.distances += float64(distance)
			w.returns++
		}
		if float64(distance) <= w.workingset(p.kind) {
			w.activate[p.kind]++
			w.clock++
		}
	}
	p.resident, p.out = true, false
	w.push(i)
	for w.lists[anon].n+w.lists[file].n > w.limit {
		k := w.victim(w)
		if k == anon && (w.guard || w.room <= 0 || w.lists[anon].n == 0) || w.lists[file].n == 0 && k == file {
			k = 1 - k
		}
		w.evict(k)
	}
}

func (w *world) workingset(kind int) float64 {
	half := func(k int) float64 { return float64(w.lists[k].n) / 2 }
	if kind == file {
		return half(file) + 2*half(anon)
	}
	return 2*half(file) + half(anon)
}

// evict is workingset_eviction.
func (w *world) evict(kind int) bool {
	i := w.lists[kind].tail
	if i < 0 || kind == anon && w.room <= 0 {
		return false
	}
	w.unlink(i)
	p := &w.pages[i]
	w.clock++
	p.resident, p.out, p.shadow = false, true, w.clock
	w.steal++
	if kind == anon {
		w.swapped++
		w.room--
	}
	return true
}

// reclaim carries out an intent: anon, file, or both by list size.
func (w *world) reclaim(i *Intent) {
	w.own = Own{Known: true}
	s, _ := i.Swappiness.Get()
	for n := i.Bytes / pageSize; n > 0; n-- {
		kind := file
		if w.balance += s; s >= 150 || w.balance >= 200 {
			kind = anon
			w.balance = max(0, w.balance-200)
		}
		if kind == anon && w.guard || !w.evict(kind) {
			continue
		}
		w.proactive++
		if kind == anon {
			w.own.AnonPages++
		} else {
			w.own.FilePages++
		}
	}
	w.guard = i.SwapGuard
}

func (w *world) sample(max memcg.Limit) *memcg.Sample {
	s := &memcg.Sample{
		Current:   memcg.Value(uint64(w.lists[anon].n+w.lists[file].n)*pageSize + mib),
		Populated: memcg.Value(1), Min: memcg.LimitOf(0), High: memcg.Unlimited(), Max: max,
		SwapRoom: memcg.Unlimited(), SwapCurrent: memcg.Value(0),
	}
	out := 0
	for i := range w.pages {
		if w.pages[i].kind == anon && w.pages[i].out {
			out++
		}
	}
	s.SwapCurrent = memcg.Value(uint64(out) * pageSize)
	if w.guard {
		s.SwapRoom = memcg.LimitOf(0)
	}
	s.Stat.SetAll(memcg.Unsupported)
	size := func(k memcg.Stat, pages int) { s.Stat.Set(k, memcg.Value(uint64(pages)*pageSize)) }
	size(memcg.StatAnon, w.lists[anon].n)
	size(memcg.StatFile, w.lists[file].n)
	size(memcg.StatKernel, mib/pageSize)
	size(memcg.StatInactiveAnon, w.lists[anon].n-w.lists[anon].n/2)
	size(memcg.StatActiveAnon, w.lists[anon].n/2)
	size(memcg.StatInactiveFile, w.lists[file].n-w.lists[file].n/2)
	size(memcg.StatActiveFile, w.lists[file].n/2)
	for k, v := range map[memcg.Stat]uint64{
		memcg.StatSteal: w.steal, memcg.StatScan: w.steal * 2, memcg.StatStealProactive: w.proactive, memcg.StatScanProactive: w.proactive * 2,
		memcg.StatPswpout: w.swapped, memcg.StatRefaultAnon: w.refault[anon], memcg.StatRefaultFile: w.refault[file],
		memcg.StatActivateAnon: w.activate[anon], memcg.StatActivateFile: w.activate[file],
	} {
		s.Stat.Set(k, memcg.Value(v))
	}
	s.Pressure.Some.Total, s.Pressure.Full.Total = memcg.Value(uint64(w.stall)), memcg.Value(uint64(w.stall/2))
	s.EventsLocal.High, s.EventsLocal.Max = memcg.Value(0), memcg.Value(0)
	return s
}

// live runs a workload for some seconds, with the law or without. work is
// called with the number of the second.
func (w *world) live(seconds int, p Policy, on bool, work func(second int)) (last Decision) {
	h := defaultHost()
	h.SwapTotal, h.SwapFree = memcg.Value(16<<30), memcg.Value(16<<30)
	var st State
	limit := memcg.LimitOf(uint64(w.limit)*pageSize + mib)
	for second := range seconds {
		w.distances, w.returns = 0, 0
		work(second)
		in := Input{Sample: w.sample(limit), Host: &h, Own: w.own, GuardHeld: w.guard}
		if second > 0 {
			in.Elapsed = time.Second
		}
		last = Decide(&st, in, p)
		if on {
			w.reclaim(&last.Intent)
		}
	}
	return last
}

// looper reads pages [first, first+n) round and round, rate a second.
func (w *world) looper(first, n, rate int) func(int) {
	at := 0
	return func(int) {
		for range rate {
			w.touch(first + at)
			at = (at + 1) % n
		}
	}
}

// D stands for the distances that the kernel would have seen page by page.
func TestDistanceStandsForTheTrueDistances(t *testing.T) {
	const cache = 8000
	for _, c := range []struct {
		name     string
		work     func(w *world) func(int)
		low, top float64 // D as a part of the true mean
	}{
		{"a loop slightly too large", func(w *world) func(int) { return w.looper(w.grow(file, 9600), 9600, 3000) }, 0.95, 1.05},
		{"a loop twice as large", func(w *world) func(int) { return w.looper(w.grow(file, 16000), 16000, 3000) }, 0.95, 1.05},
		{"uniform reads of twice the cache", func(w *world) func(int) {
			first := w.grow(file, 16000)
			r := rand.New(rand.NewPCG(1, 2))
			return func(int) {
				for range 6000 {
					w.touch(first + r.IntN(16000))
				}
			}
		}, 0.9, 1.1},
		{"zipf-like reads: rare pages stay out, the mean is an upper bound", func(w *world) func(int) {
			first := w.grow(file, 40000)
			z := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 4, 39999)
			return func(int) {
				for range 6000 {
					w.touch(first + int(z.Uint64()))
				}
			}
		}, 0.95, 2.5},
		{"a loop beside a file read once: an upper bound", func(w *world) func(int) {
			loop := w.looper(w.grow(file, 9000), 9000, 3000)
			return func(s int) {
				loop(s)
				once := w.grow(file, 300)
				for i := range 300 {
					w.touch(once + i)
				}
			}
		}, 0.95, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(cache)
			d := w.live(90, Policy{}, false, c.work(w))
			truth := w.distances / w.returns * pageSize
			got := d.Signals.File.Distance.or(-1)
			t.Logf("D %.1f MiB, truth %.1f MiB: %.2f", got/mib, truth/mib, got/truth)
			if got < c.low*truth || got > c.top*truth {
				t.Errorf("D is %.2f of the true mean distance, want %.2f to %.2f", got/truth, c.low, c.top)
			}
		})
	}
}

// besideIdleAnon is the scene of seed 003: anon that nobody touches, and a file
// read in a loop, under one limit.
func besideIdleAnon(anonPages, filePages, limit int) (*world, func(int)) {
	w := newWorld(limit)
	first := w.grow(anon, anonPages)
	for i := range anonPages {
		w.touch(first + i)
	}
	return w, w.looper(w.grow(file, filePages), filePages, 12_000)
}

func TestSeed003AFileThrashBesideIdleAnonEnds(t *testing.T) {
	const mb = mib / pageSize
	run := func(on bool) *world {
		w, work := besideIdleAnon(150*mb, 80*mb, 180*mb)
		w.live(60, defaultPolicy(), on, work)
		return w
	}
	off, on := run(false), run(true)
	t.Logf("refaults %d off, %d on; anon moved %d MiB", off.refault[file], on.refault[file], on.swapped/mb)
	if on.refault[file]*4 > off.refault[file] {
		t.Errorf("%d refaults with the law, %d without: want a quarter at most", on.refault[file], off.refault[file])
	}
	if on.swapped < 45*mb || on.swapped > 75*mb {
		t.Errorf("%d MiB of anon moved, the shortfall is 50", on.swapped/mb)
	}
	if on.refault[anon] != 0 {
		t.Errorf("%d anon refaults of memory nobody touches", on.refault[anon])
	}
}

// The objection in seed 003: "workloads with file backed data set not fitting
// into the memory. Aren't we going to swap a lot".
func TestSeed003AStreamCostsNoAnon(t *testing.T) {
	const mb = mib / pageSize
	run := func(on, guard bool) *world {
		w, work := besideIdleAnon(150*mb, 350*mb, 180*mb)
		w.victim = func(w *world) int { // what kernels do: anon goes too
			if w.clock%4 == 0 {
				return anon
			}
			return file
		}
		p := defaultPolicy()
		p.SwapGuard = guard
		w.live(60, p, on, work)
		return w
	}
	off, on := run(false, false), run(true, true)
	t.Logf("anon swapped: %d MiB off, %d MiB on", off.swapped/mb, on.swapped/mb)
	if off.swapped < 140*mb {
		t.Fatalf("the kernel of this test swaps %d MiB only", off.swapped/mb)
	}
	// A quarter of what this kernel evicts is anon: 12 MiB are gone with the
	// first second, before there is a second sample to tell.
	if n := on.swapped; n > 16*mb {
		t.Errorf("%d MiB of 150 swapped for a stream", n/mb)
	}
}
