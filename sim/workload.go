package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// DefaultRate is how many bytes a second a workload touches where it does not
// say: what a small guest manages.
const DefaultRate = 256 << 20

// Workload says what a job does. The values of this package are all there are.
type Workload interface {
	// plan lays out the job: its regions, its rate in bytes a second (0 means
	// DefaultRate) and its program.
	plan(h *Host, j *Job) (rate uint64, err error)
	fmt.Stringer
}

// Idle fills memory once and never looks at it again.
type Idle struct {
	Anon, File uint64 // bytes
	Rate       uint64 // bytes a second
}

// Touch goes over a hot set again and again.
type Touch struct {
	Bytes uint64
	Kind  Kind
	Every time.Duration // from the start of one pass to the next; 0 without a break
	Rate  uint64
}

// FileLoop reads a file from start to end, over and over.
type FileLoop struct {
	Bytes uint64
	Kind  Kind // Anon stands for File
	Rate  uint64
}

// Stream reads files that nobody will ever read again.
type Stream struct {
	Rate uint64
}

// Zipf touches blocks at random, the k-th (from 1) with a weight of
// 1/k^Exponent, after having touched all once. An Exponent of 0 touches all
// alike. The order in memory is that of the weights.
type Zipf struct {
	Bytes    uint64
	Kind     Kind
	Exponent float64
	Rate     uint64 // of each thread
	// Block is how many bytes are touched together, from start to end; 0 means
	// a page.
	Block uint64
	// Threads is how many touch the same memory at once; 0 means one.
	Threads int
	// Rand draws; nil draws from the host's seed and the number of the job.
	Rand *rand.Rand
}

// Grow takes memory at a rate and keeps it. With Hold it frees all of it that
// long after it stopped growing.
type Grow struct {
	Bytes uint64
	Kind  Kind
	Rate  uint64
	Hold  time.Duration
}

// Script goes through its steps, and then through Loop, Times times; 0 means
// for ever.
type Script struct {
	Regions []Region
	Steps   []Step
	Loop    []Step
	Times   int
	Rate    uint64
}

// Region is memory that steps refer to by its index.
type Region struct {
	Kind  Kind
	Bytes uint64
}

// Step touches part of a region from its start to its end, once.
type Step struct {
	Region int
	From   uint64 // byte offset
	Bytes  uint64 // 0: all from From to the end
	// Shift is added to From with every round of the loop, wrapping at the end
	// of the region.
	Shift uint64
	// Free gives the memory back instead of touching it.
	Free bool
	// Every: the step does not end before this much time has passed since it
	// began. With Rest it waits only and touches nothing.
	Every time.Duration
	Rest  bool
}

func (w Idle) plan(h *Host, j *Job) (uint64, error) {
	return Script{
		Regions: []Region{{Anon, w.Anon}, {File, w.File}}, Steps: []Step{{Region: 0}, {Region: 1}}, Rate: w.Rate,
	}.plan(h, j)
}

func (w Touch) plan(h *Host, j *Job) (uint64, error) {
	return Script{
		Regions: []Region{{w.Kind, w.Bytes}}, Loop: []Step{{Every: w.Every}}, Rate: w.Rate,
	}.plan(h, j)
}

func (w FileLoop) plan(h *Host, j *Job) (uint64, error) {
	kind := w.Kind
	if kind == Anon {
		kind = File
	}
	return Touch{Bytes: w.Bytes, Kind: kind, Rate: w.Rate}.plan(h, j)
}

func (w Grow) plan(h *Host, j *Job) (uint64, error) {
	s := Script{Regions: []Region{{w.Kind, w.Bytes}}, Steps: []Step{{}}, Rate: w.Rate}
	if w.Hold > 0 {
		s.Steps = append(s.Steps, Step{Rest: true, Every: w.Hold}, Step{Free: true})
	}
	return s.plan(h, j)
}

func (w Stream) plan(_ *Host, j *Job) (uint64, error) {
	j.regions = []*region{{kind: File, pages: make([]uint32, 1)}}
	j.program = streaming{}
	return w.Rate, nil
}

func (w Zipf) plan(h *Host, j *Job) (uint64, error) {
	block := max(int(w.Block/PageSize), 1)
	blocks := int(w.Bytes/PageSize) / block
	if blocks == 0 || w.Exponent < 0 {
		return 0, fmt.Errorf("zipf over %d blocks of %d pages with exponent %g: needs at least one block and no negative exponent", blocks, block, w.Exponent)
	}
	source := w.Rand
	if source == nil {
		source = h.cfg.source(j.order)
	}
	j.regions = []*region{{kind: w.Kind, pages: make([]uint32, blocks*block)}}
	j.threads = max(w.Threads, 1)
	j.program = newZipf(blocks, block, w.Exponent, j.threads, source)
	return w.Rate, nil
}

func (w Script) plan(_ *Host, j *Job) (uint64, error) {
	for _, r := range w.Regions {
		if r.Kind < 0 || r.Kind >= numRegionKinds {
			return 0, fmt.Errorf("region of kind %d: there is no such kind", int(r.Kind))
		}
		j.regions = append(j.regions, &region{kind: r.Kind, pages: make([]uint32, r.Bytes/PageSize)})
	}
	for _, list := range [2][]Step{w.Steps, w.Loop} {
		for i, s := range list {
			if s.Rest {
				continue
			}
			if s.Region < 0 || s.Region >= len(w.Regions) {
				return 0, fmt.Errorf("step %d: there is no region %d", i, s.Region)
			}
			if s.From+s.Bytes > w.Regions[s.Region].Bytes {
				return 0, fmt.Errorf("step %d reaches beyond the end of region %d", i, s.Region)
			}
		}
	}
	if len(w.Loop) > 0 && !moves(w.Loop, w.Regions) {
		return 0, errors.New("a loop that touches nothing and waits for nothing never ends")
	}
	j.program = &playing{script: w}
	return w.Rate, nil
}

func moves(loop []Step, regions []Region) bool {
	for _, s := range loop {
		if s.Every > 0 || !s.Rest && !s.Free && regions[s.Region].Bytes >= s.From+PageSize {
			return true
		}
	}
	return false
}

func (w Idle) String() string { return "idle anon " + size(w.Anon) + " file " + size(w.File) }
func (w Touch) String() string {
	return fmt.Sprintf("touch %s %v every %v", size(w.Bytes), w.Kind, w.Every)
}
func (w FileLoop) String() string { return "loop over file " + size(w.Bytes) }
func (w Stream) String() string   { return "stream" }
func (w Zipf) String() string {
	return fmt.Sprintf("zipf %g over %s %v", w.Exponent, size(w.Bytes), w.Kind)
}
func (w Grow) String() string { return fmt.Sprintf("grow to %s %v", size(w.Bytes), w.Kind) }
func (w Script) String() string {
	return fmt.Sprintf("script of %d steps and %d in a loop", len(w.Steps), len(w.Loop))
}
