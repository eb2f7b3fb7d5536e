package sim

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// playing is a Script under way.
type playing struct {
	script Script
	loop   bool // in Loop, not in Steps
	index  int  // index in the list that is played
	round  int
	at     int // pages of the step done
	began  time.Duration
	inside bool // the step has begun
}

func (p *playing) step(h *Host, j *Job) (time.Duration, bool) {
	list := p.script.Steps
	if p.loop {
		list = p.script.Loop
	}
	if p.index >= len(list) {
		return 0, p.turn(j)
	}
	s := list[p.index]
	if !p.inside {
		p.inside, p.at, p.began = true, 0, h.now
	}
	if s.Rest || p.at >= p.pages(s, j) {
		p.inside = false
		p.index++
		return max(0, s.Every-(h.now-p.began)), false
	}
	r := j.regions[s.Region]
	page := (int(s.From/PageSize) + p.round*int(s.Shift/PageSize) + p.at) % len(r.pages)
	p.at++
	if s.Free {
		if i := r.pages[page]; i != 0 {
			h.drop(i)
			r.pages[page] = 0
		}
		return 0, false
	}
	cost, ok := h.touch(j, r, page)
	return j.gap + cost, !ok
}

func (p *playing) pages(s Step, j *Job) int {
	if s.Bytes > 0 {
		return int(s.Bytes / PageSize)
	}
	return len(j.regions[s.Region].pages) - int(s.From/PageSize)
}

// turn goes on to the loop, or to its next round; true when all is done.
func (p *playing) turn(j *Job) (over bool) {
	j.wait = 0
	p.index = 0
	if !p.loop {
		p.loop = true
		j.began = j.h.now
		return len(p.script.Loop) == 0
	}
	j.pass()
	p.round++
	return p.script.Times > 0 && p.round >= p.script.Times
}

// streaming reads one new page after the other.
type streaming struct{}

func (streaming) step(h *Host, j *Job) (time.Duration, bool) {
	r := j.regions[0]
	r.pages[0] = 0
	cost, ok := h.touch(j, r, 0)
	if ok {
		i := r.pages[0]
		if p := &h.arena.pages[i]; p.flags&resident != 0 {
			p.flags |= orphan
		} else {
			h.drop(i)
		}
		r.pages[0] = 0
	}
	return j.gap + cost, !ok
}

// zipf touches all its blocks once and then draws them by weight, in several
// threads.
type zipf struct {
	threads []zipfThread
	upTo    []float64 // sums of the weights
	block   int       // pages
	next    int       // first page that was not touched yet
	source  *rand.Rand
}

// zipfThread is one thread and the block that it is at.
type zipfThread struct {
	ready time.Duration // when it touches next
	page  int           // which one, if any are left of the block that it is at
	left  int
}

func newZipf(blocks, block int, exponent float64, threads int, source *rand.Rand) *zipf {
	z := &zipf{threads: make([]zipfThread, threads), upTo: make([]float64, blocks), block: block, source: source}
	sum := 0.0
	for k := range z.upTo {
		sum += math.Pow(float64(k+1), -exponent)
		z.upTo[k] = sum
	}
	return z
}

func (z *zipf) step(h *Host, j *Job) (time.Duration, bool) {
	t := z.first()
	page := z.next
	if z.next < len(z.upTo)*z.block {
		z.next++
	} else {
		if t.left == 0 {
			t.page, t.left = z.draw()*z.block, z.block
		}
		page = t.page
		t.page++
		t.left--
	}
	cost, ok := h.touch(j, j.regions[0], page)
	t.ready = h.now + j.gap + cost
	return max(0, z.first().ready-h.now), !ok
}

// first returns the thread that touches next.
func (z *zipf) first() *zipfThread {
	first := &z.threads[0]
	for i := range z.threads {
		if t := &z.threads[i]; t.ready < first.ready {
			first = t
		}
	}
	return first
}

// draw returns a block by weight.
func (z *zipf) draw() int {
	x := z.source.Float64() * z.upTo[len(z.upTo)-1]
	return min(sort.SearchFloat64s(z.upTo, x), len(z.upTo)-1)
}
